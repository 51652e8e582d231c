"""The inventory: which guests run where, rendered from the state and its input for Ansible and others.

`facts` reads the state. `contract` builds the versioned JSON document and checks it against its schema and
the desired state. `ansible` converts it to Ansible's own formats, and `publishing` publishes it atomically.
A guest that differs from the desired state stops the publishing: the previous inventory stays.
"""

from __future__ import annotations

from stackyard.inventory.contract import IncompleteError, Inventory, render
from stackyard.inventory.facts import Fact, read_facts
from stackyard.inventory.freshness import Freshness, freshness
from stackyard.inventory.targets import InventoryTarget, open_inventory_target

__all__ = [
    "Fact",
    "Freshness",
    "IncompleteError",
    "Inventory",
    "InventoryTarget",
    "freshness",
    "open_inventory_target",
    "read_facts",
    "render",
]
