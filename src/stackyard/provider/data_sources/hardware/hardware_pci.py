"""`proxmox_hardware_pci`: the PCI devices of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.fields.properties import flag
from stackyard.provider.kinds import DataSource

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]

# Anyone who asks twice within one plan gets the same picture.
_SAME_PICTURE_S = 1.0
_TEXTS = (
    *("id", "class", "device", "device_name", "vendor", "vendor_name"),
    *("subsystem_device", "subsystem_device_name", "subsystem_vendor", "subsystem_vendor_name"),
)
# The attributes of a device that the numbers of a filter are compared with.
_NUMBERS = {"class": "class", "vendor_id": "vendor", "device_id": "device"}


def _plain(number: Any) -> str:
    return str(number or "").lower().removeprefix("0x")


def _matches(device: dict[str, Any], filters: Object) -> bool:
    """Tell whether a device begins with everything that is asked for."""
    if filters.get("id") is not None and not str(device.get("id")).startswith(filters["id"]):
        return False
    return all(
        _plain(device.get(key)).startswith(_plain(filters[name]))
        for name, key in _NUMBERS.items()
        if filters.get(name) is not None
    )


def _values(device: dict[str, Any]) -> Object:
    return {
        **{name: str(device.get(name) or "") for name in _TEXTS},
        "iommu_group": int(device.get("iommugroup") or 0),
        "mdev": flag(device.get("mdev")),
    }


async def _read_devices(work: Work, config: Object) -> Object:
    hidden, filters = config.get("pci_class_blacklist"), config.get("filters") or {}
    # No classes at all is not the same as the classes that Proxmox leaves out by itself.
    query = {"pci-class-blacklist": None if hidden is None else ";".join(hidden)}
    path = f"/nodes/{proxmox.quote(config['node_name'])}/hardware/pci"
    listed = await work.client.get(path, query, max_age_s=_SAME_PICTURE_S)
    found = sorted(listed or (), key=lambda device: str(device.get("id")))
    return {**config, "devices": [_values(device) for device in found if _matches(device, filters)]}


DATA_SOURCE = DataSource(names=("proxmox_hardware_pci",), read=_read_devices)
