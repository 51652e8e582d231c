"""Push: the spec goes to the guest over SSH, and is applied there by the script that pull uses too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.clients import ssh
from stackyard.operator.guests.access import sudo
from stackyard.operator.guests.phases import GuestConfigError, last_lines
from stackyard.sources.site.apply_script import apply_script, marker_script

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.operator.guests.context import GuestContext

__all__ = ["apply_document", "mark_document", "run_as_root", "wait_for_first_boot"]

_WAITING = """\
command -v cloud-init >/dev/null || exit 0
cloud-init status --wait >/dev/null 2>&1
cloud-init status --long
"""
_FAILED_BOOT = 1


async def wait_for_first_boot(shell: ssh.Shell, ctx: GuestContext) -> str:
    """Wait until cloud-init is done, which otherwise holds the package manager; return what it complains of.

    Raises:
        GuestConfigError: It failed, or took too long.
    """
    ended = await ssh.attend(shell, ssh.Script(text=_WAITING, timeout_s=ctx.patience.boot_s))
    if ended.timed_out:
        raise GuestConfigError(f"Cloud-init was not done after {ctx.patience.boot_s:.0f} s.")
    if ended.status == _FAILED_BOOT:
        raise GuestConfigError(f"Cloud-init failed: {last_lines(ended.output)}")
    # It ends with 2 where something could be done in another way.
    return "" if ended.status == 0 else f"Cloud-init has complaints: {last_lines(ended.output)}"


async def apply_document(
    shell: ssh.Shell, document: Mapping[str, Any], ctx: GuestContext, *, source: str, emit: events.Emit
) -> None:
    """Make a guest what a document says.

    Raises:
        GuestConfigError: A step failed; the error ends with what it said last.
        SshError: The connection broke.
    """
    script = apply_script(document, mode="push")

    def tell(line: str) -> None:
        emit(events.LogLine(level=events.LogLevel.INFO, source=source, text=ctx.redactor(line)))

    ended = await run_as_root(shell, script, timeout_s=ctx.patience.apply_s, tell=tell)
    _require_end(ended, "The spec could not be applied", ctx)


async def mark_document(shell: ssh.Shell, document: Mapping[str, Any], ctx: GuestContext) -> None:
    """Leave word in a guest that it is what a document says.

    Raises:
        GuestConfigError: It cannot be left.
        SshError: The connection broke.
    """
    ended = await run_as_root(shell, marker_script(document, mode="push"), timeout_s=ctx.patience.apply_s)
    _require_end(ended, "The marker could not be written", ctx)


async def run_as_root(
    shell: ssh.Shell, script: str, *, timeout_s: float, tell: ssh.attending.OnLine | None = None
) -> ssh.ScriptResult:
    """Run a script as root; it goes through standard input, where no other user can read it.

    Raises:
        SshError: The connection broke.
    """
    given = ssh.Script(text="exec /bin/sh -s", stdin=script, becomes_root=sudo(shell), timeout_s=timeout_s)
    return await ssh.attend(shell, given, tell)


def _require_end(ended: ssh.ScriptResult, what: str, ctx: GuestContext) -> None:
    if ended.timed_out:
        raise GuestConfigError(f"{what} within {ctx.patience.apply_s:.0f} s: {last_lines(ended.output)}")
    if ended.status != 0:
        raise GuestConfigError(f"{what}: {last_lines(ended.output)}")
