"""`stackyard secrets check`."""

from __future__ import annotations

from pathlib import Path

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.hook_result import hook_result
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

__all__ = ["check"]


@click.command("check", cls=Command)
@click.option("--staged", is_flag=True, help="Check only what the next commit adds or changes.")
@click.option("--install-hook", is_flag=True, help="Run this check before each commit, as a git hook.")
@click.option(
    "--uninstall-hook", is_flag=True, help="Remove this check from the git hook; other checks stay."
)
@pass_session
def check(session: Session, /, staged: bool, install_hook: bool, uninstall_hook: bool) -> Result:
    """Find secrets in clear in the files that git tracks or has staged.

    The command checks the git index, which is what would be committed, not the working tree. It finds files
    that should be encrypted according to .sops.yaml or their name (secrets.yaml, x.secret.tfvars,
    x.sops.yaml) and are not, values in clear in SOPS files, private keys, and tokens of known formats. Exit
    status 1: it found secrets.

    A line that contains `stackyard:allow-secret`, and the line below it, are not checked. In the first five
    lines of a file, it applies to the whole file.

    --install-hook keeps an existing hook, which runs first.

    \b
    stackyard secrets check
    stackyard secrets check --install-hook
    """  # noqa: D301 - click reads the control character
    from stackyard.clients.git.hook import install_check, remove_check  # lazy: asyncio, only for this verb
    from stackyard.secrets.check.scan import HOOK_CHECK, check_repository  # lazy: as above

    if install_hook and uninstall_hook:
        raise UsageError("Give either --install-hook or --uninstall-hook.")
    if install_hook or uninstall_hook:
        change = install_check if install_hook else remove_check
        return hook_result(session.run(change(Path.cwd(), HOOK_CHECK)))
    checked = session.run(check_repository(Path.cwd(), is_staged_only=staged))
    checked.raise_findings()
    said = "1 file" if checked.files == 1 else f"{checked.files} files"
    return Result(
        document={"files": checked.files, "findings": []},
        show=lambda writer: writer.line(f"No secret in clear in {said}."),
    )
