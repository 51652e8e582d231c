"""`stackyard secrets check`."""

from __future__ import annotations

from pathlib import Path

import click

from stackyard.cli.command import Command
from stackyard.cli.hook_result import hook_result
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session
from stackyard.errors import UsageError

__all__ = ["check"]


@click.command("check", cls=Command)
@click.option("--staged", is_flag=True, help="Look only at what the next commit adds or changes.")
@click.option("--install-hook", is_flag=True, help="Have git do this before each commit.")
@click.option("--uninstall-hook", is_flag=True, help="Have git do this no longer; other checks stay.")
@pass_session
def check(session: Session, /, staged: bool, install_hook: bool, uninstall_hook: bool) -> Result:
    """Find secrets in clear among the files that git tracks or has staged.

    What is looked at is the index: what would be committed, whatever the working tree holds. Found are files
    that .sops.yaml or their name (secrets.yaml, x.secret.tfvars, x.sops.yaml) says are encrypted and that are
    not, values in clear in files of SOPS, private keys, and tokens of known forms. Exit status 1: there are
    any.

    A line that holds `stackyard:allow-secret`, and the line below it, are left alone; in the first five lines
    of a file, it stands for the whole file. A hook that is already there is kept, and runs first.

    \b
    stackyard secrets check
    stackyard secrets check --install-hook
    """  # noqa: D301 - click reads the control character
    from stackyard.git.hook import install_check, remove_check  # lazy: asyncio, only for this verb
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
        show=lambda paper: paper.line(f"No secret in clear in {said}."),
    )
