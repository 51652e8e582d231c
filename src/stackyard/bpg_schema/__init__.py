"""What bpg/proxmox declares, as data: types, nesting, defaults and replace rules of all that it has.

There is one file for each kind, with the names that it has. `wire.msgpack` has the same schemas as messages,
and the kind of each name. `scripts/generate_provider_facts.py` writes all of them; do not edit them by hand.
"""

from __future__ import annotations

import importlib.resources
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgpack  # type: ignore[import-untyped]
import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Index", "Named", "load_index", "load_kind", "load_provider"]


@dataclass(frozen=True, slots=True)
class Named:
    """A name: which kind it is of, and its schema as a message."""

    kind: str
    message: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """Every name that bpg/proxmox has."""

    provider: bytes
    resources: Mapping[str, Named]
    data_sources: Mapping[str, Named]


def load_index() -> Index:
    """Return every name."""
    loaded = msgpack.unpackb(_read("wire.msgpack"))
    return Index(
        provider=loaded["provider"],
        resources={name: Named(*known) for name, known in loaded["resources"].items()},
        data_sources={name: Named(*known) for name, known in loaded["data_sources"].items()},
    )


def load_kind(section: str, kind: str, name: str) -> dict[str, Any]:
    """Return the facts of a kind (`resources` or `data_sources`) under one of its names."""
    known: dict[str, Any] = orjson.loads(_read(f"{section}/{kind}.json"))
    return {**known, "block": {**known["block"], **known["names"][name]}}


def load_provider() -> dict[str, Any]:
    """Return the facts of the provider itself, and its `provider_version`."""
    loaded: dict[str, Any] = orjson.loads(_read("provider.json"))
    return loaded


def _read(path: str) -> bytes:
    return importlib.resources.files(__name__).joinpath(path).read_bytes()
