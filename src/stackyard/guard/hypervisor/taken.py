"""What a plan takes away from others: removed, replaced, disabled, or no longer for all."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.engine.changes import Action
from stackyard.guard.subjects import is_proxmox, name_in, node_of, short_kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.engine.changes import Change, Changes

__all__ = ["Sort", "Taken", "is_expired", "list_taken", "sort_of"]


class Sort(enum.StrEnum):
    """What may be in use, in the words of a user."""

    STORAGE = "storage"
    INTERFACE = "interface"
    VNET = "SDN vnet"
    ZONE = "SDN zone"
    MAPPING = "hardware mapping"
    POOL = "pool"
    USER = "user"
    GROUP = "group"
    ROLE = "role"
    REALM = "realm"


_SORTS = {
    "sdn_vnet": Sort.VNET,
    "pool": Sort.POOL,
    "user": Sort.USER,
    "group": Sort.GROUP,
    "role": Sort.ROLE,
}
_PREFIXES = {
    "storage_": Sort.STORAGE,
    "network_linux_": Sort.INTERFACE,
    "sdn_zone_": Sort.ZONE,
    "hardware_mapping_": Sort.MAPPING,
    "realm_": Sort.REALM,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Something that others would lose.

    Attributes:
        sort: What it is.
        name: Its name.
        change: What the plan does with it.
        how: What happens to it, as the rest of a sentence.
        node: The node that it belongs to; empty where that is the whole cluster.
        nodes: The nodes that lose it; all of them when absent.
        but: The nodes that keep it.
        contents: What a storage is no longer for; everything when absent.
        is_kept: Whether it is still there, and only cannot be used.
    """

    sort: Sort
    name: str
    change: Change
    how: str
    node: str = ""
    nodes: frozenset[str] | None = None
    but: frozenset[str] = frozenset()
    contents: frozenset[str] | None = None
    is_kept: bool = False

    def __str__(self) -> str:
        return f"{self.sort} {self.name}" + (f" of {self.node}" if self.node else "")

    def is_lost_on(self, node: str) -> bool:
        """Return whether a node loses it."""
        is_meant = (self.nodes is None or node in self.nodes) and node not in self.but
        return is_meant and self.node in ("", node)


def sort_of(change: Change) -> Sort | None:
    """Return what a change is about, None where nothing else uses such a thing."""
    kind = short_kind(change)
    if not is_proxmox(change) or kind == "realm_sync":
        return None
    found = _SORTS.get(kind)
    return found or next((sort for prefix, sort in _PREFIXES.items() if kind.startswith(prefix)), None)


def list_taken(changes: Changes) -> Iterator[Taken]:
    """Return what a plan takes away."""
    for change in changes.planned:
        sort = sort_of(change)
        if sort is None or change.before is None:
            continue
        name = name_in(short_kind(change), change.before)
        node = (node_of(change) or "") if sort is Sort.INTERFACE else ""
        if change.destroys:
            how = "replaced" if change.action is Action.REPLACE else "removed"
            yield Taken(sort=sort, name=name, change=change, how=how, node=node)
        elif change.action is Action.UPDATE:
            for how, lost in _list_losses(sort, change.before, change.after or {}):
                yield Taken(sort=sort, name=name, change=change, how=how, node=node, is_kept=True, **lost)


def _list_losses(
    sort: Sort, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return what an update takes away, and what limits that."""
    if sort is Sort.STORAGE:
        if after.get("disable") is True and before.get("disable") is not True:
            yield "disabled", {}
        contents = _texts(before.get("content")) - _texts(after.get("content"))
        if contents and isinstance(after.get("content"), list):
            yield f"taken from {', '.join(sorted(contents))}", {"contents": contents}
    if sort in (Sort.STORAGE, Sort.ZONE):
        yield from _lost_nodes(_texts(before.get("nodes")), _texts(after.get("nodes")))
    if sort is Sort.MAPPING:
        nodes = _mapped(before.get("map")) - _mapped(after.get("map"))
        if nodes:
            yield f"taken from {', '.join(sorted(nodes))}", {"nodes": nodes}
    if sort is Sort.INTERFACE and before.get("autostart") is not False and after.get("autostart") is False:
        yield "kept from coming up", {}
    if sort is Sort.USER and _works(before) and not _works(after):
        yield "disabled", {}


def _lost_nodes(before: frozenset[str], after: frozenset[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the nodes that lose something; no list of nodes means all of them."""
    if not after or after == before:
        return
    if not before:
        yield f"limited to {', '.join(sorted(after))}", {"but": after}
    elif before - after:
        yield f"taken from {', '.join(sorted(before - after))}", {"nodes": before - after}


def _works(user: Mapping[str, Any]) -> bool:
    return user.get("enabled") is not False and not is_expired(user.get("expiration_date"))


def is_expired(moment: Any) -> bool:
    """Return whether a date of a user or token is over: RFC 3339, or seconds since 1970; none never is."""
    if isinstance(moment, int | float) and not isinstance(moment, bool):
        return 0 < moment <= datetime.datetime.now(datetime.UTC).timestamp()
    if not isinstance(moment, str) or not moment:
        return False
    try:
        parsed = datetime.datetime.fromisoformat(moment)
    except ValueError:
        return False
    aware = parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=datetime.UTC)
    # bpg's word for never is the first second there is.
    return 0 < aware.timestamp() <= datetime.datetime.now(datetime.UTC).timestamp()


def _texts(value: Any) -> frozenset[str]:
    return frozenset(one for one in value if isinstance(one, str)) if isinstance(value, list) else frozenset()


def _mapped(entries: Any) -> frozenset[str]:
    """Return the nodes on which a mapping has a device."""
    listed = entries if isinstance(entries, list) else []
    return frozenset(
        str(entry["node"])
        for entry in listed
        if isinstance(entry, dict) and isinstance(entry.get("node"), str)
    )
