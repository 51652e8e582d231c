"""The Proxmox VE API as facts: every method with its parameters, its privilege and its result.

It holds names, types, limits and privileges only, no texts. The rest of the lab reads the facts here, so a
handler never repeats what Proxmox declares.
"""

from __future__ import annotations

import gzip
import importlib.resources
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

__all__ = ["PVE_RELEASE", "PVE_VERSION", "Facts", "Method", "load"]

PVE_VERSION = "9.2.3"
PVE_RELEASE = "9.2"

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One method of the API as Proxmox declares it."""

    verb: str
    path: str
    name: str
    parameters: Mapping[str, Schema]
    permissions: Mapping[str, Any] | None
    returns: Schema
    allow_token: bool

    @property
    def route(self) -> str:
        """The method as one word: `GET /nodes/{node}/status`."""
        return f"{self.verb} {self.path}"

    @property
    def on_node(self) -> bool:
        """Whether the call is answered by the node that its path names."""
        return self.path.startswith("/nodes/{node}/") and self.path not in _FOR_OTHERS


@dataclass(frozen=True, slots=True)
class Facts:
    """All declared methods, by route."""

    methods: Mapping[str, Method]

    def __getitem__(self, route: str) -> Method:
        return self.methods[route]

    def schema(self, route: str, parameter: str) -> Schema:
        """Return the declared schema of one parameter of one method."""
        return self.methods[route].parameters[parameter]


# What another node does for the one that the path names.
_FOR_OTHERS = frozenset(("/nodes/{node}/wakeonlan",))

_DESCRIPTION: Schema = {"type": "string", "optional": 1, "maxLength": 4096}


def load() -> Facts:
    """Read the facts that ship with the package."""
    packed = importlib.resources.files(__name__).joinpath(f"pve-{PVE_VERSION}.json.gz").read_bytes()
    methods = (_method(entry) for entry in orjson.loads(gzip.decompress(packed)))
    return Facts({method.route: method for method in methods})


def _method(entry: Mapping[str, Any]) -> Method:
    parameters = entry.get("parameters") or {}
    for schema in parameters.values():
        # The CD drive of old clients is declared by name; it is the IDE drive beside it.
        if schema.get("format") == "pve-qm-ide":
            schema["format"] = parameters["ide[n]"]["format"]
        # Perl notices that it tries the same again; Python would try for years. It matches the same texts.
        if "[-]*)" in schema.get("pattern", ""):
            schema["pattern"] = schema["pattern"].replace("[-]*)", "-+)")
    # The facts hold no texts, and with them went the property of this name.
    if entry["path"].startswith(("/cluster/mapping/pci", "/cluster/mapping/usb")) and "map" in parameters:
        parameters["map"]["items"]["format"]["description"] = _DESCRIPTION
    return Method(
        verb=entry["verb"],
        path=entry["path"],
        name=entry["name"],
        parameters=parameters,
        permissions=entry.get("permissions"),
        returns=entry.get("returns") or {},
        allow_token=entry["allow_token"],
    )
