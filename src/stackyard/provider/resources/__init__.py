"""The resources, one file for each resource or family: `ALL` lists them.

To add one, declare a `Collection` (a row of a list) or a `Resource` (anything else) in a file here, with
its names as in bpg and its rules, and put it in `ALL`. Its schema comes from the facts;
`scripts/generate_provider_facts.py` adds it there.
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
