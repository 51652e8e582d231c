"""Virtual networks: each has the tag that its zone needs, and no other of the zone has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.hypervisor.build import Entry
    from stackyard.sources.hypervisor.files import HypervisorFile, SiteFacts

__all__ = ["check_vnets"]

BAD_TAG = Kind(
    code="E-HYPERVISOR-VNET",
    summary="A virtual network cannot have its tag",
    remedy="Vnets of vlan and qinq zones have a `tag` from 1 to 4094, those of vxlan and evpn zones one "
    "from 1 to 16777215, each another; those of simple zones have none.",
)
# The largest tag by the type of the zone.
_LARGEST = {"vlan": 4094, "qinq": 4094, "vxlan": 16777215, "evpn": 16777215}


def check_vnets(files: Sequence[HypervisorFile], site: SiteFacts, found: Diagnostics) -> None:
    """Check the tags of the vnets of every cluster."""
    del site
    for file in files:
        zones = {zone.name: str(zone.values["type"]) for zone in file.section("sdn.zones")}
        taken: dict[tuple[str, int], Entry] = {}
        for vnet in file.section("sdn.vnets"):
            zone, tag = str(vnet.values.get("zone")), vnet.values.get("tag")
            if file.has_lost(vnet, "tag"):
                continue
            if zone in zones:
                _check_tag(file, vnet, zones[zone], found)
            first = vnet if tag is None else taken.setdefault((zone, int(tag)), vnet)
            if first is not vnet:
                detail = f"'{vnet.name}' has the tag {tag}, and so has '{first.name}' of the zone '{zone}'."
                where = file.place(vnet, "tag")
                found.add(BAD_TAG, detail, where, also=(file.place(first, "tag"),))


def _check_tag(file: HypervisorFile, vnet: Entry, type_: str, found: Diagnostics) -> None:
    tag, largest = vnet.values.get("tag"), _LARGEST.get(type_)
    if tag is None:
        if largest is not None:
            detail = f"'{vnet.name}' is in a {type_} zone and has no tag."
            found.add(BAD_TAG, detail, file.place(vnet))
    elif largest is None:
        found.add(BAD_TAG, f"'{vnet.name}' is in a {type_} zone and has a tag.", file.place(vnet, "tag"))
    elif not 1 <= tag <= largest:
        found.add(BAD_TAG, f"'{vnet.name}' of a {type_} zone has the tag {tag}.", file.place(vnet, "tag"))
