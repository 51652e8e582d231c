"""Protocol buffers as numbered fields, for the few messages that are read without their description."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Fields", "read_fields"]

_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_FIXED = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}
_MORE, _SEVEN_BITS = 0x80, 0x7F


class Fields:
    """A message: every value of a field, in order; what is not there has the value that the format says."""

    def __init__(self) -> None:
        self._numbers: dict[int, list[int]] = {}
        self._bytes: dict[int, list[bytes]] = {}

    def add(self, field: int, value: int | bytes) -> None:
        """Add a value."""
        if isinstance(value, int):
            self._numbers.setdefault(field, []).append(value)
        else:
            self._bytes.setdefault(field, []).append(value)

    def number(self, field: int) -> int:
        """Return a number."""
        return self._numbers.get(field, [0])[-1]

    def parts(self, field: int) -> list[bytes]:
        """Return everything of a field that repeats."""
        return self._bytes.get(field, [])

    def part(self, field: int) -> bytes | None:
        """Return a message inside this one, None where there is none."""
        found = self._bytes.get(field)
        return found[-1] if found else None

    def text(self, field: int) -> str:
        """Return a text."""
        return (self.part(field) or b"").decode()


def read_fields(data: bytes) -> Fields:
    """Return a message.

    Raises:
        ValueError: The bytes are none.
    """
    fields = Fields()
    for field, value in _values(data):
        fields.add(field, value)
    return fields


def _values(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        kind = key & 7
        if kind == _VARINT:
            number, place = _varint(data, place)
            yield key >> 3, number
            continue
        if kind == _BYTES:
            size, place = _varint(data, place)
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            raise ValueError(f"a field of the unknown kind {kind}")
        if place + size > len(data):
            raise ValueError("a field ends behind its message")
        yield key >> 3, data[place : place + size]
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if place >= len(data):
            raise ValueError("a number ends behind its message")
        byte = data[place]
        number |= (byte & _SEVEN_BITS) << shift
        place += 1
        if not byte & _MORE:
            return number, place
        shift += 7
