"""What contradicts itself in the configuration of a VM, found before anything is planned."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stackyard.provider.problems import Problem
from stackyard.provider.values import UNKNOWN, get_known, known_block

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.provider.values import Object

__all__ = ["validate"]

_SLOTS = (("hostpci", "device"), ("numa", "device"))


def validate(config: Object) -> Iterator[Problem]:
    """Give what is wrong with a VM as a whole."""
    yield from _check_drives(config)
    yield from _check_slots(config)
    yield from _check_passthrough(config)
    for number, disk in enumerate(_blocks(config, "disk")):
        if get_known(disk, "queues") and not str(get_known(disk, "interface") or "scsi").startswith("scsi"):
            yield Problem(path=("disk", number, "queues"), detail="`disk.queues` exists for SCSI disks only.")
        if get_known(disk, "file_id") and get_known(disk, "import_from"):
            yield Problem(path=("disk", number), detail="A disk has either `file_id` or `import_from`.")
    if config.get("template") is True and config.get("started") is True:
        yield Problem(
            path=("started",),
            detail="A template never runs; `started` is ignored.",
            summary="A template is not started",
            is_error=False,
        )


def _blocks(config: Object, name: str) -> list[Object]:
    blocks = config.get(name)
    return [one for one in blocks if isinstance(one, dict)] if isinstance(blocks, list) else []


def _check_drives(config: Object) -> Iterator[Problem]:
    used = [str(disk["interface"]) for disk in _blocks(config, "disk") if get_known(disk, "interface")]
    cdrom, initialization = known_block(config, "cdrom"), known_block(config, "initialization")
    if cdrom is not None and cdrom.get("interface") is not UNKNOWN:
        used.append(str(cdrom.get("interface") or "ide3"))
    if initialization is not None and get_known(initialization, "interface"):
        used.append(str(initialization["interface"]))
    for interface, times in Counter(used).items():
        if times > 1:
            yield Problem(path=("disk",), detail=f"More than one drive is attached to {interface}.")


def _check_slots(config: Object) -> Iterator[Problem]:
    for name, attribute in _SLOTS:
        devices = Counter(str(one[attribute]) for one in _blocks(config, name) if get_known(one, attribute))
        for device, times in devices.items():
            if times > 1:
                yield Problem(path=(name,), detail=f"There is more than one `{name}` for {device}.")


def _check_passthrough(config: Object) -> Iterator[Problem]:
    for name, attribute in (("hostpci", "id"), ("usb", "host")):
        for number, device in enumerate(_blocks(config, name)):
            if device.get(attribute) in (None, "") and device.get("mapping") in (None, ""):
                yield Problem(path=(name, number), detail=f"A `{name}` needs `{attribute}` or `mapping`.")
