"""What the service allows beyond the rules that always hold."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Policy"]

_HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The choices of the operator of the service.

    Attributes:
        create_states: Whether a name that was never heard of may be read, locked and written. Off, states are
            registered first, and a mistyped name is an error in place of an empty state.
        unlocked_writes: Whether a state that no one has locked may be written without a lock: by an engine
            without a `lock_address`, or with `-lock=false`. Nothing such an engine sends before its write
            says so, and by then its resources exist. To refuse it would only lose what it has made.
        empty_unlock: Whether an UNLOCK without a body breaks the lock: all that `terraform force-unlock`
            sends. The client needs the right to break locks either way.
        max_drop_percent: A write that drops more of the resources than this is refused; None never refuses.
        keep_versions: How many versions are kept at least.
        keep_versions_s: Versions younger than this are kept whatever their number.
        keep_quarantined: How many refused writes of a state are kept.
        stale_after_s: A lock without a write for longer than this is reported as stale; it is never expired.
    """

    create_states: bool = True
    unlocked_writes: bool = True
    empty_unlock: bool = True
    max_drop_percent: int | None = None
    keep_versions: int = 1000
    keep_versions_s: float = 30 * 24 * _HOUR_S
    keep_quarantined: int = 50
    stale_after_s: float = _HOUR_S
