"""Making something exactly once, although answers get lost and runs get killed.

What is about to be made is written down first. When the answer of the call is lost, or says nothing for sure,
we look whether the thing is there now, which it was not before. A run that was killed in between leaves its
entry, and the next one takes over what it finds, in place of failing because it is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard import proxmox
from stackyard.errors import StackyardError
from stackyard.provider.journal import Subject

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from stackyard.provider.kinds import Work

__all__ = ["ObjectExistsError", "create_object", "is_unsure", "note_seen", "subject_named"]

_ATTEMPTS = 3
_FIRST_UNSURE_STATUS = 500


class ObjectExistsError(StackyardError):
    """What is to be made is on the cluster already, and no run of ours has made it."""

    code = "E-PROVIDER-EXISTS"
    summary = "It exists on the cluster already"
    default_remedy = "Import it (`import { to = ..., id = ... }`), or give the new one another name."


def subject_named(work: Work, identity: str) -> Subject:
    """Return how the journal knows an object that has a name of its own."""
    return Subject(type_name=work.type_name, name=identity, key=f"object {identity}")


async def note_seen(work: Work, identity: str) -> None:
    """Note that an object is in the engine's state, or goes, so that nobody has to look after it any more."""
    await work.session.journal.forget(subject_named(work, identity))


def is_unsure(err: proxmox.ProxmoxError) -> bool:
    """Tell whether a call that failed may have done its work all the same."""
    if isinstance(err, proxmox.AnswerLostError):
        return True
    return isinstance(err, proxmox.RefusedError) and err.status >= _FIRST_UNSURE_STATUS


async def create_object(
    work: Work,
    identity: str,
    *,
    make: Callable[[], Awaitable[Any]],
    look: Callable[[], Awaitable[Any]],
) -> bool:
    """Make an object, or take over the one that a killed run of ours made.

    Args:
        work: The operation.
        identity: What names the object on the cluster, which is also the id to import it with.
        make: Sends the call.
        look: Returns what is there, or None.

    Returns:
        Whether it was there from an earlier run, and may have other values than are wanted now.

    Raises:
        ObjectExistsError: Somebody else made it.
        ProxmoxError: It cannot be made.
    """
    journal = work.session.journal
    entry = journal.take(subject_named(work, identity))
    if await look() is not None:
        if entry is None:
            raise ObjectExistsError(
                f"{identity} exists already, and is not in the state.",
                remedy=f"Import it with the id {identity}, choose another name, or remove it.",
            )
        journal.leave(entry)
        return True
    entry = entry or await journal.begin(subject_named(work, identity), node="", vm_id=0)
    try:
        await _make(make, look)
    except proxmox.ProxmoxError as err:
        if not is_unsure(err):
            await journal.close(entry)
        raise
    finally:
        journal.leave(entry)
    return False


async def _make(make: Callable[[], Awaitable[Any]], look: Callable[[], Awaitable[Any]]) -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            await make()
        except proxmox.ProxmoxError as err:
            if not is_unsure(err):
                raise
            if await look() is None:
                # A refusal is an answer; only what was lost is worth another try.
                if attempt < _ATTEMPTS and isinstance(err, proxmox.AnswerLostError):
                    continue
                raise
        return
