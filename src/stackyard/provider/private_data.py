"""What a resource remembers between a read and the plan that follows, beside its state.

The form is the one of the plugin framework (an object of base64 texts of JSON values), so that bpg's own
provider reads what ours has written, and the other way round.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import orjson

from stackyard.base.documents.jsontext import parse_json

__all__ = ["read_private", "write_private"]


def read_private(data: bytes) -> dict[str, Any]:
    """Return what is remembered; nothing when it has another form."""
    try:
        kept = parse_json(data) if data else {}
        return {name: parse_json(base64.b64decode(text)) for name, text in kept.items()}
    except (ValueError, binascii.Error, AttributeError, TypeError):
        return {}


def write_private(values: dict[str, Any]) -> bytes:
    """Return the bytes to remember."""
    if not values:
        return b""
    return orjson.dumps(
        {name: base64.b64encode(orjson.dumps(value)).decode() for name, value in values.items()}
    )
