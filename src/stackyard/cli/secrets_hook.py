"""The check for secrets before each commit, as commands that make a repository install it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError
from stackyard.clients.git.hook import install_check
from stackyard.clients.git.repository import find_repository
from stackyard.secrets.check.scan import HOOK_CHECK

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["NO_HOOK", "HookOutcome", "install_secrets_hook"]

_LATER = "stackyard secrets check --install-hook"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookOutcome:
    """Whether each commit is checked from now on.

    Attributes:
        path: The hook; None where there is none.
        is_new: Whether it was installed now.
        reason: Why there is none.
    """

    path: Path | None = None
    is_new: bool = False
    reason: str = ""

    def show(self, writer: TextWriter) -> None:
        """Write what happened."""
        if self.path is None:
            writer.line(f"Commits are not checked for secrets: {self.reason} Later: {_LATER}", style="yellow")
        elif self.is_new:
            writer.line(f"Each commit is checked for secrets: {self.path}")


NO_HOOK = HookOutcome(reason="--no-hook was given.")


async def install_secrets_hook(folder: Path) -> HookOutcome:
    """Have git check each commit for secrets; where it cannot, say why.

    Args:
        folder: A folder of the repository.
    """
    try:
        repository = await find_repository(folder)
        if repository is None:
            return HookOutcome(reason=f"{folder} is not in a git repository.")
        if await repository.has_shared_hooks():
            # A hook there would check every repository, which the user did not ask for.
            return HookOutcome(reason=f"all of your repositories share the hooks in {repository.hooks}.")
        hook = await install_check(folder, HOOK_CHECK)
    except StackyardError as err:
        return HookOutcome(reason=err.detail)
    return HookOutcome(path=hook.path, is_new=not hook.was_there)
