"""The networks, pools and other objects of a model: what each is on the cluster, and its address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.desired import Desired
from stackyard.guard.subjects import KINDS, identity_in, name_in, short_type
from stackyard.render.names import label
from stackyard.render.networks import APPLIER, network_resources
from stackyard.render.objects import address_of_object, object_resources
from stackyard.render.references import POOL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.desired import ClusterObject
    from stackyard.desired.values import Value
    from stackyard.state.inside import Instance

__all__ = [
    "NamedObject",
    "describe_object",
    "find_same",
    "is_cluster_wide",
    "is_interface",
    "list_cluster_objects",
    "list_networks_and_pools",
]

_NETWORKS = ("bridges", "vlans", "zones", "vnets", "subnets")
_INTERFACE = "network_linux_"
_ZONE = "sdn_zone_"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedObject:
    """An object of a model.

    Attributes:
        type: The type of its resource.
        address: The address of its resource.
        values: What is set.
    """

    type: str
    address: str
    values: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """Its type without the provider's prefix."""
        return short_type(self.type)

    @property
    def identity(self) -> tuple[str, str]:
        """What it is on the cluster; of two zones of a name, only one can be there."""
        kind = _ZONE if self.kind.startswith(_ZONE) else self.kind
        return kind, identity_in(self.kind, self.values)


def is_interface(kind: str) -> bool:
    """Return whether objects of a type, without its prefix, belong to a node and its network."""
    return kind.startswith(_INTERFACE)


def is_cluster_wide(kind: str) -> bool:
    """Return whether objects of a type, without its prefix, are pools or parts of the SDN."""
    return kind == "pool" or kind.startswith("sdn_")


def describe_object(kind: str, values: Mapping[str, Any]) -> str:
    """Return what users call an object: `bridge vmbr7 on pve1`."""
    node = values.get("node_name")
    about = f"{KINDS.get(kind, kind)} {name_in(kind, values)}".rstrip()
    return f"{about} on {node}" if node else about


def list_networks_and_pools(desired: Desired) -> Iterator[NamedObject]:
    """Return the networks and pools of a model that are no objects of hypervisor files."""
    for field in _NETWORKS:
        one: Value
        for one in getattr(desired, field):
            # Alone, so that what it names of others is a name, and no reference.
            rendered = network_resources(Desired().model_copy(update={field: (one,)}))
            for kind, found in rendered.items():
                if kind != APPLIER:
                    for name, values in found.items():
                        yield NamedObject(type=kind, address=f"{kind}.{name}", values=_mapping(values))
    for pool in desired.pools:
        values = {"pool_id": pool.name, "comment": pool.comment}
        yield NamedObject(type=POOL, address=f"{POOL}.{label(pool.name)}", values=values)


def list_cluster_objects(desired: Desired) -> Iterator[tuple[ClusterObject, NamedObject]]:
    """Return the objects of hypervisor files in a model."""
    for one in desired.objects:
        values = next(iter(object_resources(Desired(objects=(one,)))[one.key.type].values()))
        named = NamedObject(type=one.key.type, address=address_of_object(one.key), values=_mapping(values))
        yield one, named


def _mapping(values: Any) -> Mapping[str, Any]:
    return {key: value for key, value in values.items() if key != "depends_on"}


def find_same(desired: Desired, instances: Mapping[str, Instance]) -> dict[str, str]:
    """Return the addresses in a state of networks and pools that a model has under others, with those.

    A network that moves from site.yaml to the file of a hypervisor has another address, and stays the same.

    Args:
        desired: The model.
        instances: The instances of the state by address.
    """
    wanted = {
        (*one.identity, one.type): one.address
        for one in (*list_networks_and_pools(desired), *(named for _, named in list_cluster_objects(desired)))
        if one.identity[1] and (is_interface(one.kind) or is_cluster_wide(one.kind))
    }
    if not wanted:
        return {}
    present = set(wanted.values())
    found = {}
    for address, instance in instances.items():
        if address in present or address != f"{instance.type}.{address.rpartition('.')[2]}":
            continue
        there = NamedObject(type=instance.type, address=address, values=instance.attributes)
        new = wanted.get((*there.identity, there.type))
        if new is not None and new not in instances:
            found[address] = new
    return found
