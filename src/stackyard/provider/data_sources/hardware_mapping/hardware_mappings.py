"""`proxmox_hardware_mappings`: the names of all mappings of a type, and what is wrong with them on a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.checks import one_of
from stackyard.provider.data_sources.hardware_mapping.reading import SAME_PICTURE_S
from stackyard.provider.kinds import DataSource, both_names
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]


async def _read(work: Work, config: Object) -> Object:
    kind = config["type"]
    asked = {"check-node": config["check_node"]} if config.get("check_node") else {}
    listed = await work.client.get(f"/cluster/mapping/{kind}", asked, max_age_s=SAME_PICTURE_S)
    mappings = sorted(listed, key=lambda mapping: str(mapping["id"]))
    checks = [
        {
            "mapping_id": mapping["id"],
            "message": str(check.get("message") or "").removesuffix("\n"),
            "severity": check.get("severity"),
        }
        for mapping in mappings
        for check in mapping.get("errors" if kind == "usb" else "checks") or ()
    ]
    return {
        **config,
        "id": "hardware_mappings",
        "ids": [mapping["id"] for mapping in mappings],
        "checks": checks or None,
    }


DATA_SOURCE = DataSource(
    names=both_names("hardware_mappings"), read=_read, rules={"type": Rule(check=one_of("dir", "pci", "usb"))}
)
