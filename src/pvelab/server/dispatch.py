"""From a request to its answer: route, permission, node, parameters, handler. In this order, as Proxmox does.

It knows nothing of HTTP, so that other doors (a shell command that is really an API call) use it too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pvelab.faults.faults import Point, Strike
from pvelab.server.call import Call, Upload
from pvelab.server.problems import PveError, bad_parameter, defect, not_permitted
from pvelab.world.access.checks import check_call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.routing import Match, Table
    from pvelab.world.access.login import Identity
    from pvelab.world.world import World

__all__ = ["Answer", "ConnectionDropped", "Dispatcher", "Request"]

# Clients refuse a status line of more than eight kilobytes; the body has the whole text.
_LONGEST_REASON = 2000


class ConnectionDropped(Exception):  # noqa: N818 - it is not an error: a fault asked for it
    """The connection is to be cut here, without an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A call from someone who is known, its parameters not looked at yet."""

    method: str
    path: str
    identity: Identity
    parameters: Mapping[str, Any] = field(default_factory=dict)
    upload: Upload | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to the caller."""

    status: int = 200
    reason: str = "OK"
    data: Any = None
    message: str | None = None
    errors: Mapping[str, str] | None = None
    total: int | None = None
    changes: str | None = None
    bare: bool = False

    @classmethod
    def refusal(cls, problem: PveError) -> Answer:
        """Return the answer that a refused call gets."""
        first, _, _ = problem.text.strip().partition("\n")
        return cls(
            status=problem.status,
            reason=first[:_LONGEST_REASON],
            message=problem.text.rstrip("\n") + "\n",
            errors=problem.errors,
            bare=problem.bare,
        )


class Dispatcher:
    """Answers calls."""

    def __init__(self, world: World, table: Table) -> None:
        self._world = world
        self._table = table

    @property
    def table(self) -> Table:
        """All methods of the API."""
        return self._table

    async def perform(self, request: Request) -> Answer:
        """Answer one call; refusals are answers too.

        Raises:
            ConnectionDropped: A fault says that the caller gets no answer.
        """
        node = _node_in(request.path)
        try:
            await self.strike(Point.BEFORE_WORK, request.method, request.path, node)
            answer = await self._perform(request)
        except PveError as problem:
            answer = Answer.refusal(problem)
        except ConnectionDropped:
            raise
        except (
            Exception
        ) as err:  # The edge of a call: a defect of one handler must not take the others along.
            answer = Answer.refusal(defect(f"{request.method} {request.path}", err))
        try:
            await self.strike(Point.AFTER_WORK, request.method, request.path, node)
        except PveError as problem:
            answer = Answer.refusal(problem)
        return answer

    async def strike(self, point: Point, method: str, path: str, node: str) -> None:
        """Let a fault strike at a point of a call, if one is due there.

        Raises:
            PveError: The fault answers in place of the call.
            ConnectionDropped: The fault cuts the connection.
        """
        strike: Strike | None = self._world.faults.strike(point, method, path, node)
        if strike is None:
            return
        await self._world.clock.sleep(strike.delay_s)
        if strike.drop:
            raise ConnectionDropped
        if strike.status is not None:
            raise PveError(strike.reason, status=strike.status, bare=strike.status >= 595)

    async def _perform(self, request: Request) -> Answer:
        match = self._find(request)
        given = _merge_parameters(match.parameters, request.parameters)
        self._permit(request, match, given)
        if match.endpoint.method.on_node and given["node"] != "localhost":
            self._world.cluster.require_node(str(given["node"]))
        call = Call(
            world=self._world,
            authid=request.identity.authid or "",
            params=match.endpoint.verifier.verify(given),
            upload=request.upload,
        )
        data = await self._work(match, call)
        return Answer(data=data, total=call.total, changes=call.changes)

    def _find(self, request: Request) -> Match:
        match = self._table.find(request.method, request.path)
        name = f"Method '{request.method} {request.path}' not implemented"
        if match is None:
            raise PveError(name, status=501)
        if match.endpoint.route is None:
            raise PveError(f"{name}: the lab does not have {match.endpoint.method.route}", status=501)
        return match

    def _permit(self, request: Request, match: Match, given: Mapping[str, Any]) -> None:
        if request.identity.is_token and not match.endpoint.method.allow_token:
            raise not_permitted(f"URI '{request.path}' not available with API token, need proper ticket.")
        check_call(self._world.permissions, match.endpoint.permissions, request.identity.authid, given)

    async def _work(self, match: Match, call: Call) -> Any:
        bound = match.endpoint.route
        if bound is None:
            return None
        if bound.is_async:
            data = await bound.handler(call)
        else:
            with self._world.store.transaction():
                data = bound.handler(call)
        await self._world.tasks.settle()
        await self._world.ha.settle(self._world.tasks.settle)
        await self._world.scheduler.settle()
        return data


def _merge_parameters(in_path: Mapping[str, str], sent: Mapping[str, Any]) -> dict[str, Any]:
    for key, value in sent.items():
        if key in in_path and value is not None and str(value) != in_path[key]:
            raise bad_parameter(key, "duplicate parameter (already defined in URI) with conflicting values!")
    return {**sent, **in_path}


def _node_in(path: str) -> str:
    parts = path.split("/", 3)
    return parts[2] if len(parts) > 2 and parts[1] == "nodes" else ""
