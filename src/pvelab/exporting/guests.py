"""Guests with their snapshots, as the API shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pvelab.exporting.read import Source

__all__ = ["read_guests"]

# A password is never told; the environment of a container tends to hold some.
_SECRETS = frozenset(("cipassword", "env"))
_NOT_CONFIG = frozenset(("digest", *_SECRETS))
_OF_SNAPSHOT = ("snaptime", "parent", "description", "vmstate")


async def read_guests(source: Source, guests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the guests of a list of resources; one that cannot be read is left out."""
    found = await source.all(_guest(source, row) for row in guests)
    return [guest for guest in found if guest is not None]


async def _guest(source: Source, row: Mapping[str, Any]) -> dict[str, Any] | None:
    base = f"/nodes/{row['node']}/{row['type']}/{row['vmid']}"
    config = await source.entry(f"{base}/config")
    if not config:
        return None
    guest: dict[str, Any] = {
        "vmid": int(row["vmid"]),
        "node": row["node"],
        "type": row["type"],
        "status": "running" if row.get("status") == "running" else "stopped",
        "config": _without_secrets(config),
    }
    snapshots = {}
    for listed in await source.rows(f"{base}/snapshot"):
        name = str(listed["name"])
        if name != "current" and not listed.get("snapstate"):
            snapshots[name] = _snapshot(listed, await source.entry(f"{base}/snapshot/{name}/config"))
    return {**guest, "snapshots": snapshots} if snapshots else guest


def _snapshot(listed: Mapping[str, Any], flat: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: flat[key] for key in _OF_SNAPSHOT if key in flat}
    own.setdefault("snaptime", listed.get("snaptime", 0))
    config = {key: value for key, value in flat.items() if key not in (*_OF_SNAPSHOT, "snapstate")}
    return {**own, "config": _without_secrets(config)}


def _without_secrets(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in _NOT_CONFIG}
