"""Making a guest exactly once: written down first, and found again whatever happens on the way.

A guest carries the token of its entry in the journal: from the call that makes it until it is finished at the
end of its description, a VM afterwards as its generation id. Of a finished container, the task that made it
tells whose it is.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.backoff import Backoff
from stackyard.clients import proxmox
from stackyard.provider.create_once import PartialGuestError, was_not_done
from stackyard.provider.guests.guest import Guest, find_guest
from stackyard.provider.journal import subject_of
from stackyard.provider.vm_ids import make_taken_error, says_taken

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from stackyard.provider.guests.guest import GuestKind
    from stackyard.provider.journal import Entry
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["ATTEMPTS", "CreatedGuest", "Creation", "left_on_failure", "make_once", "mark_description"]

ATTEMPTS = 5
# The locks of a guest that a task makes, as a new one or as a clone.
_BEING_MADE = ("create", "clone")
# What a task says that gave up because somebody else held a lock: it did nothing.
_BUSY = ("got timeout", "got lock request timeout", "got lock timeout")
# After one of these, a container is another one than before. A clone is a task of its source.
_REPLACING = ("vzcreate", "vzrestore", "vzdestroy")
_BACKOFF = Backoff(0.05, 2.0)
_FIRST_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """A guest that is to be made by one call.

    Attributes:
        kind: What it is.
        node: The node that has it afterwards.
        worker: The node whose task makes it: for a clone, that of its source.
        send: Sends the call and returns the id of its task.
        timeout_s: How long it may take.
        waits: Whether it is made only when the task has ended; otherwise the caller waits for that.
        attempts: How often the call is sent, where locks or lost answers are in its way.
    """

    kind: GuestKind
    node: str
    worker: str
    send: Callable[[Entry], Awaitable[Any]]
    timeout_s: float
    waits: bool = True
    attempts: int = ATTEMPTS


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedGuest:
    """A guest that is there, and whether this run made it.

    Attributes:
        guest: The guest.
        entry: What the journal says about it.
        is_taken_over: Whether an earlier run made it.
    """

    guest: Guest
    entry: Entry
    is_taken_over: bool


def mark_description(description: str | None, token: str) -> str:
    """Return a description that carries a token, which at first a guest can carry nowhere else."""
    return f"{(description or '').rstrip()}\n\nmade-by-stackyard: {token}".strip()


@contextlib.contextmanager
def left_on_failure(work: Work, entry: Entry) -> Iterator[None]:
    """End the work on an entry when the block fails; when it ends well, the caller continues with it."""
    with contextlib.ExitStack() as leaving:
        leaving.callback(work.session.journal.leave, entry)
        yield
        leaving.pop_all()


async def make_once(work: Work, planned: Object, creation: Creation) -> CreatedGuest:
    """Make a guest, unless an earlier run has done it already.

    Args:
        work: The operation.
        planned: What is to be made; its `vm_id` or `name` is how another run recognises it.
        creation: How it is made.

    Raises:
        VmIdTakenError: Another guest has the vm id that the configuration gives.
        PartialGuestError: It stays half-made, and nothing shows whose it is.
        ProxmoxError: It could not be made, or nobody can say whether it was.
    """
    journal, subject = work.session.journal, subject_of(work.type_name, planned)
    left = journal.take(subject)
    if left is not None:
        found = await _find_left(work, creation, left)
        if found is not None:
            return _created(work, creation, found, is_taken_over=True)
        await journal.close(left)
    configured = planned.get("vm_id")
    number = configured if isinstance(configured, int) and configured > 0 else None
    while True:
        vm_id = await _choose_id(work, number, creation.kind)
        entry = await journal.begin(subject, node=creation.node, vm_id=vm_id)
        try:
            with left_on_failure(work, entry):
                entry = await _make(work, creation, entry)
            return _created(work, creation, entry, is_taken_over=False)
        except proxmox.RefusedError as err:
            if not says_taken(err.text):
                raise
            if number is not None:
                raise await make_taken_error(work.client, vm_id, err.text) from err
            # Somebody else has taken the number since we looked.
            work.session.ids.reject(vm_id)


def _created(work: Work, creation: Creation, entry: Entry, *, is_taken_over: bool) -> CreatedGuest:
    guest = Guest(work=work, node=entry.node, vm_id=entry.vm_id, kind=creation.kind)
    return CreatedGuest(guest=guest, entry=entry, is_taken_over=is_taken_over)


async def _choose_id(work: Work, number: int | None, kind: GuestKind) -> int:
    if number is None:
        return await work.session.ids.reserve(work.client, work.session.settings)
    if kind.keeps_token:
        return number
    try:
        # Were it taken, a lost answer could not be told from somebody else's guest.
        await work.client.get("/cluster/nextid", {"vmid": number})
    except proxmox.RefusedError as err:
        if not says_taken(err.text):
            raise
        raise await make_taken_error(work.client, number, err.text) from err
    return number


async def _find_left(work: Work, creation: Creation, left: Entry) -> Entry | None:
    """Return the entry of a guest that another run was making, with its node now; None when it is nowhere."""
    left = await _follow(work, creation, left)
    while not await _appears(work, creation, left):
        # What was on its way to another node has arrived there while we waited.
        before, left = left, await _follow(work, creation, left)
        if left.node == before.node:
            return None
    return left


async def _follow(work: Work, creation: Creation, left: Entry) -> Entry:
    """Return an entry with the node that has its guest now; only one that carries its token is followed."""
    found = await find_guest(work, left.vm_id, creation.kind) if creation.kind.keeps_token else None
    if found is None or found["node"] == left.node:
        return left
    return await work.session.journal.change(left, node=str(found["node"]))


async def _make(work: Work, creation: Creation, entry: Entry) -> Entry:
    """Send the call until it is known what came of it; the entry goes when nothing was made."""
    journal, was_lost = work.session.journal, False
    work.session.waits.assign(entry.vm_id, entry.subject.name)
    for attempt in range(1, creation.attempts + 1):
        is_last = attempt == creation.attempts
        try:
            upid = str(await creation.send(entry))
            entry = await journal.change(entry, upid=upid)
            if creation.waits:
                await proxmox.wait_for(work.client, upid, timeout_s=creation.timeout_s)
        except proxmox.AnswerLostError:
            was_lost = True
            if await _appears(work, creation, entry):
                return entry
            if is_last:
                raise
        except (proxmox.RefusedError, proxmox.ProxmoxUnreachableError) as err:
            # The work may be done all the same: by a first call whose answer was lost, or before the error.
            is_certain = was_not_done(err) and not was_lost
            if not is_certain and await _appears(work, creation, entry):
                return entry
            await journal.close(entry)
            raise
        except proxmox.TaskFailedError as err:
            if await _appears(work, creation, entry):
                return entry
            if is_last or not any(text in str(err) for text in _BUSY):
                await journal.close(entry)
                raise
        else:
            return entry
        await work.client.pause(_FIRST_PAUSE_S * 2**attempt)
    raise AssertionError("the last attempt raises")


async def _appears(work: Work, creation: Creation, entry: Entry) -> bool:
    """Tell whether a guest that was to be made is there, waiting for whoever still makes it."""
    guest = Guest(work=work, node=entry.node, vm_id=entry.vm_id, kind=creation.kind)
    config = await _wait_until_made(guest, creation, entry)
    if config is None:
        return False
    return _carries(config, entry.token) or (
        not guest.kind.keeps_token and await _is_ours_still(guest, entry)
    )


def _carries(config: Mapping[str, Any], token: str) -> bool:
    return config.get("vmgenid") == token or str(config.get("description", "")).rstrip().endswith(token)


async def _is_ours_still(guest: Guest, entry: Entry) -> bool:
    """Tell whether the task that made our guest ended well, and nobody has made another one since."""
    client = guest.work.client
    if not entry.upid:
        return False
    try:
        await proxmox.wait_for(client, entry.upid, timeout_s=client.connection.patience_s)
    except proxmox.ProxmoxError:
        return False
    listed = await client.get(guest.tasks_path, {"vmid": guest.vm_id, "source": "all"})
    since = int(entry.upid.split(":")[4], 16)
    others = (one for one in listed if one["type"] in _REPLACING and one["upid"] != entry.upid)
    return all(int(one["starttime"]) <= since for one in others)


async def _wait_until_made(guest: Guest, creation: Creation, entry: Entry) -> dict[str, Any] | None:
    """Return the configuration of what an entry stands for, once no task makes it any more.

    Returns:
        None when it is not on its node.

    Raises:
        PartialGuestError: It stays half-made, and nothing shows whose it is.
    """
    if entry.upid:
        # How it ended shows in what is there.
        with contextlib.suppress(proxmox.TaskFailedError, proxmox.RefusedError, ValueError):
            await proxmox.wait_for(guest.work.client, entry.upid, timeout_s=creation.timeout_s)
    await guest.settle(creation.timeout_s)
    deadline, pauses = time.monotonic() + creation.timeout_s, iter(_BACKOFF)
    while True:
        config = await guest.find_config()
        if config is not None and config.get("lock") not in _BEING_MADE:
            return config
        found = await find_guest(guest.work, guest.vm_id, max_age_s=0) if config is None else None
        if config is None and (found is None or found["node"] == guest.node):
            return None
        nodes = {guest.node, creation.node, creation.worker, *((str(found["node"]),) if found else ())}
        if time.monotonic() >= deadline or not await _is_at_work(guest, nodes):
            # It may have ended between the two questions.
            config = await guest.find_config()
            if config is not None and config.get("lock") in _BEING_MADE:
                noun = guest.kind.noun[0].upper() + guest.kind.noun[1:]
                who = f"{noun} {guest.vm_id} on {guest.node}"
                raise PartialGuestError(f"{who} has the lock {config['lock']!r}, and no task makes it.")
            return config
        await guest.work.client.pause(next(pauses))


async def _is_at_work(guest: Guest, nodes: set[str]) -> bool:
    """Tell whether a task could be the one that makes a guest; a clone's has the number of its source."""
    for node in nodes:
        tasks = await guest.work.client.get(guest.on(node).tasks_path, {"source": "active"})
        if any(task.get("type") in guest.kind.making and not task.get("endtime") for task in tasks or ()):
            return True
    return False
