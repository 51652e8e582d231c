"""Rows: a field of the model, its attribute in bpg's resource, its property in Proxmox, and its spelling."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.fields.properties import flag, number, parse, parse_integer, parse_list, text
from stackyard.fields.properties import render as render_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping

__all__ = [
    "COUNT",
    "FLAG",
    "LIST",
    "NUMBER",
    "SENT",
    "SWITCH",
    "TEXT",
    "WHOLE",
    "Effect",
    "Form",
    "Row",
    "Table",
]


class Effect(enum.Enum):
    """What a change of a field means for a guest that is there.

    Attributes:
        LIVE: It changes while the guest runs.
        AT_START: It changes when the guest starts the next time; Proxmox keeps it pending until then.
        REBOOT: As `AT_START`, and the provider reboots a running container for it.
        REPLACE: The guest is replaced.
    """

    LIVE = "live"
    AT_START = "at start"
    REBOOT = "reboot"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How Proxmox spells a value.

    Attributes:
        write: Returns what is sent for an attribute; None for what is not sent.
        read: Returns the attribute for what Proxmox has.
        empty: The attribute where Proxmox has nothing.
    """

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    empty: Any = None


# What Proxmox has not set is what a configuration leaves out.
_AS_DEFAULT: Any = object()


def _as_is(value: Any) -> Any:
    return value


def _or_none(value: Any) -> Any:
    return value or None


TEXT = Form(write=_or_none, read=text, empty="")
# A text that is always sent, an empty one as well.
SENT = Form(write=_as_is, read=text, empty="")
WHOLE = Form(write=_or_none, read=parse_integer, empty=0)
NUMBER = Form(write=_or_none, read=number, empty=0)
# A number that is always sent, zero as well.
COUNT = Form(write=_as_is, read=parse_integer, empty=0)
# A flag that is always sent, and one that is sent only when it is on.
FLAG = Form(write=bool, read=flag, empty=False)
SWITCH = Form(write=lambda value: True if value else None, read=flag, empty=False)
LIST = Form(
    write=lambda value: ";".join(one for one in value or () if one) or None, read=parse_list, empty=()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One field.

    Attributes:
        field: Its name in the model; empty where the model has none.
        attribute: Its name in the resource; the same as in the model when absent.
        key: Its name in Proxmox; the same as in the resource when absent.
        form: How Proxmox spells it.
        default: The attribute where a configuration leaves it out; what the form has when absent.
        unset: The attribute where Proxmox has none; the default when absent.
        differs: Whether nothing in Proxmox means something else than nothing in the model.
        effect: What a change of it means; what a change of its table means when absent.
        to_attribute: Turns a value of the model into the attribute, where they are not the same.
        to_field: The other direction.
    """

    field: str
    attribute: str = ""
    key: str = ""
    form: Form = TEXT
    default: Any = None
    unset: Any = _AS_DEFAULT
    differs: bool = False
    effect: Effect | None = None
    to_attribute: Callable[[Any], Any] = _as_is
    to_field: Callable[[Any], Any] = _as_is

    @property
    def name(self) -> str:
        """The name in the resource."""
        return self.attribute or self.field

    @property
    def property_name(self) -> str:
        """The name in Proxmox."""
        return self.key or self.name

    @property
    def usual(self) -> Any:
        """The attribute where a configuration leaves it out."""
        found = self.form.empty if self.default is None else self.default
        return list(found) if isinstance(found, tuple) else found

    def render(self, value: object) -> Any:
        """Return the attribute that a value of the model says; 1.0 and 1 are one number."""
        found = self.to_attribute(getattr(value, self.field))
        return int(found) if isinstance(found, float) and found.is_integer() else found

    def read(self, properties: Mapping[str, Any]) -> Any:
        """Return the attribute that properties of Proxmox say."""
        value = properties.get(self.property_name)
        if value is None:
            return self.usual if self.unset is _AS_DEFAULT else self.unset
        return self.form.read(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The rows of one block of a resource.

    Attributes:
        rows: The rows, in the order in which Proxmox gets them.
        bare: The property that may come without its name, where all are one property string.
        effect: What a change of a row means, where it says nothing of its own.
    """

    rows: tuple[Row, ...]
    bare: str = ""
    effect: Effect = Effect.AT_START

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def rows_with(self, effect: Effect) -> tuple[Row, ...]:
        """Return the rows whose change means this."""
        return tuple(row for row in self.rows if (row.effect or self.effect) is effect)

    def render(self, value: object) -> dict[str, Any]:
        """Return the attributes that a value of the model says."""
        return {row.name: row.render(value) for row in self.rows if row.field}

    def to_fields(self, block: Mapping[str, Any], properties: Container[str]) -> dict[str, Any]:
        """Return the fields of the model that a block says, which is the inverse of `render`.

        Args:
            block: The block as the provider reads it.
            properties: What Proxmox has set. The rest is left to the model, unless that means something else.
        """
        return {
            row.field: row.to_field(block[row.name])
            for row in self.rows
            if row.field and (row.differs or row.property_name in properties)
        }

    def defaults(self) -> dict[str, Any]:
        """Return the block that represents one which is left out."""
        return {row.name: row.usual for row in self.rows}

    def write(self, block: Mapping[str, Any]) -> dict[str, Any]:
        """Return the properties of a block; None for those that are not sent."""
        return {row.property_name: row.form.write(block.get(row.name)) for row in self.rows}

    def write_text(self, block: Mapping[str, Any]) -> str:
        """Return a block as one property string."""
        return render_properties(self.write(block))

    def read(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Return the block that properties say."""
        return {row.name: row.read(properties) for row in self.rows}

    def read_text(self, value: Any) -> dict[str, Any]:
        """Return the block that a property string says."""
        return self.read(parse(value, self.bare))
