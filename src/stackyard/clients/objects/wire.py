"""How objects travel over HTTP: the names and forms that the state service and its client share.

========================================  =================================================================
request below the address of the service  what it does
========================================  =================================================================
``GET /objects/v1/KEY``                   the bytes with their tag as ``ETag``; 404 where there is none
``PUT /objects/v1/KEY``                   writes, with ``If-None-Match: *`` or ``If-Match: TAG``; else 412
``DELETE /objects/v1/KEY``                removes
``GET /objects/v1/?prefix=P``             a list, with ``after`` and ``limit``
``GET /objects/v1/?watch=P``              waits for a change, with ``cursor`` and ``wait``
========================================  =================================================================

A PUT with the header ``X-Write-Id`` may be sent again. One that writes other objects before its own has them
all in its body (`pack_objects`).
"""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.errors import InvalidInputError
from stackyard.clients.objects.base import ListedObject, Tag, check_key

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "MARK",
    "PACKED",
    "ROOT",
    "WRITE_ID",
    "ChangeReport",
    "ListPage",
    "WireError",
    "format_tag",
    "pack_objects",
    "parse_tag",
    "unpack_objects",
]

ROOT = "/objects/v1/"
# On every answer of this interface: a 404 of another server does not mean that there is no object.
MARK = "X-Stackyard-Objects"
WRITE_ID = "X-Write-Id"
PACKED = "application/vnd.stackyard.objects"
_LENGTH_BYTES = 4
_LONGEST_TAG = 300
# Keys and sizes of the objects of one write; a state writes three at most.
_LONGEST_INDEX_BYTES = 256 * 1024


class WireError(InvalidInputError):
    """A request for objects, or an answer to one, has a part that is not understood."""

    code = "E-OBJECT-REQUEST"
    summary = "A request for objects is not understood"
    default_remedy = (
        "Use the same version of stackyard on both sides, and look for a proxy that changes requests."
    )


@dataclass(frozen=True, slots=True)
class ListPage:
    """A part of a list.

    Attributes:
        objects: The objects that the reader may see.
        after: Where the next part begins; empty at the end of what was asked for.
    """

    objects: tuple[ListedObject, ...]
    after: str = ""

    def to_json(self) -> bytes:
        """Return the body of an answer."""
        rows = [[one.key, one.size, one.modified_at] for one in self.objects]
        return orjson.dumps({"objects": rows, "after": self.after})

    @classmethod
    def from_json(cls, body: bytes) -> ListPage:
        """Read the body of an answer.

        Raises:
            WireError: It is none.
        """
        found = _parse_object(body)
        try:
            objects = tuple(
                ListedObject(key=str(key), size=int(size), modified_at=float(at))
                for key, size, at in found["objects"]
            )
            return cls(objects, str(found["after"]))
        except (KeyError, TypeError, ValueError, OverflowError) as err:
            raise WireError("A list of objects is not understood.") from err


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeReport:
    """The answer to a watch.

    Attributes:
        has_changed: Whether something may have changed since the cursor.
        cursor: From where the next request continues; empty where the reader has to look for itself.
    """

    has_changed: bool
    cursor: str = ""

    def to_json(self) -> bytes:
        """Return the body of an answer."""
        return orjson.dumps({"changed": self.has_changed, "cursor": self.cursor})

    @classmethod
    def from_json(cls, body: bytes) -> ChangeReport:
        """Read the body of an answer.

        Raises:
            WireError: It is none.
        """
        found = _parse_object(body)
        if not isinstance(found.get("changed"), bool) or not isinstance(found.get("cursor"), str):
            raise WireError("The answer to a watch is not understood.")
        return cls(has_changed=found["changed"], cursor=found["cursor"])


def format_tag(tag: Tag) -> str:
    """Return a tag as `ETag` and `If-Match` have it."""
    return f'"{urllib.parse.quote(tag, safe="")}"'


def parse_tag(text: str) -> Tag:
    """Read a tag.

    Raises:
        WireError: It is none.
    """
    inner = text.strip()
    if (
        len(inner) < 3
        or len(inner) > _LONGEST_TAG
        or inner[0] != '"'
        or inner[-1] != '"'
        or '"' in inner[1:-1]
    ):
        raise WireError(f"{text[:100]!r} is not the tag of an object.")
    return Tag(urllib.parse.unquote(inner[1:-1], errors="replace"))


def pack_objects(data: bytes, before: Mapping[str, bytes]) -> bytes:
    """Return a body with an object and those that come before it."""
    index = orjson.dumps({"size": len(data), "before": [[key, len(body)] for key, body in before.items()]})
    return b"".join((len(index).to_bytes(_LENGTH_BYTES, "big"), index, *before.values(), data))


def unpack_objects(body: bytes) -> tuple[bytes, dict[str, bytes]]:
    """Return an object and those that come before it.

    Raises:
        WireError: The body is none, or is cut off.
        KeyFormError: One of the others has a name that not every store can keep.
    """
    length = int.from_bytes(body[:_LENGTH_BYTES], "big")
    start = _LENGTH_BYTES + length
    if len(body) < start or length > _LONGEST_INDEX_BYTES:
        raise WireError("The index of the objects in the body is cut off or too long.")
    found = _parse_object(body[_LENGTH_BYTES:start])
    sizes, before = _read_index(found), dict[str, bytes]()
    *others, (_, size) = sizes
    for key, length in others:
        before[check_key(key)] = body[start : start + length]
        start += length
    if len(before) != len(others) or len(body) != start + size:
        raise WireError("The objects in the body do not have the sizes that its index says.")
    return body[start:], before


def _read_index(found: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the names and sizes of the objects in a body, the object itself last and without a name."""
    rows = found.get("before")
    if not isinstance(rows, list):
        raise WireError("The index of the objects in the body is not understood.")
    sizes: list[tuple[str, int]] = []
    for row in [*rows, ["", found.get("size")]]:
        match row:
            case [str(key), int(size)] if size >= 0 and not isinstance(size, bool):
                sizes.append((key, size))
            case _:
                raise WireError("The index of the objects in the body is not understood.")
    return sizes


def _parse_object(body: bytes) -> dict[str, Any]:
    try:
        found = parse_json(body)
    except JsonError as err:
        raise WireError("What was sent is not JSON.") from err
    if not isinstance(found, dict):
        raise WireError("What was sent is not a JSON object.")
    return found
