"""`/_lab/journal`: every call that was made, for tests to assert on."""

from __future__ import annotations

import dataclasses
from typing import Any

from stackyard.lab.control import ControlCall, control
from stackyard.lab.problems import PveError

__all__ = ["clear_journal", "read_journal"]


@control("GET /journal")
def read_journal(call: ControlCall) -> Any:
    """List the calls past a number (`after`), the oldest first."""
    after = str(call.params.get("after", "0"))
    if not after.isdigit():
        raise PveError(f"after is a number, not '{after}'", status=400)
    entries = call.world.journal.entries(int(after))
    return {"count": call.world.journal.count, "calls": [dataclasses.asdict(entry) for entry in entries]}


@control("DELETE /journal")
def clear_journal(call: ControlCall) -> Any:
    """Forget all calls."""
    call.world.journal.clear()
    return {"count": call.world.journal.count}
