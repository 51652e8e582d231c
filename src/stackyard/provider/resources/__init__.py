"""The resources, one file each or one file for a family: `ALL` lists them.

To add one: declare a `Resource` in a file here (its names as bpg spells them, its rules, its four operations)
and put it in `ALL`; its schema comes from the facts, to which `scripts/generate_provider_facts.py` adds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.resources import ha, sdn
from stackyard.provider.resources.container import CONTAINER
from stackyard.provider.resources.download_file import DOWNLOAD_FILE
from stackyard.provider.resources.file import FILE
from stackyard.provider.resources.network import BRIDGE, VLAN
from stackyard.provider.resources.pool import POOL
from stackyard.provider.resources.vm import VM

if TYPE_CHECKING:
    from stackyard.provider.kinds import Resource

__all__ = ["ALL"]

ALL: tuple[Resource, ...] = (POOL, BRIDGE, VLAN, *sdn.ALL, *ha.ALL, DOWNLOAD_FILE, FILE, CONTAINER, VM)
