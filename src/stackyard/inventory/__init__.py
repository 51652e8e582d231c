"""The inventory: what runs where, for Ansible and whoever else asks, rendered from the state and its input.

`facts` reads the state, `contract` makes the versioned JSON document and holds it against its schema and
against what should be there, `ansible` makes Ansible's own forms of it, and `publishing` puts it where its
readers find it, whole or not at all. A guest that is not as it should be stops the publishing: the inventory
before it stays.
"""

from __future__ import annotations

from stackyard.inventory.contract import IncompleteError, Inventory, render
from stackyard.inventory.facts import Fact, read_facts
from stackyard.inventory.freshness import Freshness, freshness
from stackyard.inventory.publishing import Shelf, open_shelf

__all__ = [
    "Fact",
    "Freshness",
    "IncompleteError",
    "Inventory",
    "Shelf",
    "freshness",
    "open_shelf",
    "read_facts",
    "render",
]
