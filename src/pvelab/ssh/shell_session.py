"""Someone at the shell of a node: which node, which user, and the API calls that programs make for him."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from pvelab.server.dispatch import ConnectionDropped, Request
from pvelab.server.problems import PveError
from pvelab.world.access.directory import ROOT
from pvelab.world.access.login import Identity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.dispatch import Dispatcher
    from pvelab.server.routing import Match
    from pvelab.ssh.files import NodeFiles
    from pvelab.world.world import World

__all__ = ["ShellSession", "TaskOutcome"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutcome:
    """How a task ended: what it logged, what went wrong if something did, and how often it warned."""

    lines: tuple[str, ...]
    problem: str | None
    warnings: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellSession:
    """A user at a node."""

    world: World
    dispatcher: Dispatcher
    node: str
    user: str
    files: NodeFiles

    @property
    def is_root(self) -> bool:
        """Whether it is root, who needs no sudo."""
        return self.user == "root"

    async def call(self, method: str, path: str, parameters: Mapping[str, Any] | None = None) -> Any:
        """Make a call of the API as root and return its data.

        Raises:
            PveError: It is refused.
        """
        request = Request(
            method=method, path=path, identity=Identity(authid=ROOT), parameters=dict(parameters or {})
        )
        try:
            answer = await self.dispatcher.perform(request)
        except ConnectionDropped as err:
            raise PveError("broken pipe") from err
        if answer.status >= 400:
            raise PveError(answer.message or answer.reason, status=answer.status, errors=answer.errors)
        # Lists may hold parts that are printed already.
        return orjson.loads(orjson.dumps(answer.data, option=orjson.OPT_NON_STR_KEYS))

    def find(self, method: str, path: str) -> Match | None:
        """Return the method that answers at a path, None if Proxmox has none there."""
        return self.dispatcher.table.find(method, path)

    def child_name(self, path: str) -> str | None:
        """Return the variable that a path can continue with: `vmid` for the guests of a node."""
        return self.dispatcher.table.below(path)[0]

    def has_children(self, path: str) -> bool:
        """Return whether there is anything below a path."""
        name, fixed = self.dispatcher.table.below(path)
        return name is not None or bool(fixed)

    async def finish(self, upid: str) -> TaskOutcome:
        """Wait for the end of a task."""
        tasks = self.world.tasks
        await tasks.wait(upid)
        lines = tuple(tasks.lines(upid))
        status = str((tasks.get(upid) or {}).get("status"))
        is_good = status == "OK" or status.startswith("WARNINGS")
        warnings = int(status.rpartition(" ")[2]) if status.startswith("WARNINGS") else 0
        return TaskOutcome(lines=lines[:-1], problem=None if is_good else status, warnings=warnings)
