"""Tasks: what Proxmox does in a worker while the client polls a UPID.

A handler starts one inside its transaction and returns the UPID; the worker begins once the transaction is
kept. A worker is an `async def work(task)`: it logs, spends time by kind of work, and changes the store in
steps, each one transaction. It ends well, with warnings, or by raising `PveError`. Work that takes no time
is done before the answer of the call is sent.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from pvelab.server.problems import PveError, defect
from pvelab.world.access.directory import split_token
from pvelab.world.upid import Upid

if TYPE_CHECKING:
    from pvelab.faults.latency import Latency, Work
    from pvelab.world.clock import LabClock
    from pvelab.world.store import Document, Store

__all__ = ["COLLECTION", "Task", "TaskFaults", "Tasks", "WorkFunction"]

COLLECTION = "tasks"
LOST = "unexpected status"
INTERRUPTED = "received interrupt"

_FIRST_PID = 0x3E8
# What Proxmox rotates away by file size; the oldest finished tasks go first.
_MOST_KEPT = 20_000


class TaskFaults(Protocol):
    """Makes tasks fail on purpose."""

    def task_problem(self, upid: Upid, step: int) -> str | None:
        """Return the text with which a task is to fail at a step of its work (0: its end), or None."""
        ...

    def task_ended(self, upid: Upid) -> None:
        """Take note that a task has ended."""
        ...


class Task:
    """A running task, as its worker sees it."""

    def __init__(self, tasks: Tasks, upid: Upid) -> None:
        self._tasks = tasks
        self.upid = upid
        self.lines: list[str] = []
        self.warnings = 0
        self.logged = asyncio.Event()
        self._steps = 0

    def log(self, text: str) -> None:
        """Add lines to the task's log."""
        self.lines.extend(text.split("\n"))
        self.logged.set()

    def warn(self, text: str) -> None:
        """Add a warning: the task ends with `WARNINGS: n` instead of `OK`."""
        self.warnings += 1
        self.log(f"WARN: {text}")

    async def sleep(self, seconds: float) -> None:
        """Wait for lab time, whatever the speed of the lab."""
        await self._tasks.clock.sleep(seconds)

    async def spend(self, work: Work) -> None:
        """Take as long as this kind of work takes here; a planned failure of the task strikes afterwards.

        Raises:
            PveError: The task is meant to fail.
        """
        await self._tasks.clock.sleep(self._tasks.latency.seconds(work))
        self._steps += 1
        self.fail_if_meant_to(self._steps)

    def fail_if_meant_to(self, step: int) -> None:
        """Fail where a fault says so.

        Raises:
            PveError: The task is meant to fail at this step of its work (0: its end).
        """
        problem = self._tasks.faults.task_problem(self.upid, step)
        if problem is not None:
            raise PveError(problem)

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Make all changes of the block one transaction, and the log so far durable with it."""
        with self._tasks.store.transaction():
            yield
            self._tasks.save_log(self)

    def start(self, kind: str, ident: str | int, work: WorkFunction) -> str:
        """Start another task as the same user on the same node, inside a step; return its UPID."""
        return self._tasks.start(self.upid.node, kind, str(ident), authid=self.upid.user, work=work)


WorkFunction = Callable[[Task], Awaitable[None]]


class Tasks:
    """All tasks of the lab, running and past."""

    def __init__(self, store: Store, clock: LabClock, latency: Latency, faults: TaskFaults) -> None:
        self.store = store
        self.clock = clock
        self.latency = latency
        self.faults = faults
        self._booted = clock.now()
        self._live: dict[str, Task] = {}
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._not_begun: dict[str, asyncio.Event] = {}
        self._next_pid = _FIRST_PID

    def recover(self) -> None:
        """Take over the tasks of an earlier process: those that it did not finish ended unexpectedly."""
        ordered = sorted(
            self.store.items(COLLECTION).items(), key=lambda item: (item[1]["starttime"], item[0])
        )
        with self.store.transaction():
            for upid, document in ordered:
                self._next_pid = max(self._next_pid, document["pid"] + 1)
                self.store.delete(COLLECTION, upid)
                self.store.put(
                    COLLECTION, upid, document if document.get("status") else self._mark_lost(document)
                )

    def start(self, node: str, kind: str, ident: str, *, authid: str, work: WorkFunction) -> str:
        """Register a task in the running transaction and let it begin when that is kept; return its UPID."""
        now = self.clock.now()
        upid = Upid(
            node=node,
            pid=self._next_pid,
            pstart=int((now - self._booted) * 100) + 100_000,
            starttime=int(now),
            type=kind,
            id=ident,
            user=authid,
        )
        self._next_pid = self._next_pid + 1 if self._next_pid < 0x3FFFFF else _FIRST_PID
        self.store.put(COLLECTION, str(upid), _document(upid))
        self.store.after_commit(lambda: self._launch(upid, work))
        return str(upid)

    async def settle(self) -> None:
        """Let every task begin that was just started; those without latency are done after this."""
        while self._not_begun:
            await next(iter(self._not_begun.values())).wait()

    def get(self, upid: str) -> Document | None:
        """Return a task: its UPID's parts, and `status` and `endtime` once it is finished."""
        return self.store.get(COLLECTION, upid)

    def newest_first(self) -> Iterator[Document]:
        """Yield all tasks, the newest first."""
        return reversed(list(self.store.items(COLLECTION).values()))

    def lines(self, upid: str) -> list[str]:
        """Return the log of a task so far."""
        live = self._live.get(upid)
        if live is not None:
            return list(live.lines)
        document = self.get(upid)
        return list(document["log"]) if document is not None else []

    async def follow(self, upid: str) -> AsyncIterator[str]:
        """Yield the lines of a task's log as they come, but for the last one, which shows how it ended."""
        shown = 0
        while (live := self._live.get(upid)) is not None:
            live.logged.clear()
            lines = live.lines[shown:]
            shown += len(lines)
            for line in lines:
                yield line
            more = asyncio.ensure_future(live.logged.wait())
            try:
                workers = [worker for name, worker in self._workers.items() if name == upid]
                await asyncio.wait({more, *workers}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                more.cancel()
        for line in self.lines(upid)[shown:-1]:
            yield line

    def is_running(self, upid: str) -> bool:
        """Return whether a task still works."""
        return upid in self._live

    def stop(self, upid: str) -> None:
        """Interrupt a task, if it runs."""
        worker = self._workers.get(upid)
        if worker is not None:
            worker.cancel()

    async def wait(self, upid: str) -> None:
        """Wait for the end of a task."""
        worker = self._workers.get(upid)
        if worker is not None:
            await asyncio.wait({worker})

    async def close(self) -> None:
        """Interrupt every task and wait until all have ended."""
        workers = list(self._workers.values())
        await self.settle()
        for worker in workers:
            worker.cancel()
        if workers:
            await asyncio.wait(workers)

    def save_log(self, task: Task) -> None:
        """Write the log of a running task to the store, in the running transaction."""
        document = self.get(str(task.upid))
        if document is not None and len(document["log"]) != len(task.lines):
            self.store.put(COLLECTION, str(task.upid), {**document, "log": list(task.lines)})

    def _launch(self, upid: Upid, work: WorkFunction) -> None:
        name = str(upid)
        task = self._live[name] = Task(self, upid)
        self._not_begun[name] = asyncio.Event()
        self._workers[name] = asyncio.get_running_loop().create_task(self._run(task, work), name=name)

    async def _run(self, task: Task, work: WorkFunction) -> None:
        name = str(task.upid)
        # Who waits for this resumes in the next turn of the loop: after all that this worker does at once.
        self._not_begun.pop(name).set()
        try:
            await work(task)
            task.fail_if_meant_to(0)
            last = f"TASK WARNINGS: {task.warnings}" if task.warnings else "TASK OK"
        except PveError as err:
            last = f"TASK ERROR: {' '.join(err.text.split(chr(10))).strip()}"
        except asyncio.CancelledError:
            last = f"TASK ERROR: {INTERRUPTED}"
        except (
            Exception
        ) as err:  # The edge of a worker: whatever went wrong, the client must see the task end.
            last = f"TASK ERROR: {' '.join(defect(name, err).text.split())}"
        task.lines.append(last)
        try:
            with self.store.transaction():
                self._finish(task, _exit_status(last))
        finally:
            self.faults.task_ended(task.upid)
            del self._live[name]
            del self._workers[name]

    def _finish(self, task: Task, status: str) -> None:
        name = str(task.upid)
        document = self.get(name) or _document(task.upid)
        ended = {"log": list(task.lines), "status": status, "endtime": int(self.clock.now())}
        self.store.put(COLLECTION, name, {**document, **ended})
        kept = self.store.items(COLLECTION)
        if len(kept) > _MOST_KEPT:
            oldest = next((key for key, found in kept.items() if found.get("status")), None)
            if oldest is not None:
                self.store.delete(COLLECTION, oldest)

    def _mark_lost(self, document: Document) -> Mapping[str, Any]:
        return {**document, "status": LOST, "endtime": int(self.clock.now())}


def _document(upid: Upid) -> dict[str, Any]:
    user, token = split_token(upid.user)
    document: dict[str, Any] = {
        "upid": str(upid),
        "node": upid.node,
        "pid": upid.pid,
        "pstart": upid.pstart,
        "starttime": upid.starttime,
        "type": upid.type,
        "id": upid.id,
        "user": user,
        "log": [],
    }
    if token is not None:
        document["tokenid"] = token
    return document


def _exit_status(last: str) -> str:
    """Read the last line of a log as Proxmox does."""
    if last == "TASK OK":
        return "OK"
    return last.removeprefix("TASK ERROR: ").removeprefix("TASK ")
