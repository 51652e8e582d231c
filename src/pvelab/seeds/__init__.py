"""Seeds: the content of a new lab as data: nodes, storages, guests, logins, and calls of its own API.

`load_seed` finds one by name (a file of this package, or a rule such as `big`) or in a file of JSON or
YAML; `parse_seed` reads the same from an object. Guests and volumes are added without calls, so thousands
of them are ready at once. Everything else goes through the API, so a seed cannot contain what a client
could not create.
"""

from __future__ import annotations

from pvelab.seeds.check import SeedError, is_node_name, parse_seed
from pvelab.seeds.model import (
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
from pvelab.seeds.read import decode_seed, is_seed_file, load_seed, seed_names

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
