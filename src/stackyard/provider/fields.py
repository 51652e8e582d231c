"""Attributes and the properties of the API that they represent: both directions from one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.fields.properties import flag, number
from stackyard.fields.table import Form
from stackyard.provider.values import UNKNOWN, Object

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "COMMA_SET",
    "FLAG",
    "NUMBER",
    "TEXT",
    "TRIMMED",
    "Field",
    "Form",
    "changes",
    "hidden",
    "params",
    "values",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One attribute and its property.

    Attributes:
        attribute: The name in the configuration.
        key: The name of the property; the same as the attribute when absent.
        form: How the value is spelled there.
        clears: Whether the property can be unset.
        off: A value beside null for which Proxmox keeps no property.
        create_only: Whether it is sent only when the object is created.
        blank: Whether an empty text unsets it, where the call has no parameter `delete`.
        secret: Whether Proxmox never shows it: the state keeps what was sent, the journal does not get it.
        write_only: The attribute that gives it without a trace in the state, where there is one.
    """

    attribute: str
    key: str = ""
    form: Form
    clears: bool = True
    off: Any = None
    create_only: bool = False
    blank: bool = False
    secret: bool = False
    write_only: str = ""

    @property
    def name(self) -> str:
        """The name in the API."""
        return self.key or self.attribute

    def is_set(self, state: Mapping[str, Any]) -> bool:
        """Return whether a state has something that Proxmox keeps."""
        return state.get(self.attribute) not in (None, [], self.off)


def _as_is(value: Any) -> Any:
    return value


TEXT = Form(write=str, read=str)
# Comments come back with the newline that the file of a node ends them with.
TRIMMED = Form(write=str, read=lambda value: str(value).strip())
NUMBER = Form(write=_as_is, read=number)
FLAG = Form(write=bool, read=flag)
COMMA_SET = Form(
    write=lambda value: ",".join(sorted(value)),
    read=lambda value: sorted(part.strip() for part in str(value).split(",") if part.strip()),
)


def params(fields: Iterable[Field], state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is set, as parameters."""
    return {
        field.name: field.form.write(state[field.attribute])
        for field in fields
        if state.get(field.attribute) not in (None, UNKNOWN, field.off)
    }


def changes(fields: Sequence[Field], prior: Object, planned: Object) -> tuple[dict[str, Any], list[str]]:
    """Return what is set in an update, and the properties that are to be unset."""
    gone = [field for field in fields if field.clears and field.is_set(prior) and not field.is_set(planned)]
    kept = [field for field in fields if not field.create_only and field not in gone]
    blanks = {field.name: "" for field in gone if field.blank}
    return {**params(kept, planned), **blanks}, [field.name for field in gone if not field.blank]


def hidden(fields: Iterable[Field], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that only a configuration gives, and no plan or state has."""
    return {
        field.name: field.form.write(config[field.write_only])
        for field in fields
        if field.write_only and config.get(field.write_only) not in (None, UNKNOWN)
    }


def values(fields: Iterable[Field], answer: Mapping[str, Any]) -> Object:
    """Return the attributes in an answer; what it lacks is null."""
    return {
        field.attribute: None if answer.get(field.name) is None else field.form.read(answer[field.name])
        for field in fields
        if not field.secret
    }
