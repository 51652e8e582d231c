"""States for tests, as OpenTofu writes them, with secrets in all the places where they turn up."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["LINEAGE", "attribute_step", "encrypted_document", "index_step", "resource", "state_document"]

LINEAGE = "7d1c3f0a-1111-4222-8333-444455556666"


def resource(
    kind: str, name: str, attributes: dict[str, Any] | None = None, /, **fields: Any
) -> dict[str, Any]:
    """Return one resource; fields of its instance, or of itself, by name."""
    own: dict[str, Any] = {key: fields.pop(key) for key in ("module", "mode", "provider") if key in fields}
    instance = {"schema_version": 0, "attributes": attributes or {"id": name}, **fields}
    return {
        "mode": "managed",
        "type": kind,
        "name": name,
        "provider": 'provider["registry.example.org/bpg/proxmox"]',
        "instances": [instance],
        **own,
    }


def state_document(
    serial: int,
    *resources: dict[str, Any],
    lineage: str = LINEAGE,
    outputs: dict[str, Any] | None = None,
) -> bytes:
    """Return a state."""
    document = {
        "version": 4,
        "terraform_version": "1.12.6",
        "serial": serial,
        "lineage": lineage,
        "outputs": outputs or {},
        "resources": list(resources),
        "check_results": None,
    }
    return json.dumps(document).encode()


def encrypted_document(serial: int, *, lineage: str = LINEAGE, data: str = "c2VjcmV0") -> bytes:
    """Return a state as OpenTofu's own encryption leaves it."""
    recorder = {
        "serial": serial,
        "lineage": lineage,
        "meta": {"key_provider.pbkdf2.main": "e30="},
        "encrypted_data": data,
        "encryption_version": "v0",
    }
    return json.dumps(recorder).encode()


def attribute_step(name: str) -> dict[str, Any]:
    """Return a step of a sensitive path: into an attribute."""
    return {"type": "get_attr", "value": name}


def index_step(key: str | int) -> dict[str, Any]:
    """Return a step of a sensitive path: into a list or a map."""
    kind = "number" if isinstance(key, int) else "string"
    return {"type": "index", "value": {"type": kind, "value": key}}
