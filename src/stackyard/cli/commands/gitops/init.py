"""`stackyard gitops init`: the workflow of a forge's CI."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.gitops.workflows import WorkflowFile

__all__ = ["init"]


@click.command("init", cls=Command)
@click.option(
    "--forge",
    type=click.Choice(("gitea", "github", "gitlab")),
    required=True,
    envvar="STACKYARD_FORGE",
    help="The kind of the forge; Forgejo is gitea.",
)
@click.option(
    "--runner", metavar="LABEL", help="Run on machines of yours with this label: the control machine."
)
@click.option(
    "--release", metavar="URL", help="Without --runner: where the release is that the jobs install."
)
@click.option("--sums", metavar="SHA256", help="With --release: the SHA-256 of its SHA256SUMS.")
@click.option(
    "--oidc",
    metavar="aws=ROLE_ARN[,apply=ROLE_ARN]",
    help="Log in to AWS with a token that the forge gives each job, and take this role there; applies may "
    "have their own. GitHub and GitLab.",
)
@click.option("--branch", metavar="NAME", default="main", show_default=True, help="The base branch.")
@click.option("--dir", "folder", metavar="DIR", default=".", help="The top of the repository.")
@click.option("--force", is_flag=True, help="Replace files that are there and are different.")
def init(**values: Any) -> Result:
    """Write the files by which the CI of a forge plans and applies pull requests.

    The jobs run `stackyard gitops plan`, `apply` and `drift`, each with the least permissions and the
    credentials of its kind. Actions are pinned by their commit, stackyard by the sums of its release.
    On GitHub and Gitea, the workflow of the base branch runs, which a pull request cannot change.

    \b
    stackyard gitops init --forge github --runner control
    stackyard gitops init --forge gitea --release https://example.org/stackyard/1.0 --sums SHA256
    """  # noqa: D301 - click reads the control character
    from stackyard.base import files  # lazy: the help needs none of it
    from stackyard.clients.forge.model import ForgeKind  # lazy: as above
    from stackyard.gitops.workflows import Runner, make_workflows, read_roles  # lazy: as above

    runner = Runner(label=values["runner"] or "", release=values["release"] or "", sums=values["sums"] or "")
    kind = ForgeKind(values["forge"])
    roles = None if values["oidc"] is None else read_roles(values["oidc"], kind)
    made = make_workflows(kind, runner, branch=values["branch"], roles=roles)
    top = Path(values["folder"])
    written = [one for one in made if not _is_there(top, one, is_forced=values["force"])]
    for one in written:
        path = top / one.path
        path.parent.mkdir(parents=True, exist_ok=True)
        files.replace_file(path, one.text.encode(), mode=0o644)
    names = [one.path for one in written]
    document = {"written": names, "unchanged": [one.path for one in made if one.path not in names]}
    return Result(document=document, show=lambda writer: _show(writer, document, is_own=bool(runner.label)))


def _is_there(top: Path, one: WorkflowFile, *, is_forced: bool) -> bool:
    """Return whether a file is there as it would be written.

    Raises:
        UsageError: Another one is there.
    """
    try:
        found = (top / one.path).read_bytes()
    except FileNotFoundError:
        return False
    if found != one.text.encode() and not is_forced:
        raise UsageError(
            f"{one.path} is there already, and is different.",
            remedy="Read it, and give --force to replace it. Nothing was written.",
        )
    return found == one.text.encode()


def _show(writer: TextWriter, document: dict[str, Any], *, is_own: bool) -> None:
    for path in document["written"]:
        writer.line(f"Wrote {path}", style="green")
    for path in document["unchanged"]:
        writer.line(f"{path} is as it would be written.")
    writer.line("Commit it to the base branch. Then:")
    if is_own:
        writer.line("  give the runner STACKYARD_GITOPS_CREDENTIALS, a folder with plan.env and apply.env")
    else:
        writer.line("  set the secrets STACKYARD_PLAN_ENV, STACKYARD_APPLY_ENV and STACKYARD_SITE_KEY")
    writer.line("  set the variable STACKYARD_STORE, where the store is one that several machines reach")
    writer.line("  run `stackyard gitops check --fix`")
