"""Making something exactly once, although answers get lost and runs get killed.

What is about to be made is written down first. When the answer of the call is lost, or says nothing for sure,
we look whether the thing is there now, which it was not before. A run that was killed in between leaves its
entry, and the next one takes over what it finds, in place of failing because it is there. A guest carries the
token of its entry. An object that cannot is taken over only if it is what the call of that run says: anything
else was created or changed by someone else since.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import StackyardError
from stackyard.clients import proxmox
from stackyard.provider.journal import JournalSubject
from stackyard.provider.vm_ids import says_taken

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from stackyard.provider.journal import Entry
    from stackyard.provider.kinds import Work

__all__ = [
    "ObjectExistsError",
    "PartialGuestError",
    "create_object",
    "is_unsure",
    "make_subject",
    "note_seen",
    "was_not_done",
]

_ATTEMPTS = 3
_FIRST_UNSURE_STATUS = 500
# How Proxmox refuses a name that something has.
_EXISTS = re.compile(r"already (?:exists|defined)")


class PartialGuestError(StackyardError):
    """A guest was left half-made when its node went down, and cannot be told from somebody else's."""

    code = "E-PROVIDER-HALF-MADE"
    summary = "A guest is incomplete"
    default_remedy = (
        "Look at the guest on its node. If nothing of it is needed, remove it (`qm unlock` and `qm destroy` "
        "for a VM, `pct unlock` and `pct destroy` for a container), and repeat."
    )


class ObjectExistsError(StackyardError):
    """What is to be created is on the cluster already, and no run of ours has made it."""

    code = "E-PROVIDER-EXISTS"
    summary = "It exists on the cluster already"
    default_remedy = "Import it (`import { to = ..., id = ... }`), or give the new one another name."


def make_subject(work: Work, identity: str) -> JournalSubject:
    """Return how the journal knows an object that has a name of its own."""
    return JournalSubject(type_name=work.type_name, name=identity, key=f"object {identity}")


async def note_seen(work: Work, identity: str) -> None:
    """Note that an object is in the engine's state, or goes, so that no one has to look after it any more."""
    await work.session.journal.forget(make_subject(work, identity))


def is_unsure(err: proxmox.ProxmoxError) -> bool:
    """Return whether a call that failed may have done its work all the same."""
    if isinstance(err, proxmox.AnswerLostError):
        return True
    return isinstance(err, proxmox.RefusedError) and err.status >= _FIRST_UNSURE_STATUS


def was_not_done(err: StackyardError) -> bool:
    """Return whether a call that makes something surely did nothing: it was refused, or never sent."""
    if isinstance(err, proxmox.RefusedError):
        return err.call.method != "GET" and (err.status < _FIRST_UNSURE_STATUS or says_taken(err.text))
    return isinstance(err, proxmox.ProxmoxUnreachableError) and err.call.method != "GET"


async def create_object(
    work: Work,
    identity: str,
    *,
    sent: Mapping[str, Any],
    make: Callable[[], Awaitable[Any]],
    look: Callable[[], Awaitable[Any]],
    glance: Callable[[], Awaitable[Any]] | None = None,
) -> bool:
    """Make an object, or take over the one that a killed run of ours made.

    Args:
        work: The operation.
        identity: What names the object on the cluster, which is also the id to import it with.
        sent: What the call says of the object, its name left out.
        make: Sends the call.
        look: Returns what is there, or None.
        glance: The same, but what it finds may be gone by now, and what it does not find may be hidden, in
            which case Proxmox refuses the call. It is asked first, because it is cheap.

    Returns:
        Whether it was there from an earlier run, and may have other values than are wanted now.

    Raises:
        ObjectExistsError: Someone else made it, or nothing shows that we did.
        ProxmoxError: It cannot be created.
    """
    journal = work.session.journal
    entry = journal.take(make_subject(work, identity))
    if glance is None or entry is not None or await glance() is not None:
        found = await look()
    else:
        found = None
    if found is not None:
        if entry is not None and not (other := _differences(entry, found)):
            journal.leave(entry)
            return True
        raise await _make_exists_error(work, identity, entry, () if entry is None else other)
    if entry is not None and entry.sent != sent:
        entry = await journal.change(entry, sent=sent)
    entry = entry or await journal.begin(make_subject(work, identity), node="", vm_id=0, sent=sent)
    try:
        is_sure = await _make(work, entry, make, look)
        # Only a look tells that it was not there before. After a glance, what it is tells whose it is.
        if not is_sure and glance is not None and (other := _differences(entry, await look() or {})):
            raise await _make_exists_error(work, identity, entry, other)
    except proxmox.RefusedError as err:
        if _says_exists(err) and await look() is not None:
            raise await _make_exists_error(work, identity, None, ()) from err
        raise
    finally:
        journal.leave(entry)
    return False


def _differences(entry: Entry, found: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what of an object is not what the call of an entry says."""
    if entry.sent is None:
        return ("everything: an older version did not write down what it was to make",)
    now = {**found, **(found.get("pending") or {})}
    return tuple(name for name, value in entry.sent.items() if _plain(now.get(name)) != _plain(value))


def _plain(value: Any) -> list[str]:
    """Return a value as Proxmox may show it again: lists in any order, and no flag that is off."""
    text = str(int(value)) if isinstance(value, bool) else str("" if value is None else value)
    return sorted(part for part in re.split(r"[,;\s]+", text) if part not in ("", "0"))


async def _make_exists_error(
    work: Work, identity: str, entry: Entry | None, other: tuple[str, ...]
) -> ObjectExistsError:
    """Return the refusal to take over an object; an entry that does not fit it says nothing any more."""
    remedy = f"Import it with the id {identity}, choose another name, or remove it."
    if entry is None:
        return ObjectExistsError(f"{identity} exists already, and is not in the state.", remedy=remedy)
    await work.session.journal.close(entry)
    detail = (
        f"{identity} exists already, and is not what an interrupted run was to make. "
        f"It differs in {', '.join(other)}. Nothing of it was changed."
    )
    return ObjectExistsError(detail, remedy=f"Look whose it is. {remedy}")


async def _make(
    work: Work, entry: Entry, make: Callable[[], Awaitable[Any]], look: Callable[[], Awaitable[Any]]
) -> bool:
    """Send the call until it is known what came of it; the entry goes when nothing was created.

    Returns:
        Whether Proxmox said that it is created, and not only a look at what is there.
    """
    was_lost = False
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            await make()
        except (proxmox.ProxmoxError, proxmox.ProxmoxUnreachableError) as err:
            is_certain = (was_not_done(err) or _says_exists(err)) and not was_lost
            if not is_certain and await look() is not None:
                return False
            if isinstance(err, proxmox.AnswerLostError):
                was_lost = True
                # A refusal is an answer; only what was lost is worth another try.
                if attempt < _ATTEMPTS:
                    continue
            elif not was_lost:
                await work.session.journal.close(entry)
            raise
        return True
    return False


def _says_exists(err: StackyardError) -> bool:
    return isinstance(err, proxmox.RefusedError) and bool(_EXISTS.search(err.text))
