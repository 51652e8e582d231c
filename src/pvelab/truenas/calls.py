"""The methods of TrueNAS, as both protocols call them."""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING, Any

from pvelab.truenas.datasets import POOL, Datasets
from pvelab.truenas.problems import CallError, ValidationErrors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pvelab.world.world import World

__all__ = ["Calls"]

_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda found, wanted: found == wanted,
    "!=": lambda found, wanted: found != wanted,
    "in": lambda found, wanted: found in wanted,
    "nin": lambda found, wanted: found not in wanted,
    "^": lambda found, wanted: str(found).startswith(wanted),
    "~": lambda found, wanted: re.match(wanted, str(found)) is not None,
}


class Calls:
    """The methods that need a login.

    Args:
        world: The lab.
        version: The release of TrueNAS that it says it is.
    """

    def __init__(self, world: World, version: str) -> None:
        self.datasets = Datasets(world)
        self._version = version
        self._methods: Mapping[str, tuple[Callable[..., Any], int]] = {
            "core.ping": (lambda: "pong", 0),
            "system.version": (lambda: f"TrueNAS-{version}", 0),
            "system.info": (self._system_info, 0),
            "pool.query": (self._query_pools, 2),
            "pool.dataset.query": (self._query_datasets, 2),
            "pool.dataset.get_instance": (self._get_dataset, 2),
            "pool.dataset.create": (self.datasets.create, 1),
            "pool.dataset.update": (self.datasets.update, 2),
        }

    def has(self, method: str) -> bool:
        """Return whether there is a method of that name."""
        return method in self._methods

    def call(self, method: str, params: Sequence[Any]) -> Any:
        """Call a method.

        Raises:
            CallError: It cannot be done.
            ValidationErrors: Its parameters are refused.
        """
        work, most = self._methods[method]
        if len(params) > most:
            raise ValidationErrors(
                ("", f"Too many arguments (expected {most}, found {len(params)})", errno.EINVAL)
            )
        try:
            return work(*params)
        except TypeError as err:
            raise ValidationErrors(("", "Field required", errno.EINVAL)) from err

    def _system_info(self) -> dict[str, Any]:
        return {"version": f"TrueNAS-{self._version}", "hostname": "truenas"}

    def _query_pools(self, filters: Sequence[Any] = (), options: Mapping[str, Any] | None = None) -> Any:
        pools = [{"id": 1, "name": POOL, "path": f"/mnt/{POOL}", "status": "ONLINE", "healthy": True}]
        return _select(pools, filters, options or {})

    def _query_datasets(self, filters: Sequence[Any] = (), options: Mapping[str, Any] | None = None) -> Any:
        return _select(self.datasets.list_entries(), filters, options or {})

    def _get_dataset(self, name: str, _options: Mapping[str, Any] | None = None) -> Any:
        self.datasets.require(name)
        return _select(self.datasets.list_entries(), [["id", "=", name]], {"get": True})


def _select(rows: Sequence[Mapping[str, Any]], filters: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Return the rows that fit all filters.

    Raises:
        CallError: A filter has another form, or one row is wanted and none fits.
    """
    found = [dict(row) for row in rows if all(_fits(row, one) for one in filters)]
    if options.get("count"):
        return len(found)
    if options.get("get"):
        if not found:
            raise CallError("MatchNotFound()", errno.ENOENT)
        return found[0]
    return found[: options["limit"]] if options.get("limit") else found


def _fits(row: Mapping[str, Any], one: Any) -> bool:
    if not isinstance(one, list | tuple) or len(one) != 3 or one[1] not in _OPERATORS:
        raise CallError(f"Invalid filter {one!r}", errno.EINVAL)
    name, operator, wanted = one
    return _OPERATORS[operator](row.get(name), wanted)
