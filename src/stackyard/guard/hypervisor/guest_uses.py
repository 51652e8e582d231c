"""What the configuration of a guest uses: storages, networks, and mapped devices."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.guard.hypervisor.taken import Sort, Taken

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

__all__ = ["keys_that_use"]

_NETWORK = re.compile(r"net\d+")
_DEVICE = re.compile(r"(hostpci|usb)\d+")
_FOLDER = re.compile(r"virtiofs\d+")
# What is text of the user's.
_TEXTS = ("description", "name", "hostname", "tags", "digest")
_FILES = ("iso", "vztmpl", "snippets", "import", "backup")
_DISKS = {"qemu": "images", "lxc": "rootdir"}


def keys_that_use(
    taken: Taken, config: Mapping[str, Any], kind: str, vnets: Collection[str] = ()
) -> Iterator[str]:
    """Return the keys of a configuration by which a guest uses what a plan takes away.

    Args:
        taken: What is taken away.
        config: The configuration.
        kind: What the guest is: `qemu` or `lxc`.
        vnets: The virtual networks of a zone.
    """
    for key, value in config.items():
        if key in _TEXTS:
            continue
        given = _parts(value)
        match taken.sort:
            case Sort.STORAGE:
                is_used = _uses_storage(taken, key, given, kind)
            case Sort.INTERFACE | Sort.VNET:
                is_used = _NETWORK.fullmatch(key) is not None and ("bridge", taken.name) in given
            case Sort.ZONE:
                bridges = {text for name, text in given if name == "bridge"}
                is_used = _NETWORK.fullmatch(key) is not None and not bridges.isdisjoint(vnets)
            case _:
                is_used = _uses_mapping(taken, key, given)
        if is_used:
            yield key


def _parts(value: Any) -> list[tuple[str, str]]:
    """Return the parts of a value, each with its name where it has one."""
    found = []
    for part in str(value).split(","):
        name, sign, text = part.partition("=")
        found.append((name, text) if sign else ("", part))
    return found


def _uses_storage(taken: Taken, key: str, given: list[tuple[str, str]], kind: str) -> bool:
    if key == "vmstatestorage":
        return given == [("", taken.name)]
    for _, text in given:
        storage, sign, volume = text.partition(":")
        if sign and storage == taken.name:
            folder = volume.partition("/")[0]
            content = folder if folder in _FILES else _DISKS[kind]
            if taken.contents is None or content in taken.contents:
                return True
    return False


def _uses_mapping(taken: Taken, key: str, given: list[tuple[str, str]]) -> bool:
    is_folder = taken.change.kind.endswith("_dir")
    if is_folder:
        return _FOLDER.fullmatch(key) is not None and bool(
            {("dirid", taken.name), ("", taken.name)} & {*given}
        )
    wanted = "hostpci" if taken.change.kind.endswith("_pci") else "usb"
    found = _DEVICE.fullmatch(key)
    return found is not None and found[1] == wanted and ("mapping", taken.name) in given
