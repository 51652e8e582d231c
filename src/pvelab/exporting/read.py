"""Reading a cluster: GET calls only, several at a time, and a note of each that was refused."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pvelab.server.journal import is_secret
from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from pvelab.server.facts import Facts

__all__ = ["Getter", "Source", "create_call"]

T = TypeVar("T")

# As many as a node serves without others noticing.
_AT_ONCE = 12
_NOT_THERE = frozenset((404, 501))


class Getter(Protocol):
    """Makes one GET call of the API and returns its data."""

    async def __call__(self, path: str, params: Mapping[str, Any]) -> Any:
        """Make the call.

        Raises:
            PveError: It is refused.
        """
        ...


class Source:
    """A cluster that is read.

    Args:
        get: Makes the calls.
        facts: What Proxmox declares, by which answers become parameters.
    """

    def __init__(self, get: Getter, facts: Facts) -> None:
        self._get = get
        self.facts = facts
        self.left_out: dict[str, str] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def require(self, path: str, /, **params: Any) -> Any:
        """Return the data of a call without which there is no copy.

        Raises:
            PveError: It is refused.
        """
        async with self._turns:
            return await self._get(path, params)

    async def rows(self, path: str, /, **params: Any) -> list[dict[str, Any]]:
        """Return the entries of a list, none if the cluster does not tell."""
        found = await self.maybe(path, **params)
        return [dict(row) for row in found] if isinstance(found, list) else []

    async def entry(self, path: str, /, **params: Any) -> dict[str, Any]:
        """Return an object, an empty one if the cluster does not tell."""
        found = await self.maybe(path, **params)
        return dict(found) if isinstance(found, Mapping) else {}

    async def maybe(self, path: str, /, **params: Any) -> Any:
        """Return the data of a call, None (and a note) if the cluster does not tell."""
        try:
            return await self.require(path, **params)
        except PveError as err:
            # What an older or smaller cluster does not have at all is not missing from its copy.
            if err.status not in _NOT_THERE:
                self.note(path, err.text)
            return None

    def note(self, what: str, reason: str) -> None:
        """Write down that something is not in the copy."""
        self.left_out[what] = " ".join(reason.split())

    async def all(self, work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        """Do several things at a time; the results are in the order of the work."""
        return list(await asyncio.gather(*work))


def create_call(
    source: Source, route: str, row: Mapping[str, Any], path: str | None = None, **more: Any
) -> dict[str, Any]:
    """Return the call that makes something again, from what the API tells of it.

    Args:
        source: What is read.
        route: The method that makes it: `POST /pools`.
        row: What is given; what the method does not take, and every secret, is left out.
        path: The path, where that of the route has variables.
        more: Parameters to set beside those of the row.
    """
    method, _, declared = route.partition(" ")
    taken = source.facts[route].parameters
    in_path = {part[1:-1] for part in declared.split("/") if part.startswith("{")}
    parameters = {
        key: _format_parameter(value)
        for key, value in {**row, **more}.items()
        if key in taken
        and key not in in_path
        and key != "digest"
        and not is_secret(key)
        and value is not None
    }
    call: dict[str, Any] = {} if method == "POST" else {"method": method}
    call["path"] = path or declared
    return {**call, "parameters": parameters} if parameters else call


def _format_parameter(value: Any) -> Any:
    """Return a value as a parameter: objects as property strings."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Mapping):
        return ",".join(f"{key}={_format_parameter(inner)}" for key, inner in value.items())
    return [_format_parameter(inner) for inner in value] if isinstance(value, list) else value
