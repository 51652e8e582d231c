"""Seeds: what a new lab holds, as data: its nodes, storages and guests, who may log in, calls of its own API.

`load_seed` finds one by name (a file of this package, or a rule such as `big`) or in a file of JSON or YAML;
`parse_seed` reads the same from an object. Guests and volumes are put into the lab as they stand, which is
how thousands of them are there at once; everything else is built through the API, so it can be nothing
that a client could not have made.
"""

from __future__ import annotations

from stackyard.lab.seeds.checking import SeedError, is_node_name, parse_seed
from stackyard.lab.seeds.model import (
    EMPTY,
    PREPARED_STORAGES,
    STOCK_STORAGES,
    Seed,
    SeedCall,
    SeedFile,
    SeedGuest,
    SeedMachine,
    SeedUser,
    SeedVolume,
)
from stackyard.lab.seeds.reading import decode_seed, is_seed_file, load_seed, seed_names

__all__ = [
    "EMPTY",
    "PREPARED_STORAGES",
    "STOCK_STORAGES",
    "Seed",
    "SeedCall",
    "SeedError",
    "SeedFile",
    "SeedGuest",
    "SeedMachine",
    "SeedUser",
    "SeedVolume",
    "decode_seed",
    "is_node_name",
    "is_seed_file",
    "load_seed",
    "parse_seed",
    "seed_names",
]
