"""The table of routes: how a call finds its handler.

To add a resource, write a module (or a package) under `resources/` and bind handlers in it; it is found by
itself, nothing else is edited:

    @route("GET /nodes/{node}/dns")
    def read_dns(call: Call) -> Any:
        return dict(call.store.get("dns", call.node) or {})

The parameters, their types and limits and the privilege come from the declared API (`facts`); `call.params`
holds them verified and typed. A plain `def` runs inside one transaction of the store: whatever it raises,
nothing of it stays. An `async def` may wait (for a lock, say) and opens `with call.transaction():` around
its changes, with no `await` inside. Long work is a task: `return call.start_task("qmstart", vmid, work)`.
Refuse with `PveError("text")`, check privileges beyond the declared one with `call.check("/storage/x",
"Datastore.Audit")`.

A method that Proxmox declares and no module binds answers 501 and names itself.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from pvelab.server.params.verify import Verifier
from stackyard.base.errors import InternalError

if TYPE_CHECKING:
    from types import ModuleType

    from pvelab.server.call import Call
    from pvelab.server.facts import Facts, Method

__all__ = ["Endpoint", "Handler", "Match", "Route", "Table", "collect", "members", "route"]

T = TypeVar("T")

Handler = Callable[["Call"], Any | Awaitable[Any]]

# These take the rest of the path, slashes and all: volume names and networks have slashes of their own.
_GREEDY = frozenset(("{volume}", "{cidr}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A handler and the methods that it answers."""

    routes: tuple[str, ...]
    handler: Handler
    extra: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    permissions: Mapping[str, Any] | None = None
    is_async: bool = False


def route(
    *routes: str,
    extra: Mapping[str, Mapping[str, Any]] | None = None,
    permissions: Mapping[str, Any] | None = None,
) -> Callable[[Handler], Route]:
    """Bind a handler to methods of the API.

    Args:
        routes: The methods as the facts name them: `GET /nodes/{node}/qemu`.
        extra: Schemas of parameters that real servers take and the declared API lacks.
        permissions: The privilege to ask for instead of the declared one.
    """

    def bind(handler: Handler) -> Route:
        return Route(
            routes=routes,
            handler=handler,
            extra=extra or {},
            permissions=permissions,
            is_async=inspect.iscoroutinefunction(handler),
        )

    return bind


@dataclass(slots=True, kw_only=True)
class Endpoint:
    """One declared method, with the handler that answers it if the lab has one."""

    method: Method
    route: Route | None = None
    _verifier: Verifier | None = None

    @property
    def verifier(self) -> Verifier:
        """The check of its parameters, made when it is first needed."""
        if self._verifier is None:
            extra = self.route.extra if self.route else {}
            self._verifier = Verifier({**self.method.parameters, **extra})
        return self._verifier

    @property
    def permissions(self) -> Mapping[str, Any] | None:
        """The privilege that a caller needs."""
        if self.route is not None and self.route.permissions is not None:
            return self.route.permissions
        return self.method.permissions


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A path that exists: its endpoint and the parameters in the path."""

    endpoint: Endpoint
    parameters: Mapping[str, str]


@dataclass(slots=True)
class _Node:
    folders: dict[str, _Node] = field(default_factory=dict)
    variable: _Node | None = None
    name: str = ""
    greedy: bool = False
    endpoints: dict[str, Endpoint] = field(default_factory=dict)


class Table:
    """All methods of the API as a tree of path segments.

    Args:
        facts: The declared API.
        routes: The handlers of the lab.

    Raises:
        InternalError: A route is bound twice, or is not part of the declared API.
    """

    def __init__(self, facts: Facts, routes: list[Route]) -> None:
        self._root = _Node()
        self._endpoints = {name: Endpoint(method=method) for name, method in facts.methods.items()}
        for bound in routes:
            for name in bound.routes:
                self._bind(name, bound)
        for endpoint in self._endpoints.values():
            self._plant(endpoint)

    def __iter__(self) -> Iterator[Endpoint]:
        return iter(self._endpoints.values())

    def find(self, verb: str, path: str) -> Match | None:
        """Return what answers a call, or None where Proxmox has no such method.

        Args:
            verb: GET, POST, PUT or DELETE.
            path: The decoded path below /api2/json; doubled and trailing slashes do not matter.
        """
        parts = [part for part in path.split("/") if part]
        node, parameters = self._root, {}
        for depth, part in enumerate(parts):
            following = node.folders.get(part)
            if following is None:
                following = node.variable
                if following is None:
                    return None
                if following.greedy:
                    parameters[following.name] = "/".join(parts[depth:])
                    node = following
                    break
                parameters[following.name] = part
            node = following
        endpoint = node.endpoints.get(verb)
        return None if endpoint is None else Match(endpoint=endpoint, parameters=parameters)

    def below(self, path: str) -> tuple[str | None, list[str]]:
        """Return how a path can go on: the name of the variable below it if there is one, and fixed names."""
        node: _Node | None = self._root
        for part in filter(None, path.split("/")):
            if node is not None and not node.greedy:
                node = node.folders.get(part) or node.variable
        if node is None or node.greedy:
            return None, []
        return (None if node.variable is None else node.variable.name), list(node.folders)

    def _bind(self, name: str, bound: Route) -> None:
        endpoint = self._endpoints.get(name)
        if endpoint is None:
            raise InternalError(f"The lab binds {name}, which Proxmox does not declare.")
        if endpoint.route is not None:
            raise InternalError(f"The lab binds {name} twice.")
        endpoint.route = bound

    def _plant(self, endpoint: Endpoint) -> None:
        node = self._root
        for part in filter(None, endpoint.method.path.split("/")):
            if not part.startswith("{"):
                node = node.folders.setdefault(part, _Node())
                continue
            if node.variable is None:
                node.variable = _Node(name=part[1:-1], greedy=part in _GREEDY)
            node = node.variable
        node.endpoints[endpoint.method.verb] = endpoint


def collect(package: ModuleType) -> list[Route]:
    """Return every route that a package's modules bind, in a stable order."""
    return members(package, Route)


def members(package: ModuleType, kind: type[T]) -> list[T]:
    """Return every value of a type in the modules of a package and those inside it, alone or in a tuple."""
    found: list[T] = []
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            found += [
                one for one in (value if isinstance(value, tuple) else (value,)) if isinstance(one, kind)
            ]
    # What one module imports from another is still one value.
    return list({id(value): value for value in found}.values())
