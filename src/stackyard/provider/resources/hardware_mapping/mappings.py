"""What mappings of every type have in common: `/cluster/mapping`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.checks import matches
from stackyard.provider.crud import Collection
from stackyard.provider.fields import FLAG, TEXT, Field, Form, values
from stackyard.provider.kinds import both_names
from stackyard.provider.resources.hardware_mapping.entries import parse_entry, print_entry
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.kinds import Resource
    from stackyard.provider.values import Object

__all__ = ["DEVICE_RULES", "is_device", "make_mapping", "mapping_values"]

_NAMES = {
    "dir": ("node", "path"),
    "pci": ("comment", "id", "iommu_group", "node", "path", "subsystem_id"),
    "usb": ("comment", "id", "node", "path"),
}
_COMMENT = matches(r"\S|\S(?s:.*)\S", "not be empty, nor begin or end with a space")
is_device = matches(
    r"[0-9A-Fa-f]{4}:[0-9A-Fa-f]{4}", "be the ids of a vendor and a device, such as 8086:5916"
)
DEVICE_RULES = {
    "map.id": Rule(check=is_device),
    "map.comment": Rule(
        check=matches(
            r"[^\s,=]|[^\s,=][^,=]*[^\s,=]", "have no comma or equals sign, nor a space at its ends"
        )
    ),
}


def _fields(kind: str) -> tuple[Field, ...]:
    def read(texts: Any) -> list[Object]:
        entries = [parse_entry(str(text)) for text in texts]
        return [{name: entry[name] for name in _NAMES[kind]} for entry in entries]

    entries = Form(write=lambda value: sorted(print_entry(one) for one in value), read=read)
    flags = (Field(attribute="mediated_devices", key="mdev", form=FLAG, off=False),) if kind == "pci" else ()
    return (
        Field(attribute="comment", key="description", form=TEXT),
        Field(attribute="map", form=entries, clears=False),
        *flags,
    )


def mapping_values(kind: str, found: Mapping[str, Any]) -> Object:
    """Return the attributes of a mapping."""
    read = values(_fields(kind), found)
    return read if kind != "pci" else {**read, "mediated_devices": bool(read["mediated_devices"])}


def make_mapping(kind: str, rules: Mapping[str, Rule]) -> Resource:
    """Return the resource of mappings of a type."""
    return Collection(
        path=f"/cluster/mapping/{kind}",
        key="id",
        attribute="name",
        fields=_fields(kind),
        own_state=lambda known, found: mapping_values(kind, found),
        filtered=True,
    ).resource(
        both_names(f"hardware_mapping_{kind}"),
        rules={
            "id": Rule(keep=True),
            # Proxmox cannot give a mapping another name.
            "name": Rule(replace=True),
            "comment": Rule(check=_COMMENT),
            "map": Rule(check=lambda value: None if value else "must have an entry at least"),
            **rules,
        },
    )
