"""The configuration of a guest as Proxmox keeps it, and which of its keys were understood.

Whoever takes a key has understood it. What is left over at the end cannot be carried, and is reported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from stackyard.base.addresses import parse_interface
from stackyard.fields.properties import flag, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from stackyard.desired import Guest
    from stackyard.fields.table import Row, Table

__all__ = [
    "Configuration",
    "Parts",
    "SpellingError",
    "TranslatedGuest",
    "Unsupported",
    "as_address",
    "put_row",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """Something of a guest that the model cannot carry.

    Attributes:
        key: The key of its configuration: `parallel0`, or `scsi0.werror` for a part of one.
        text: Why not.
    """

    key: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedGuest:
    """A guest of a cluster in terms of the model.

    Attributes:
        vm_id: Its id.
        name: What it is called.
        node: What Proxmox calls the node that it is on.
        guest: The guest; None where something is lacking.
        lacks: Everything that the model cannot carry.
        notes: What is taken for something else than Proxmox means by it.
    """

    vm_id: int
    name: str
    node: str
    guest: Guest | None
    lacks: tuple[Unsupported, ...] = ()
    notes: tuple[str, ...] = ()


class SpellingError(ValueError):
    """A value is written in an unusual way, which those take for another who compare texts."""


def as_address(text: str) -> str:
    """Return an address, or the word in its place, that is written as everybody writes it.

    Raises:
        SpellingError: It is written otherwise.
    """
    if "/" not in text:
        return text
    usual = str(parse_interface(text))
    if usual != text:
        raise SpellingError(f"{text} is usually written {usual}, which providers compare: write it so")
    return usual


def _put(
    place: Configuration | Parts, fields: dict[str, Any], field: str, name: str, read: Callable[[str], Any]
) -> None:
    value = place.take(name)
    if value is None:
        return
    try:
        fields[field] = read(value)
    except ValueError as err:
        place.lack(name, str(err) if isinstance(err, SpellingError) else f"{value!r} is not understood")


def put_row(place: Configuration | Parts, fields: dict[str, Any], row: Row, name: str) -> None:
    """Put the field of a row, from what a place has under a name; what is not set is left to the model."""
    if not row.field:
        return
    _put(place, fields, row.field, name, row.import_value)
    if row.differs:
        fields.setdefault(row.field, row.import_value(None))


class Configuration:
    """The keys of one guest that nobody has understood yet, and what is wrong with the others.

    Args:
        values: What Proxmox says.
        left_alone: Keys that stay as they are, outside of everything, because the user says so.
    """

    def __init__(self, values: Mapping[str, Any], left_alone: Iterable[str] = ()) -> None:
        alone = set(left_alone)
        self._left = {key: value for key, value in values.items() if key not in alone}
        self.lacks: list[Unsupported] = []
        self.notes: list[str] = []

    def take(self, key: str) -> str | None:
        """Return a value; None where it is not set."""
        value = self._left.pop(key, None)
        return None if value is None else str(value)

    def take_flag(self, key: str, *, default: bool = False) -> bool:
        """Return a truth."""
        value = self.take(key)
        return flag(value, default)

    def take_list(self, key: str) -> list[Any]:
        """Return a list of lines."""
        value = self._left.pop(key, None)
        return list(value) if isinstance(value, list) else []

    def take_into(self, fields: dict[str, Any], **named: tuple[str, Callable[[str], Any]]) -> None:
        """Put values that are set under other names, each read its own way: `cores=("cores", int)`."""
        for field, (key, read) in named.items():
            _put(self, fields, field, key, read)

    def take_rows(self, fields: dict[str, Any], rows: Iterable[Row], parts: Parts | None = None) -> None:
        """Put the fields of rows that are set.

        Args:
            fields: Where to put them.
            rows: The rows.
            parts: The parts of a value that some of the rows are in.
        """
        for row in rows:
            place: Configuration | Parts = parts if parts and row.property_name in parts else self
            put_row(place, fields, row, row.property_name)

    def take_table(self, key: str, table: Table, *ignored: str) -> dict[str, Any] | None:
        """Return the fields of a value that is a property string; None where it is not set."""
        parts = self.take_parts(key, table.bare)
        return None if parts is None else parts.take_rows({}, table, *ignored)

    def take_parts(self, key: str, first: str) -> Parts | None:
        """Return a value that has parts (`local-lvm:vm-1-disk-0,size=8G`); None where it is not set."""
        text = self.take(key)
        return None if text is None else Parts(self, key, text, first)

    def take_numbered(self, prefix: str, first: str, *, gaps: bool = False) -> list[tuple[int, Parts]]:
        """Return all values of a kind (`net0`, `net1`) in the order of their numbers.

        Args:
            prefix: The kind.
            first: What the part without a name is called.
            gaps: Whether numbers may be missing; the model counts otherwise.
        """
        pattern = re.compile(rf"{prefix}(\d+)")
        numbers = sorted(int(found[1]) for key in self._left if (found := pattern.fullmatch(key)))
        if not gaps:
            for place, number in enumerate(numbers):
                if place != number:
                    self.lack(f"{prefix}{number}", f"there is no {prefix}{place} before it")
                    break
        return [
            (number, Parts(self, f"{prefix}{number}", self.take(f"{prefix}{number}") or "", first))
            for number in numbers
        ]

    def matching(self, pattern: str) -> list[str]:
        """Return the keys that are left and have a form."""
        return [key for key in self._left if re.fullmatch(pattern, key)]

    def forget(self, *keys: str) -> None:
        """Leave out what says nothing about what should be there."""
        for key in keys:
            self._left.pop(key, None)

    def lack(self, key: str, text: str) -> None:
        """Report something that cannot be carried."""
        self.lacks.append(Unsupported(key=key, text=text))

    def note(self, text: str) -> None:
        """Report something that is taken for something else."""
        self.notes.append(text)

    def translated(
        self, row: Mapping[str, Any], model: Callable[[dict[str, Any]], Guest], fields: dict[str, Any]
    ) -> TranslatedGuest:
        """Return the guest, or everything that stands against it."""
        for key in sorted(self._left):
            self.lack(key, "the model has nothing for it")
        guest: Guest | None = None
        try:
            guest = model(fields)
        except ValidationError as err:
            # What is missing was said already, in the words of Proxmox.
            said = (one for one in err.errors(include_url=False) if one["type"] != "missing")
            for error in said:
                where = ".".join(map(str, error["loc"])) or "configuration"
                self.lack(where, error["msg"].removeprefix("Value error, "))
        return TranslatedGuest(
            vm_id=int(row["vmid"]),
            name=str(fields.get("name") or row.get("name") or row["vmid"]),
            node=str(row["node"]),
            guest=None if self.lacks else guest,
            lacks=tuple(self.lacks),
            notes=tuple(self.notes),
        )


class Parts:
    """The parts of one value that nobody has understood yet; `done` reports what is left of them."""

    def __init__(self, config: Configuration, key: str, text: str, first: str) -> None:
        self._config = config
        self.key = key
        self._left = parse(text, first)

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def names(self) -> list[str]:
        """Return the parts that are left."""
        return list(self._left)

    def get(self, name: str) -> str:
        """Return a part without having understood it; empty where it is not set."""
        return self._left.get(name, "")

    def take(self, name: str) -> str | None:
        """Return a part; None where it is not set."""
        return self._left.pop(name, None)

    def take_into(self, fields: dict[str, Any], **named: tuple[str, Callable[[str], Any]]) -> None:
        """Put parts that are set under other names, each read its own way."""
        for field, (name, read) in named.items():
            _put(self, fields, field, name, read)

    def take_rows(self, fields: dict[str, Any], rows: Iterable[Row], *ignored: str) -> dict[str, Any]:
        """Put the fields of rows that are set, and report every part that nobody took, but for these."""
        for row in rows:
            put_row(self, fields, row, row.property_name)
        self.done(*ignored)
        return fields

    def lack(self, name: str, text: str) -> None:
        """Report a part that cannot be carried."""
        self._config.lack(f"{self.key}.{name}", text)

    def done(self, *ignored: str) -> None:
        """Report every part that nobody took, but for these."""
        for name in sorted(self._left.keys() - set(ignored)):
            self.lack(name, "the model has nothing for it")
