"""Values as they travel between the engine and a provider: plain Python, plus `UNKNOWN`.

Null is None; an object or map is a dict, a list or set is a list. A number is int or float, or the digits as
text when neither holds it exactly: such a one is passed on as it came.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import msgpack  # type: ignore[import-untyped]

from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import LARGE

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "UNKNOWN",
    "Object",
    "decode",
    "decode_json",
    "encode",
    "get_known",
    "is_whole",
    "is_zero",
    "known_block",
]

Object = dict[str, Any]

_UNKNOWN_CODE = 0
# An unknown value of which something is known ("not null"); for us it is unknown all the same.
_REFINED_UNKNOWN_CODE = 12


class _Unknown(enum.Enum):
    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown.UNKNOWN


def decode(data: bytes) -> Any:
    """Return the value in a message of the engine.

    Raises:
        ValueError: The bytes are no such message.
    """
    return msgpack.unpackb(data, ext_hook=_extension, strict_map_key=False)


def decode_json(data: bytes) -> Any:
    """Return the value in a state as the engine stores it.

    Raises:
        ValueError: The bytes are not JSON.
    """
    return parse_json(data, LARGE)


def encode(value: Any) -> bytes:
    """Return a value as a message for the engine."""
    packed: bytes = msgpack.packb(value, default=_pack_unknown)
    return packed


def _pack_unknown(value: Any) -> Any:
    if value is UNKNOWN:
        return msgpack.ExtType(_UNKNOWN_CODE, b"\0")
    raise TypeError(f"cannot send a {type(value).__name__}")


def _extension(code: int, data: bytes) -> Any:
    if code in (_UNKNOWN_CODE, _REFINED_UNKNOWN_CODE):
        return UNKNOWN
    raise ValueError(f"unknown extension {code} of {len(data)} bytes")


def is_whole(value: Any) -> bool:
    """Return whether nothing in a value is unknown."""
    if isinstance(value, dict):
        return all(is_whole(inner) for inner in value.values())
    if isinstance(value, list):
        return all(is_whole(inner) for inner in value)
    return value is not UNKNOWN


def is_zero(value: Any) -> bool:
    """Return whether a value is what the older SDK takes for "not set"."""
    return value is None or (value is not UNKNOWN and value in ("", 0, False, [], {}))


def get_known(values: Mapping[str, Any], name: str) -> Any:
    """Return an attribute that is set and known, else None."""
    value = values.get(name)
    return None if value is UNKNOWN else value


def known_block(values: Mapping[str, Any], name: str) -> Object | None:
    """Return a block that occurs at most once; None where it is left out or unknown."""
    blocks = values.get(name)
    if not isinstance(blocks, list) or not blocks or not isinstance(blocks[0], dict):
        return None
    found: Object = blocks[0]
    return found
