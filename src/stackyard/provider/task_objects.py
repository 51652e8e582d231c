"""Objects that Proxmox makes and removes in tasks, each exactly once.

The call that makes one answers with a task. What is about to be made is written down first, together with the
tasks that the node had before. A run that was killed leaves its entry: the next one waits for the task, and
takes over what is there if that task ended well and was asked for the same. An answer that was lost is found
again as the only later task about the object.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.create_once import ObjectExistsError, is_unsure, make_subject
from stackyard.provider.file_tasks import ended_well, later_tasks_about, latest_tasks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from stackyard.provider.journal import Entry
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["TaskCreation", "create_in_task", "remove_in_task"]

_ATTEMPTS = 3
# How an entry of the journal notes what the call says.
_PARAMS = "params"

Found = dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCreation:
    """A call that makes an object in a task.

    Attributes:
        identity: What names the object on the cluster, which is also the id to import it with.
        node: Where the task runs.
        kind: The type of the task.
        about: The object that the task is named after.
        path: The path of the call.
        params: Its parameters.
        timeout_s: How long the task may take.
        look: Returns what is there, or None.
        is_of_task: Tells whether what is there is from a task, where more than its name can tell.
    """

    identity: str
    node: str
    kind: str
    about: str
    path: str
    params: Mapping[str, Any]
    timeout_s: float
    look: Callable[[], Awaitable[Found]]
    is_of_task: Callable[[Mapping[str, Any], Mapping[str, Any]], bool] = lambda found, task: True


async def create_in_task(work: Work, creation: TaskCreation, state: Object) -> None:
    """Make an object, or take over the one that a killed run of ours made.

    Args:
        work: The operation.
        creation: The call.
        state: What the engine is to know if only a part of the object could be made.

    Raises:
        ObjectExistsError: Someone else made it, or nothing shows that we did.
        ProxmoxError: It cannot be created.
    """
    journal, subject = work.session.journal, make_subject(work, creation.identity)
    entry = journal.take(subject)
    if entry is not None:
        await _await_tasks(work, creation, entry)
    found = await creation.look()
    if found is not None:
        await _require_ours(work, creation, entry, found)
        return
    sent = {
        **await latest_tasks(work, creation.node, creation.kind),
        _PARAMS: _sent(creation),
    }
    if entry is None:
        entry = await journal.begin(subject, node=creation.node, vm_id=0, sent=sent)
    else:
        entry = await journal.change(entry, sent=sent, upid="")
    try:
        await _make(work, creation, entry, state)
    finally:
        journal.leave(entry)


async def remove_in_task(
    work: Work,
    path: str,
    params: Mapping[str, Any],
    *,
    look: Callable[[], Awaitable[Found]],
    timeout_s: float,
) -> None:
    """Remove an object; one that is gone already is no error."""
    try:
        upid = await work.client.delete(path, dict(params))
        await proxmox.wait_for(work.client, upid, timeout_s=timeout_s)
    except (proxmox.RefusedError, proxmox.TaskFailedError):
        if await look() is not None:
            raise


def _sent(creation: TaskCreation) -> dict[str, Any]:
    return {name: value for name, value in creation.params.items() if value is not None}


async def _await_tasks(work: Work, creation: TaskCreation, entry: Entry) -> None:
    """Wait until what the run of an entry began has ended, well or not."""
    for task in await later_tasks_about(work, entry, kind=creation.kind, about=creation.about):
        if not task.get("endtime"):
            with contextlib.suppress(proxmox.TaskFailedError):
                await proxmox.wait_for(work.client, str(task["upid"]), timeout_s=creation.timeout_s)


async def _require_ours(
    work: Work, creation: TaskCreation, entry: Entry | None, found: Mapping[str, Any]
) -> None:
    """Refuse to take over an object, unless the task of an entry made it as it is wanted now.

    Raises:
        ObjectExistsError: Nothing shows that it did.
    """
    remedy = f"Import it with the id {creation.identity}, choose another name, or remove it."
    if entry is None:
        raise ObjectExistsError(
            f"{creation.identity} exists already, and is not in the state.", remedy=remedy
        )
    tasks = await later_tasks_about(work, entry, kind=creation.kind, about=creation.about)
    before, now = (entry.sent or {}).get(_PARAMS) or {}, _sent(creation)
    other = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    is_ours = len(tasks) == 1 and ended_well(tasks[0]) and creation.is_of_task(found, tasks[0])
    if is_ours and not other:
        work.session.journal.leave(entry)
        return
    await work.session.journal.close(entry)
    reason = (
        f"It was to be made with other values of {', '.join(other)}"
        if is_ours
        else "Nothing shows that it is what that run made"
    )
    raise ObjectExistsError(
        f"{creation.identity} exists already. A run that was to create it was interrupted. {reason}. "
        "Nothing of it was changed.",
        remedy=f"Look whose it is. {remedy}",
    )


async def _make(work: Work, creation: TaskCreation, entry: Entry, state: Object) -> None:
    journal = work.session.journal
    try:
        upid = await _send(work, creation, entry)
        entry = await journal.change(entry, upid=upid)
        await proxmox.wait_for(work.client, upid, timeout_s=creation.timeout_s)
    except proxmox.TaskFailedError:
        if await creation.look() is not None:
            # The engine replaces what is only half there.
            work.keep(state)
        await journal.close(entry)
        raise
    except (proxmox.ProxmoxError, proxmox.ProxmoxUnreachableError) as err:
        # Only a call that was refused or never sent has surely begun nothing.
        if err.call.method != "GET" and not isinstance(err, proxmox.AnswerLostError):
            await journal.close(entry)
        raise


async def _send(work: Work, creation: TaskCreation, entry: Entry) -> str:
    """Send the call until it is known what came of it, and return the task."""
    attempts = 0
    while True:
        attempts += 1
        try:
            return str(await work.client.post(creation.path, dict(creation.params)))
        except proxmox.ProxmoxError as err:
            if not is_unsure(err):
                raise
            tasks = await later_tasks_about(work, entry, kind=creation.kind, about=creation.about)
            if tasks:
                return str(tasks[0]["upid"])
            # A refusal is an answer; only what was lost is worth another try.
            if attempts == _ATTEMPTS or not isinstance(err, proxmox.AnswerLostError):
                raise
