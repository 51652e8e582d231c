"""Making a VM exactly once: written down first, and found again whatever happens on the way."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard import proxmox
from stackyard.provider.creating import HalfMadeError, was_not_done
from stackyard.provider.journal import Entry, subject_of
from stackyard.provider.resources.vm.guest import Guest
from stackyard.provider.resources.vm.read import find
from stackyard.provider.vm_ids import says_taken, taken_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["Made", "Place", "appears", "carries", "left_on_failure", "make_once", "marked"]

_ATTEMPTS = 4
_BEING_MADE = ("create", "clone")
_MAKING = ("qmcreate", "qmclone")
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0
# What a task says that gave up because somebody else held a lock: it did nothing.
_BUSY = ("got timeout", "got lock request timeout", "got lock timeout")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a VM is made.

    Attributes:
        node: The node that has it afterwards.
        worker: The node whose task makes it: for a clone, that of its source.
    """

    node: str
    worker: str


class Made:
    """A VM that is there, and whether this run made it.

    Attributes:
        entry: What the journal says about it.
        is_taken_over: Whether an earlier run made it.
    """

    def __init__(self, entry: Entry, *, is_taken_over: bool) -> None:
        self.entry = entry
        self.is_taken_over = is_taken_over


@contextlib.contextmanager
def left_on_failure(work: Work, made: Made) -> Iterator[None]:
    """End the work on an entry when the block fails; when it ends well, somebody else goes on with it."""
    with contextlib.ExitStack() as leaving:
        leaving.callback(work.session.journal.leave, made.entry)
        yield
        leaving.pop_all()


def marked(description: str, token: str) -> str:
    """Return a description that carries a token, for a clone, which can carry it nowhere else at first."""
    return f"{description}\n\nmade-by-stackyard: {token}".strip()


def carries(config: Mapping[str, Any], token: str) -> bool:
    """Tell whether a VM carries a token."""
    return config.get("vmgenid") == token or str(config.get("description", "")).rstrip().endswith(token)


async def make_once(
    work: Work, planned: Object, send: Callable[[Entry], Awaitable[Any]], *, place: Place, timeout_s: float
) -> Made:
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
            return Made(found, is_taken_over=True)
        await journal.close(left)
    configured = planned.get("vm_id")
    number = configured if isinstance(configured, int) and configured > 0 else None
    while True:
        vm_id = number or await work.session.ids.reserve(work.client, work.session.settings)
        made = Made(await journal.begin(subject, node=place.node, vm_id=vm_id), is_taken_over=False)
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


async def _find_left(work: Work, left: Entry, place: Place, timeout_s: float) -> Entry | None:
    """Return the entry of a VM that another run was making, with where it is now; None when it is nowhere."""
    while True:
        found = await find(work, left.vm_id)
        if found is not None and found["node"] != left.node:
            left = await work.session.journal.change(left, node=str(found["node"]))
        guest = Guest(work=work, node=left.node, vm_id=left.vm_id)
        if await appears(guest, left, place, timeout_s=timeout_s):
            return left
        # What was on its way to another node has arrived there while we waited.
        found = await find(work, left.vm_id)
        if found is None or found["node"] == left.node:
            return None


async def _make(
    work: Work, entry: Entry, send: Callable[[Entry], Awaitable[Any]], place: Place, timeout_s: float
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
            if await appears(guest, entry, place, timeout_s=timeout_s):
                return
            if is_last:
                raise
        except (proxmox.RefusedError, proxmox.ProxmoxUnreachableError) as err:
            # The work may be done all the same: by a first call whose answer was lost, or before the error.
            is_certain = was_not_done(err) and not was_lost
            if not is_certain and await appears(guest, entry, place, timeout_s=timeout_s):
                return
            await journal.close(entry)
            raise
        except proxmox.TaskFailedError as err:
            if await appears(guest, entry, place, timeout_s=timeout_s):
                return
            if is_last or not any(text in str(err) for text in _BUSY):
                await journal.close(entry)
                raise
        else:
            return
        await work.client.pause(_FIRST_PAUSE_S * 2**attempt)


async def appears(guest: Guest, entry: Entry, place: Place, *, timeout_s: float) -> bool:
    """Tell whether a VM that was to be made is there, waiting for whoever still makes it.

    Raises:
        HalfMadeError: It stays half-made, and nothing shows whose it is.
    """
    if entry.upid:
        await _wait_quietly(guest.work, entry.upid, timeout_s)
    await guest.settle(timeout_s)
    deadline, pause = time.monotonic() + timeout_s, _FIRST_PAUSE_S
    while True:
        try:
            config = await guest.config()
        except proxmox.RefusedError as err:
            if isinstance(err, proxmox.MissingError) or "does not exist" in err.text:
                return False
            raise
        if config.get("lock") not in _BEING_MADE:
            return carries(config, entry.token)
        if time.monotonic() >= deadline or not await _is_at_work(guest, place):
            # It may have ended between the two questions.
            if (await _config(guest)).get("lock") not in _BEING_MADE:
                continue
            raise HalfMadeError(
                f"VM {guest.vm_id} on {guest.node} has the lock {config['lock']!r}, and no task makes it."
            )
        await guest.work.client.pause(pause)
        pause = min(pause * 2, _LONGEST_PAUSE_S)


async def _config(guest: Guest) -> dict[str, Any]:
    try:
        return await guest.config()
    except proxmox.MissingError:
        return {}


async def _wait_quietly(work: Work, upid: str, timeout_s: float) -> None:
    try:
        await proxmox.wait_for(work.client, upid, timeout_s=timeout_s)
    except (proxmox.TaskFailedError, proxmox.RefusedError, ValueError):
        # How it ended shows in what is there.
        return


async def _is_at_work(guest: Guest, place: Place) -> bool:
    """Tell whether a task could be the one that makes the VM; a clone's has the number of its source."""
    for node in {guest.node, place.node, place.worker}:
        path = f"/nodes/{proxmox.quoted(node)}/tasks"
        tasks = await guest.work.client.get(path, {"source": "active"})
        if any(task.get("type") in _MAKING and not task.get("endtime") for task in tasks or ()):
            return True
    return False
