"""Objects of Proxmox itself: storages, users, interfaces, firewall rules, and all that is no guest."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from stackyard.desired.secret import Secret
from stackyard.desired.values import Line, Many, Value

__all__ = ["ClusterObject", "ObjectKey"]


class ObjectKey(Value):
    """What names an object: the type of its resource, and its name among those."""

    type: Line
    name: Line


class ClusterObject(Value):
    """An object of a cluster or a node, in the attributes of bpg's resource.

    Attributes:
        key: Its type and name.
        attributes: What is set.
        secrets: The attributes that secrets give.
        after: The objects that have to be there first.
    """

    key: ObjectKey
    attributes: dict[str, Any]
    secrets: dict[str, Secret] = Field(default_factory=dict)
    after: Many[ObjectKey] = ()
