"""When a block of the configuration is shown in the state, as the original decides it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.provider.values import UNKNOWN, Object, known_block

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PriorState", "is_managed", "one", "shows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorState:
    """What the state says already.

    Attributes:
        known: The state, or the plan that becomes one.
        is_clone: Whether the VM was cloned: then only what its configuration names is shown.
    """

    known: Object
    is_clone: bool


def one(state: Object, name: str, default: Mapping[str, Any]) -> Object:
    """Return a block that occurs at most once, with defaults for what it leaves out."""
    block = known_block(state, name) or {}
    return {key: _get_or_default(block.get(key), value) for key, value in default.items()}


def _get_or_default(value: Any, default: Any) -> Any:
    return default if value is None or value is UNKNOWN else value


def is_managed(shown: PriorState, name: str) -> bool:
    """Tell whether a list of devices is shown: always, but for a clone only when it has some configured."""
    return not shown.is_clone or bool(shown.known.get(name))


def shows(
    shown: PriorState,
    name: str,
    block: Object | None,
    *,
    default: Mapping[str, Any],
    ignore: Mapping[str, Any] | None = None,
) -> Object:
    """Return the attribute of a block that occurs at most once.

    Args:
        shown: What the state says already.
        name: The block.
        block: What was read; None when the VM has no such thing.
        default: What is not shown unless the configuration has the block.
        ignore: Values that alone are no reason to show it.
    """
    is_known = bool(shown.known.get(name))
    if shown.is_clone and not is_known:
        return {}
    if block is None:
        return {name: []}
    compared = {key: value for key, value in block.items() if key in default and key not in (ignore or {})}
    differs = any(value != default[key] for key, value in compared.items())
    return {name: [block] if is_known or differs else []}
