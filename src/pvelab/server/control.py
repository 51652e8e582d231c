"""The lab's own routes under /_lab/: what tests and the command line steer it with. Not part of Proxmox.

A module under `control/` binds handlers and is found by itself:

    @control("DELETE /faults/{name}")
    def remove_fault(call: ControlCall) -> Any:
        return {"removed": call.world.faults.remove(call.params["name"])}

Parameters come from the path, the query and a JSON body. The answer is JSON as it is, without an envelope; a
`PveError` becomes `{"error": text}` with its status. Only root@pam may call, with its token or its ticket.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from pvelab import control as controls
from pvelab.server.decode import decode_form, decode_json, decode_path
from pvelab.server.problems import PveError
from pvelab.server.routing import members
from pvelab.world.access.directory import ROOT, split_token
from stackyard.base.errors import StackyardError
from stackyard.base.serving import respond

if TYPE_CHECKING:
    from aiohttp import web

    from pvelab.runtime.lifecycle import Lifecycle
    from pvelab.world.world import World

__all__ = ["ControlCall", "ControlRoute", "Controls", "control"]

PREFIX = "/_lab"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlCall:
    """What a handler of the lab's own routes is given."""

    world: World
    lifecycle: Lifecycle
    params: Mapping[str, Any]


ControlHandler = Callable[[ControlCall], Any | Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRoute:
    """A handler and the route that it answers, path without /_lab."""

    verb: str
    parts: tuple[str, ...]
    handler: ControlHandler

    def match(self, verb: str, parts: list[str]) -> dict[str, str] | None:
        """Return the parameters in a path that fits, None for one that does not."""
        if verb != self.verb or len(parts) != len(self.parts):
            return None
        found: dict[str, str] = {}
        for own, given in zip(self.parts, parts, strict=True):
            if own.startswith("{"):
                found[own[1:-1]] = given
            elif own != given:
                return None
        return found


def control(route: str) -> Callable[[ControlHandler], ControlRoute]:
    """Bind a handler to one of the lab's own routes: `GET /journal`."""
    verb, _, path = route.partition(" ")
    parts = tuple(part for part in path.split("/") if part)
    return lambda handler: ControlRoute(verb=verb, parts=parts, handler=handler)


class Controls:
    """Answers requests under /_lab/."""

    def __init__(self, world: World, lifecycle: Lifecycle) -> None:
        self._world = world
        self._lifecycle = lifecycle
        self._routes = members(controls, ControlRoute)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        try:
            return _answer(200, await self._perform(request))
        except PveError as err:
            return _answer(err.status, {"error": err.text})
        except StackyardError as err:
            return _answer(500, {"error": err.detail})

    async def _perform(self, request: web.BaseRequest) -> Any:
        raw, _, query = request.raw_path.partition("?")
        path = decode_path(raw).removeprefix(PREFIX) or "/"
        # As a GET, because the CSRF token of a ticket guards browsers, and no page of ours calls this.
        identity = self._world.login.identify("GET", path, request.headers)
        if split_token(identity.authid or "")[0] != ROOT:
            raise PveError("only root@pam steers the lab", status=403)
        body = await request.read()
        sent = {**decode_form(query.encode()), **(decode_json(body) if body else {})}
        for route in self._routes:
            found = route.match(request.method, [part for part in path.split("/") if part])
            if found is not None:
                return await self._call(route, {**sent, **found})
        raise PveError(f"the lab has no route {request.method} {PREFIX}{path}", status=404)

    async def _call(self, route: ControlRoute, params: Mapping[str, Any]) -> Any:
        call = ControlCall(world=self._world, lifecycle=self._lifecycle, params=params)
        if inspect.iscoroutinefunction(route.handler):
            return await route.handler(call)
        with self._world.store.transaction():
            return route.handler(call)


def _answer(status: int, content: Any) -> web.Response:
    return respond(status, orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS))
