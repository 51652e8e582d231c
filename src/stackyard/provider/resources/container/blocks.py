"""Blocks of a container as they are planned, with the defaults of those that are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.fields.container import CONSOLE, CPU, FEATURES, MEMORY, ROOT_DISK
from stackyard.provider.guests import CONTAINER, Guest
from stackyard.provider.values import UNKNOWN, Object, known_block

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.kinds import Work

__all__ = ["DEFAULTS", "block", "drop_unknown", "guest_of", "has", "is_clone", "is_started"]

# What the original uses where the block is left out; Proxmox itself would give all processors and more swap.
DEFAULTS: Mapping[str, Object] = {
    "console": CONSOLE.defaults(),
    "cpu": CPU.defaults(),
    "disk": {**ROOT_DISK.defaults(), "datastore_id": "local", "size": 4},
    "features": FEATURES.defaults(),
    "memory": MEMORY.defaults(),
}


def block(values: Mapping[str, Any], name: str) -> Object:
    """Return a block that occurs at most once; empty when it is left out."""
    found = known_block(values, name)
    return {} if found is None else found


def guest_of(work: Work, values: Mapping[str, Any]) -> Guest:
    """Return the container on its node."""
    return Guest(work=work, node=str(values["node_name"]), vm_id=int(values["id"]), kind=CONTAINER)


def has(values: Mapping[str, Any], name: str) -> bool:
    """Tell whether a block is written."""
    return bool(values.get(name)) and values.get(name) is not UNKNOWN


def is_clone(values: Mapping[str, Any]) -> bool:
    """Tell whether the container is a copy of another one."""
    return has(values, "clone")


def is_started(values: Mapping[str, Any]) -> bool:
    """Tell whether the container is to run; a template never does."""
    return bool(drop_unknown(values.get("started"))) and not drop_unknown(values.get("template"))


def drop_unknown(value: Any) -> Any:
    """Return a value without what is unknown in it: nobody has found that out yet."""
    if isinstance(value, dict):
        return {name: drop_unknown(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [drop_unknown(inner) for inner in value]
    return None if value is UNKNOWN else value
