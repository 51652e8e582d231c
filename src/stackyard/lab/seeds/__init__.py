"""Seeds: what a new lab holds, as data: its nodes, who may log in, its files, and calls of its own API.

`load_seed` finds one by name (a file of this package) or in a JSON file; `parse_seed` reads the same from an
object. A seed builds everything through the API, so it can hold nothing that a client could not have made.
"""

from __future__ import annotations

from stackyard.lab.seeds.reading import (
    EMPTY,
    Seed,
    SeedCall,
    SeedError,
    SeedFile,
    SeedUser,
    is_node_name,
    load_seed,
    parse_seed,
    seed_names,
)

__all__ = [
    "EMPTY",
    "Seed",
    "SeedCall",
    "SeedError",
    "SeedFile",
    "SeedUser",
    "is_node_name",
    "load_seed",
    "parse_seed",
    "seed_names",
]
