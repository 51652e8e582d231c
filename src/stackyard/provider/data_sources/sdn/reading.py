"""How objects of the SDN are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.fields import FLAG, NUMBER, TEXT, values
from stackyard.provider.kinds import DataSource, both_names
from stackyard.provider.resources.sdn.fabrics import FABRIC_FIELDS, FABRIC_NODES, FABRICS, NODE_FIELDS
from stackyard.provider.resources.sdn.pending import PENDING, check_type, with_pending
from stackyard.provider.resources.sdn.zones import ZONES, zone_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.provider.fields import Field, Form
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["SAME_PICTURE_S", "make_fabric_node_source", "make_fabric_source", "make_zone_source", "unsaid"]

# Anyone who asks twice within one plan gets the same picture.
SAME_PICTURE_S = 1.0
_UNSAID: Sequence[tuple[Form, Any]] = ((TEXT, ""), (NUMBER, 0), (FLAG, False))


def unsaid(fields: Sequence[Field]) -> Object:
    """Return what a list has for attributes that an object does not set, none of which is null."""
    return {
        field.attribute: next((value for form, value in _UNSAID if field.form is form), [])
        for field in fields
    }


def make_zone_source(kind: str) -> DataSource:
    """Return the data source of zones of a type, with what is pending."""

    async def read(work: Work, config: Object) -> Object:
        path = f"{ZONES}/{proxmox.quote(config['id'])}"
        found = with_pending(await work.client.get(path, PENDING, max_age_s=SAME_PICTURE_S))
        check_type(f"The zone {config['id']}", found, "type", kind)
        return {**config, **zone_values(kind, found)}

    return DataSource(names=both_names(f"sdn_zone_{kind}"), read=read)


def make_fabric_source(protocol: str) -> DataSource:
    """Return the data source of the fabrics of a protocol."""

    async def read(work: Work, config: Object) -> Object:
        path = f"{FABRICS}/{proxmox.quote(config['id'])}"
        found = await work.client.get(path, max_age_s=SAME_PICTURE_S)
        check_type(f"The fabric {config['id']}", found, "protocol", protocol)
        return {**config, **values(FABRIC_FIELDS[protocol], found)}

    return DataSource(names=both_names(f"sdn_fabric_{protocol}"), read=read)


def make_fabric_node_source(protocol: str) -> DataSource:
    """Return the data source of the nodes in fabrics of a protocol."""

    async def read(work: Work, config: Object) -> Object:
        fabric, node = config["fabric_id"], config["node_id"]
        path = f"{FABRIC_NODES}/{proxmox.quote(fabric)}/{proxmox.quote(node)}"
        found: Mapping[str, Any] = await work.client.get(path, max_age_s=SAME_PICTURE_S)
        check_type(f"The node {fabric}/{node}", found, "protocol", protocol)
        return {
            **config,
            "id": f"{fabric}/{node}",
            **values(NODE_FIELDS[protocol], {"interfaces": [], **found}),
        }

    return DataSource(names=both_names(f"sdn_fabric_node_{protocol}"), read=read)
