"""What the nodes do of what the manager decides: they start, stop and move guests, each in a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pvelab.world.ha.manager import PAUSE_S, Service, StartOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["Agent", "TaskStarter"]

_QUIET = frozenset(("recovery", "freeze", "request_start", "fence", "error"))
_EAGER_RETRIES = 3


class TaskStarter(Protocol):
    """Starts the tasks; each returns the UPID, in the running transaction."""

    def start(self, world: World, guest: Document) -> str:
        """Start a guest."""
        ...

    def stop(self, world: World, guest: Document, timeout_s: int) -> str:
        """Shut a guest down, by force after the timeout; with none of it at once."""
        ...

    def move(self, world: World, guest: Document, target: str, *, online: bool) -> str:
        """Take a guest to another node, running or stopped."""
        ...


@dataclass(slots=True, kw_only=True)
class _Job:
    """A task that a node works on for the manager."""

    upid: str
    uid: str
    state: str
    target: str | None = None
    # A guest that is to move while it is stopped is shut down first.
    then_move: bool = False


class Agent:
    """The agents of all nodes.

    Args:
        world: The lab.
        task_starter: What starts the tasks.
    """

    def __init__(self, world: World, task_starter: TaskStarter) -> None:
        self._world = world
        self._task_starter = task_starter
        self._jobs: dict[str, _Job] = {}
        self._tries: dict[str, int] = {}
        self.results: dict[str, int] = {}
        self.retry_at: dict[str, float] = {}

    def has_task(self, upid: str) -> bool:
        """Return whether a task is one of the agents'."""
        return any(job.upid == upid for job in self._jobs.values())

    def collect(self, resources: Mapping[str, Mapping[str, Any]]) -> None:
        """Take note of the tasks that have ended."""
        for sid, job in list(self._jobs.items()):
            document = self._world.tasks.get(job.upid)
            if document is not None and not document.get("status"):
                continue
            del self._jobs[sid]
            guest = self._guest(sid)
            if guest is not None:
                self._finish(sid, job, guest, int(resources.get(sid, {}).get("max_restart", 0)))

    def work(self, services: Mapping[str, Service], modes: Mapping[str, str], online: list[str]) -> bool:
        """Do what the states of the resources ask for; return whether something of it is done already."""
        self.results = {
            uid: outcome
            for uid, outcome in self.results.items()
            if any(service["uid"] == uid for service in services.values())
        }
        before = len(self.results)
        for sid, service in sorted(services.items()):
            if service["node"] in online and modes.get(service["node"]) not in ("disarm", "shutdown"):
                self._run_service(sid, service)
        return len(self.results) != before

    def _run_service(self, sid: str, service: Service) -> None:
        state, uid = str(service["state"]), str(service["uid"])
        if state in _QUIET or sid in self._jobs or self.retry_at.get(sid, 0.0) > self._world.clock.now():
            return
        guest = self._guest(sid)
        is_up = guest is not None and guest["status"] == "running"
        # A guest that should run and does not is started, however well its last start has ended.
        if uid in self.results and state != "stopped" and (state != "started" or is_up):
            return
        if guest is None or guest["node"] != service["node"]:
            self.results[uid] = StartOutcome.WRONG_NODE
        elif state == "started":
            self._keep_up(sid, service, guest)
        elif state in ("request_stop", "stopped"):
            self._keep_down(sid, service, guest)
        else:
            self._move(sid, service, guest)

    def _keep_up(self, sid: str, service: Service, guest: Document) -> None:
        if guest["status"] == "running":
            self.results[service["uid"]] = StartOutcome.SUCCESS
        elif self.results.get(service["uid"], StartOutcome.SUCCESS) == StartOutcome.SUCCESS:
            self.results.pop(service["uid"], None)
            self._jobs[sid] = _Job(
                upid=self._task_starter.start(self._world, guest), uid=service["uid"], state="started"
            )

    def _keep_down(self, sid: str, service: Service, guest: Document) -> None:
        if guest["status"] != "running":
            self.results[service["uid"]] = StartOutcome.SUCCESS
            return
        upid = self._task_starter.stop(self._world, guest, int(service.get("timeout", 60)))
        self._jobs[sid] = _Job(upid=upid, uid=service["uid"], state=str(service["state"]))

    def _move(self, sid: str, service: Service, guest: Document) -> None:
        state, target = str(service["state"]), str(service["target"])
        is_up = guest["status"] == "running"
        if state == "request_start_balance" and is_up:
            self.results[service["uid"]] = StartOutcome.IGNORED
            return
        online = state == "migrate" and guest["type"] == "qemu"
        job = _Job(upid="", uid=service["uid"], state=state, target=target)
        if is_up and not online:
            job.upid, job.then_move = self._task_starter.stop(self._world, guest, 60), True
        else:
            job.upid = self._task_starter.move(self._world, guest, target, online=online and is_up)
        self._jobs[sid] = job

    def _finish(self, sid: str, job: _Job, guest: Document, max_restart: int) -> None:
        is_up = guest["status"] == "running"
        if job.then_move and not is_up:
            job.then_move = False
            job.upid = self._task_starter.move(self._world, guest, str(job.target), online=False)
            self._jobs[sid] = job
        elif job.target is not None:
            self._set(job, StartOutcome.SUCCESS if guest["node"] == job.target else StartOutcome.ERROR)
        elif job.state == "started":
            self._judge_start(sid, job, max_restart, is_up=is_up)
        else:
            self._set(job, StartOutcome.ERROR if is_up else StartOutcome.SUCCESS)
            if is_up:
                # Something keeps it up, a lock perhaps; it is not told to stop again at once.
                self.retry_at[sid] = self._world.clock.now() + PAUSE_S

    def _judge_start(self, sid: str, job: _Job, max_restart: int, *, is_up: bool) -> None:
        tries = self._tries.pop(sid, 0)
        if is_up:
            self._set(job, StartOutcome.SUCCESS)
        elif tries >= max_restart:
            self._set(job, StartOutcome.ERROR)
        else:
            self._tries[sid] = tries + 1
            if tries >= _EAGER_RETRIES:
                self.retry_at[sid] = self._world.clock.now() + PAUSE_S

    def _set(self, job: _Job, outcome: int) -> None:
        self.results[job.uid] = outcome

    def _guest(self, sid: str) -> Document | None:
        kind, _, vmid = sid.partition(":")
        guest = self._world.guests.get(vmid)
        return guest if guest is not None and guest["type"] == {"vm": "qemu", "ct": "lxc"}.get(kind) else None
