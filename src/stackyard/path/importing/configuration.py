"""The configuration of a guest as Proxmox keeps it, and what of it the model cannot carry.

The provider reads the values. What it does not read, or the model has nothing for, is reported by its key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from stackyard.fields.properties import list_numbered, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from stackyard.desired import Guest
    from stackyard.fields.table import Table
    from stackyard.provider.values import Object

__all__ = ["Configuration", "KnownParts", "TranslatedGuest", "Unsupported", "parts_of"]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownParts:
    """The parts of a property string (`local-lvm:vm-1-disk-0,size=8G`) that the model carries, or need not.

    Attributes:
        names: Their names.
        bare: The part that may come without its name.
    """

    names: frozenset[str]
    bare: str = ""


def parts_of(table: Table, *more: str) -> KnownParts:
    """Return the parts that the rows of a table carry, and more."""
    rows = {row.property_name for row in table if row.field}
    return KnownParts(names=frozenset({*rows, *more}), bare=table.bare)


class Configuration:
    """The configuration of one guest, and what is wrong with it.

    Args:
        values: What Proxmox says.
        left_alone: Keys that stay as they are, outside of everything, because the user says so.
    """

    def __init__(self, values: Mapping[str, Any], left_alone: Iterable[str] = ()) -> None:
        alone = set(left_alone)
        self.values = {key: value for key, value in values.items() if key not in alone}
        self.lacks: list[Unsupported] = []
        self.notes: list[str] = []

    def read(self, describe: Callable[[Mapping[str, Any]], Object]) -> Object:
        """Return the attributes as the provider reads them, and report every key that it cannot read."""
        try:
            return describe(self.values)
        except ValueError:
            for key, value in list(self.values.items()):
                try:
                    describe({key: value})
                except ValueError:
                    self.lack(key, f"{str(value)!r} is not understood")
                    del self.values[key]
            return describe(self.values)

    def parts(self, key: str, bare: str) -> dict[str, str]:
        """Return the parts of a property string; none where it is not set."""
        return parse(self.values.get(key, ""), bare)

    def fields(self, key: str, table: Table, block: Object) -> dict[str, Any]:
        """Return the fields of a block that is one property string."""
        return table.to_fields(block, self.parts(key, table.bare))

    def numbered(self, prefix: str, table: Table, blocks: Sequence[Object]) -> list[dict[str, Any]]:
        """Return the fields of blocks that are one property string each (`net0`, `net1`)."""
        keys = [f"{prefix}{number}" for number, _ in list_numbered(self.values, prefix)]
        return [self.fields(key, table, block) for key, block in zip(keys, blocks, strict=True)]

    def list_matching(self, pattern: str) -> list[str]:
        """Return the keys that have a form."""
        return [key for key in self.values if re.fullmatch(pattern, key)]

    def forget(self, *keys: str) -> None:
        """Leave out what says nothing about what should be there."""
        for key in keys:
            self.values.pop(key, None)

    def lack(self, key: str, text: str) -> None:
        """Report something that cannot be carried."""
        self.lacks.append(Unsupported(key=key, text=text))

    def note(self, text: str) -> None:
        """Report something that is taken for something else."""
        self.notes.append(text)

    def lack_gaps(self, *prefixes: str) -> None:
        """Report where a number is missing before another one (`net1` without `net0`): the model counts."""
        for prefix in prefixes:
            for place, (number, _) in enumerate(list_numbered(self.values, prefix)):
                if place != number:
                    self.lack(f"{prefix}{number}", f"there is no {prefix}{place} before it")
                    break

    def lack_unknown(self, known: Mapping[str, KnownParts | None]) -> None:
        """Report every key, and every part of one, that the model has nothing for.

        Args:
            known: The keys that it has, as patterns; None where the value has no parts.
        """
        for key in sorted(self.values):
            pattern = next((one for one in known if re.fullmatch(one, key)), None)
            if pattern is None:
                self.lack(key, "the model has nothing for it")
            elif (parts := known[pattern]) is not None:
                for name in sorted(self.parts(key, parts.bare).keys() - parts.names):
                    self.lack(f"{key}.{name}", "the model has nothing for it")

    def translate(
        self, row: Mapping[str, Any], model: Callable[[dict[str, Any]], Guest], fields: dict[str, Any]
    ) -> TranslatedGuest:
        """Return the guest, or everything that stands against it."""
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
