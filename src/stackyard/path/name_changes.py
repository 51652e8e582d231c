"""Which names of a target have to be looked up: those of what a plan makes or changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.engine.changes import Action
from stackyard.guard.names_used.interfaces import list_planned, list_zones
from stackyard.guard.names_used.users import list_users
from stackyard.guard.names_used.uses import list_uses
from stackyard.guard.subjects import name_in, short_type
from stackyard.render.objects import address_of_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.desired import Desired
    from stackyard.engine.changes import Changes
    from stackyard.state.inside import Instance

__all__ = ["find_same_names", "find_untouched", "list_leaving"]

_DONE = (Action.CREATE, Action.UPDATE, Action.REPLACE)
# What is looked at with what the nodes have, and not only for the names that it uses.
_ON_NODES = ("network_linux_", "sdn_zone_", "storage_", "hardware_mapping_")


def find_untouched(desired: Desired, changes: Changes) -> frozenset[str]:
    """Return the addresses of what a plan leaves as it is.

    Args:
        desired: The model.
        changes: What the plan does.
    """
    touched = {one.address for one in changes.planned if one.action in _DONE}
    return frozenset(_list_addresses(desired)) - touched


def find_same_names(desired: Desired, instances: Mapping[str, Instance]) -> frozenset[str]:
    """Return the addresses of what names the same in the state, before an engine plans.

    Args:
        desired: The model.
        instances: What the state has.
    """
    found = set()
    for user in list_users(desired):
        known = instances.get(user.address)
        if known is None:
            continue
        if user.kind.startswith(_ON_NODES):
            is_same = _has(known.attributes, user.values)
        else:
            before = {(use.kind, use.name) for use in list_uses(user.kind, known.attributes)}
            is_same = before >= {(use.kind, use.name) for use in list_uses(user.kind, user.values)}
        # An interface may be gone from its node; then it is made again.
        if is_same and not user.kind.startswith("network_linux_"):
            found.add(user.address)
    return frozenset(found)


def _has(known: Any, value: Any) -> bool:
    """Return whether a state has a value: null is what a file does not say, and sets have any order."""
    if isinstance(value, dict):
        return isinstance(known, dict) and all(_has(known.get(key), one) for key, one in value.items())
    if isinstance(value, list | tuple):
        if not isinstance(known, list) or len(known) != len(value):
            return False
        return all(any(_has(there, one) for there in known) for one in value)
    return bool(known == value)


def list_leaving(desired: Desired, instances: Mapping[str, Instance]) -> frozenset[tuple[str, str, str]]:
    """Return type, node and name of the objects of a state that a model no longer has.

    Args:
        desired: The model.
        instances: What the state has.
    """
    kept = set(_list_addresses(desired))
    found = set()
    for address, one in instances.items():
        kind = short_type(one.type)
        if address not in kept and kind.startswith(_ON_NODES):
            node = str(one.attributes.get("node_name") or "")
            found.add((kind, node, name_in(kind, one.attributes)))
    return frozenset(found)


def _list_addresses(desired: Desired) -> Iterator[str]:
    yield from (user.address for user in list_users(desired) if user.address)
    yield from (interface.label for interface in list_planned(desired))
    yield from (zone.label for zone in list_zones(desired))
    yield from (address_of_object(one.key) for one in desired.objects)
