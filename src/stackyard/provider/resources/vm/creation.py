"""Making a VM exactly once: written down first, and found again whatever happens on the way."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.create_once import was_not_done
from stackyard.provider.guests import VM, Guest, carries, find_guest, wait_until_made
from stackyard.provider.journal import Entry, subject_of
from stackyard.provider.vm_ids import says_taken, taken_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["CreatedVm", "VmLocation", "left_on_failure", "make_once"]

_ATTEMPTS = 4
_FIRST_PAUSE_S = 0.05
# What a task says that gave up because somebody else held a lock: it did nothing.
_BUSY = ("got timeout", "got lock request timeout", "got lock timeout")


@dataclass(frozen=True, slots=True)
class VmLocation:
    """Where a VM is made.

    Attributes:
        node: The node that has it afterwards.
        worker: The node whose task makes it: for a clone, that of its source.
    """

    node: str
    worker: str


class CreatedVm:
    """A VM that is there, and whether this run made it.

    Attributes:
        entry: What the journal says about it.
        is_taken_over: Whether an earlier run made it.
    """

    def __init__(self, entry: Entry, *, is_taken_over: bool) -> None:
        self.entry = entry
        self.is_taken_over = is_taken_over


@contextlib.contextmanager
def left_on_failure(work: Work, made: CreatedVm) -> Iterator[None]:
    """End the work on an entry when the block fails; when it ends well, somebody else goes on with it."""
    with contextlib.ExitStack() as leaving:
        leaving.callback(work.session.journal.leave, made.entry)
        yield
        leaving.pop_all()


async def make_once(
    work: Work,
    planned: Object,
    send: Callable[[Entry], Awaitable[Any]],
    *,
    place: VmLocation,
    timeout_s: float,
) -> CreatedVm:
    """Make a VM, unless an earlier run has done it already.

    Args:
        work: The operation.
        planned: What is to be made.
        send: Sends the call that makes it and returns the id of its task.
        place: Where the call makes it.
        timeout_s: How long it may take.

    Raises:
        VmIdTakenError: Another guest has the vm id that the configuration gives.
        ProxmoxError: It could not be made, or nobody can say whether it was.
    """
    journal, subject = work.session.journal, subject_of(work.type_name, planned)
    left = journal.take(subject)
    if left is not None:
        found = await _find_left(work, left, place, timeout_s)
        if found is not None:
            return CreatedVm(found, is_taken_over=True)
        await journal.close(left)
    configured = planned.get("vm_id")
    number = configured if isinstance(configured, int) and configured > 0 else None
    while True:
        vm_id = number or await work.session.ids.reserve(work.client, work.session.settings)
        made = CreatedVm(await journal.begin(subject, node=place.node, vm_id=vm_id), is_taken_over=False)
        try:
            with left_on_failure(work, made):
                await _make(work, made.entry, send, place, timeout_s)
            return made
        except proxmox.RefusedError as err:
            if not says_taken(err.text):
                raise
            if number is not None:
                raise await taken_id(work.client, number, err.text) from err
            # Somebody else has taken the number since we looked.
            work.session.ids.reject(vm_id)


async def _find_left(work: Work, left: Entry, place: VmLocation, timeout_s: float) -> Entry | None:
    """Return the entry of a VM that another run was making, with where it is now; None when it is nowhere."""
    while True:
        found = await find_guest(work, left.vm_id, VM)
        if found is not None and found["node"] != left.node:
            left = await work.session.journal.change(left, node=str(found["node"]))
        guest = Guest(work=work, node=left.node, vm_id=left.vm_id)
        if await _appears(guest, left, place, timeout_s=timeout_s):
            return left
        # What was on its way to another node has arrived there while we waited.
        found = await find_guest(work, left.vm_id, VM)
        if found is None or found["node"] == left.node:
            return None


async def _make(
    work: Work, entry: Entry, send: Callable[[Entry], Awaitable[Any]], place: VmLocation, timeout_s: float
) -> None:
    journal, guest = work.session.journal, Guest(work=work, node=entry.node, vm_id=entry.vm_id)
    was_lost = False
    for attempt in range(1, _ATTEMPTS + 1):
        is_last = attempt == _ATTEMPTS
        try:
            upid = str(await send(entry))
            entry = await journal.change(entry, upid=upid)
            await proxmox.wait_for(work.client, upid, timeout_s=timeout_s)
        except proxmox.AnswerLostError:
            was_lost = True
            if await _appears(guest, entry, place, timeout_s=timeout_s):
                return
            if is_last:
                raise
        except (proxmox.RefusedError, proxmox.ProxmoxUnreachableError) as err:
            # The work may be done all the same: by a first call whose answer was lost, or before the error.
            is_certain = was_not_done(err) and not was_lost
            if not is_certain and await _appears(guest, entry, place, timeout_s=timeout_s):
                return
            await journal.close(entry)
            raise
        except proxmox.TaskFailedError as err:
            if await _appears(guest, entry, place, timeout_s=timeout_s):
                return
            if is_last or not any(text in str(err) for text in _BUSY):
                await journal.close(entry)
                raise
        else:
            return
        await work.client.pause(_FIRST_PAUSE_S * 2**attempt)


async def _appears(guest: Guest, entry: Entry, place: VmLocation, *, timeout_s: float) -> bool:
    """Tell whether a VM that was to be made is there, waiting for whoever still makes it."""
    config = await wait_until_made(guest, entry, (place.node, place.worker), timeout_s=timeout_s)
    return config is not None and carries(config, entry.token)
