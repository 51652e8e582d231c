"""A guest with every value that it gets, and where each came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.sources.deployment import defaults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.base.errors import Location
    from stackyard.sources.deployment.model import Guest
    from stackyard.sources.deployment.text import ObjectText

__all__ = ["ExplainedField", "explain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedField:
    """One value of a guest.

    Attributes:
        key: What it is called; parts of an object with dots between them.
        value: What it is.
        where: Where it was written; nowhere where it is a default.
        why: How it came about, where no one wrote it.
    """

    key: str
    value: Any
    where: Location | None = None
    why: str = ""


def explain(guest: Guest, document: ObjectText) -> list[ExplainedField]:
    """Return every value of a guest, those that are written first."""
    table = defaults.CONTAINER if guest.is_container else defaults.VM
    reasons = {field.name: field.why for field in table}
    names = dict.fromkeys([*guest.entry, *(field.name for field in table)])
    found = [
        value
        for name in names
        for value in _values(guest, document, (name,), guest.fields.get(name), reasons.get(name, "default"))
    ]
    return sorted(found, key=lambda value: value.where is None)


def _values(
    guest: Guest, document: ObjectText, path: tuple[str, ...], value: Any, why: str
) -> Iterator[ExplainedField]:
    if isinstance(value, dict) and value:
        for name, part in value.items():
            yield from _values(guest, document, (*path, name), part, why)
        return
    if path[-1] == "password":
        value = "(secret)"
    key = ".".join(path)
    if _is_written(guest, path):
        place = guest.path if guest.is_generated else (*guest.path, *path)
        reason = "generated from here" if guest.is_generated else _describe_addition(guest, path, value)
        yield ExplainedField(key=key, value=value, where=document.place(place), why=reason)
    else:
        yield ExplainedField(key=key, value=value, why=why)


def _is_written(guest: Guest, path: tuple[str, ...]) -> bool:
    current: Any = guest.entry
    for name in path:
        current = current.get(name) if isinstance(current, dict) else None
    return current is not None


def _describe_addition(guest: Guest, path: tuple[str, ...], value: Any) -> str:
    """Say what was added to something that is written."""
    if path == ("tags",) and set(value) != set(guest.entry["tags"]):
        return "and the environment"
    return ""
