"""On which Proxmox node each VM of a cluster was put: the generated values say it, and git holds them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stackyard.base.files import read_text

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_host_record"]

_FILE = "infrastructure/tofu/terraform.tfvars"
_LINE = re.compile(r'\s+(name|proxmox_node)\s*=\s*"([a-zA-Z0-9.-]+)"\s*')


def read_host_record(folder: Path) -> dict[str, str]:
    """Return the Proxmox node of each node that `cluster configure` has written values for.

    Raises:
        FileError: The file is there and cannot be read.
    """
    path = folder / _FILE
    if not path.exists():
        return {}
    hosts: dict[str, str] = {}
    name = ""
    for line in read_text(path).splitlines():
        if not (found := _LINE.fullmatch(line)):
            continue
        if found[1] == "name":
            name = found[2]
        elif name:
            # Images, which come before the nodes, have a host and no name.
            hosts[name] = found[2]
    return hosts
