"""The block `backups` of storages: how many backups are kept, which Proxmox has as one text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.checks import at_least
from stackyard.provider.problems import Problem
from stackyard.provider.schema import Rule
from stackyard.provider.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.provider.values import Object

__all__ = ["BACKUP_RULES", "check_backups", "print_retention", "read_backups"]

_COUNTS = ("keep_last", "keep_hourly", "keep_daily", "keep_weekly", "keep_monthly", "keep_yearly")
BACKUP_RULES = {
    "backups.keep_all": Rule(default=False),
    **{f"backups.{name}": Rule(check=at_least(0)) for name in _COUNTS},
}


def print_retention(backups: Mapping[str, Any]) -> str | None:
    """Return what is kept as Proxmox spells it; None when nothing is said of it."""
    if backups.get("keep_all"):
        return "keep-all=1"
    counts = {name.replace("_", "-"): backups.get(name) for name in _COUNTS}
    return ",".join(f"{name}={count}" for name, count in counts.items() if count is not None) or None


def read_backups(row: Mapping[str, Any]) -> Object:
    """Return the block from the definition of a storage."""
    parts = (part.partition("=") for part in str(row.get("prune-backups") or "").split(","))
    kept = {name.strip().replace("-", "_"): value.strip() for name, _, value in parts}
    protected = row.get("max-protected-backups")
    return {
        "max_protected_backups": None if protected is None else int(protected),
        "keep_all": kept.get("keep_all") == "1",
        **{name: int(kept[name]) if kept.get(name) else None for name in _COUNTS},
    }


def check_backups(config: Object) -> Iterator[Problem]:
    """Give the counts that stand beside `keep_all`."""
    backups = config.get("backups")
    if not isinstance(backups, dict) or backups.get("keep_all") is not True:
        return
    for name in _COUNTS:
        if backups.get(name) not in (None, UNKNOWN):
            yield Problem(
                path=("backups", name), detail=f"`keep_all` keeps every backup; `{name}` says otherwise."
            )
