"""Making a guest that is up what it should be."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.clients import ssh
from stackyard.operator.guests.access import log_in
from stackyard.operator.guests.ansible import find_playbook, run_playbook
from stackyard.operator.guests.phases import PhaseFailed, Phases
from stackyard.operator.guests.pull import wait_for_pull
from stackyard.operator.guests.push import apply_document, mark_document, wait_for_first_boot
from stackyard.operator.outcome import PhaseStatus
from stackyard.sources.manifest.model import NodeType

if TYPE_CHECKING:
    from stackyard.desired import Guest
    from stackyard.operator.guests.context import GuestContext
    from stackyard.operator.outcome import Phase
    from stackyard.path.verify import GuestUp
    from stackyard.sources.manifest.model import Node

__all__ = ["configure"]


async def configure(
    node: Node, guest: Guest, up: GuestUp, ctx: GuestContext, emit: events.Emit = events.ignore
) -> tuple[Phase, ...]:
    """Make a guest what it should be, and return what was done; the last phase may have failed.

    It may be done again at any time: what is already so is left alone.

    Args:
        node: The node of the manifest.
        guest: The same in the model.
        up: Where it answers.
        ctx: What is needed for it.
        emit: Told of each phase, and of what the guest says.
    """
    told = _PhaseReport(phases=Phases(node.name, ctx.redactor, emit), emit=emit)
    with contextlib.suppress(PhaseFailed):
        try:
            await _configure(node, guest, up, ctx, told)
        except PhaseFailed as err:
            if not _is_lost(err.__cause__):
                raise
            # Everything may be done again, and what was begun over there has been ended.
            told.phases.ignore_failure("The connection broke, and it was done again.")
            await _configure(node, guest, up, ctx, told)
    return told.phases.all


def _is_lost(cause: BaseException | None) -> bool:
    """Return whether a phase failed because the connection broke, as when a guest reboots."""
    return isinstance(cause, ssh.SshError) and not isinstance(cause, ssh.RemoteCommandError)


class _PhaseReport:
    """Where progress is reported."""

    def __init__(self, *, phases: Phases, emit: events.Emit) -> None:
        self.phases = phases
        self.emit = emit


async def _configure(node: Node, guest: Guest, up: GuestUp, ctx: GuestContext, told: _PhaseReport) -> None:
    phases = told.phases
    if not up.addresses:
        phases.record("wait_ssh", PhaseStatus.SKIPPED, "No address of it is known.")
        return
    async with contextlib.AsyncExitStack() as stack:
        with phases.phase("wait_ssh", f"Waiting for SSH of {node.name}") as note:
            hosts = ctx.hosts(node, guest, up.addresses[0])
            shell = await stack.enter_async_context(log_in(hosts, ctx))
            note.detail = f"Logged in to {shell.host}."
        if node.mode == "pull" and node.type is not NodeType.CT:
            await _pull_spec(shell, node, ctx, phases)
        else:
            await _push_spec(shell, node, ctx, told)


async def _pull_spec(shell: ssh.Shell, node: Node, ctx: GuestContext, phases: Phases) -> None:
    document = ctx.document(node)
    if document is None:
        phases.record("wait_spec", PhaseStatus.SKIPPED, "It has no spec.")
        return
    with phases.phase("wait_spec", f"Waiting until {node.name} has applied its spec") as note:
        note.detail = await wait_for_pull(shell, node, document, ctx)


async def _push_spec(shell: ssh.Shell, node: Node, ctx: GuestContext, told: _PhaseReport) -> None:
    phases = told.phases
    if node.type is not NodeType.CT:
        with phases.phase("wait_first_boot", f"Waiting for the first boot of {node.name}") as note:
            note.detail = await wait_for_first_boot(shell, ctx)
    document = ctx.document(node)
    if document is None:
        phases.record("apply_spec", PhaseStatus.SKIPPED, "It has no spec.")
        return
    playbook = find_playbook(ctx.resolver.site)
    if playbook is None:
        with phases.phase("apply_spec", f"Applying the spec of {node.name}"):
            await apply_document(shell, document, ctx, source=node.name, emit=told.emit)
        return
    with phases.phase("run_playbook", f"Running {playbook.name} on {node.name}"):
        await run_playbook(playbook, shell, document, ctx, emit=told.emit)
    with phases.phase("write_marker", f"Leaving word in {node.name}"):
        await mark_document(shell, document, ctx)
