"""The attribute `timeouts`: how long each operation on a VM may take as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.durations import duration_s, is_duration
from stackyard.provider.schema import Rule
from stackyard.provider.time_limits import time_limit

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from stackyard.provider.values import Object

__all__ = ["RULES", "limit", "timeout_s"]

_USUAL_S = {"create": 1800.0, "read": 300.0, "update": 1800.0, "delete": 600.0}
RULES = {f"timeouts.{operation}": Rule(check=is_duration) for operation in _USUAL_S}


def timeout_s(state: Object, operation: str) -> float:
    """Return how long an operation may take: `create`, `read`, `update` or `delete`."""
    text = (state.get("timeouts") or {}).get(operation)
    return _USUAL_S[operation] if text is None else duration_s(text)


def limit(state: Object, operation: str) -> AbstractAsyncContextManager[Callable[[], None]]:
    """Give an operation the time that its VM has for it.

    Raises:
        TimeLimitError: It took longer.
    """
    number = state.get("id")
    which = f"VM {number}" if isinstance(number, int) else f"VM {state.get('name') or '(no name)'}"
    return time_limit(
        timeout_s(state, operation),
        what=f"The operation {operation!r} on {which}",
        setting=f"timeouts.{operation}",
    )
