"""`/_lab/journal`: every call that was made, for tests to assert on."""

from __future__ import annotations

import dataclasses
import fnmatch
from typing import TYPE_CHECKING, Any

from pvelab.server.control import ControlCall, control
from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.journal import JournalEntry

__all__ = ["clear_journal", "read_journal"]

_FILTERS = frozenset(("after", "limit", "method", "path", "status", "user", "parameter"))


@control("GET /journal")
def read_journal(call: ControlCall) -> Any:
    """List calls, the oldest first, those that fit every filter.

    `after` the number of a call, the last `limit`, a `method`, a `path` pattern, a `status` (`200`, or `5xx`
    for all of a kind), a `user` pattern, a `parameter` (`vmid=100`, or a name alone).
    """
    unknown = sorted(set(call.params) - _FILTERS)
    if unknown:
        raise PveError(
            f"the journal has no filter '{unknown[0]}'; it has {', '.join(sorted(_FILTERS))}", status=400
        )
    after, limit = (_number(call.params, name) for name in ("after", "limit"))
    found = [entry for entry in call.world.journal.entries(after or 0) if _fits(entry, call.params)]
    shown = found if limit is None else found[max(0, len(found) - limit) :]
    return {
        "count": call.world.journal.count,
        "found": len(found),
        "calls": [dataclasses.asdict(entry) for entry in shown],
    }


@control("DELETE /journal")
def clear_journal(call: ControlCall) -> Any:
    """Forget all calls; their numbers continue."""
    call.world.journal.clear()
    return {"count": call.world.journal.count}


def _number(params: Mapping[str, Any], name: str) -> int | None:
    value = params.get(name)
    if value is None:
        return None
    if not str(value).isdecimal():
        raise PveError(f"{name} is a number, not '{value}'", status=400)
    return int(value)


def _fits(entry: JournalEntry, params: Mapping[str, Any]) -> bool:
    parameter, sign, value = str(params.get("parameter", "")).partition("=")
    return (
        str(params.get("method", entry.method)).upper() == entry.method
        and fnmatch.fnmatchcase(entry.path, str(params.get("path", "*")))
        and fnmatch.fnmatchcase(entry.user or "", str(params.get("user", "*")))
        and fnmatch.fnmatchcase(str(entry.status), str(params.get("status", "*")).lower().replace("x", "?"))
        and (not parameter or parameter in entry.parameters)
        and (not sign or str(entry.parameters[parameter]) == value)
    )
