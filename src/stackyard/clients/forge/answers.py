"""Reading what a forge answers: a value of another type than promised is refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.visible import on_one_line
from stackyard.clients.forge.failures import ForgeAnswerError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Answer", "as_list", "as_object", "read_flag", "read_number", "read_object", "read_text"]

_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a forge answered.

    Attributes:
        status: The status of HTTP.
        document: The JSON; None where the answer has no content.
        headers: The headers, their names in lower case.
    """

    status: int
    document: Any
    headers: Mapping[str, str] = field(default_factory=dict)


def as_object(value: object, what: str) -> dict[str, Any]:
    """Return an object of JSON.

    Raises:
        ForgeAnswerError: It is none.
    """
    if isinstance(value, dict):
        return value
    raise ForgeAnswerError(f"The forge answers with {_kind(value)} where {_name(what)} belongs.")


def as_list(value: object, what: str) -> list[dict[str, Any]]:
    """Return a list of objects; nothing counts as an empty one.

    Raises:
        ForgeAnswerError: It is none.
    """
    if value is None:
        return []
    if isinstance(value, list):
        return [as_object(one, what) for one in value]
    raise ForgeAnswerError(f"The forge answers with {_kind(value)} where a list of {_name(what)} belongs.")


def read_object(document: Mapping[str, Any], *path: str) -> dict[str, Any]:
    """Return the object at a path; an empty one where it is missing or null.

    Raises:
        ForgeAnswerError: Something else is there.
    """
    found = _find(document, path)
    return {} if found is None else as_object(found, ".".join(path))


def read_text(document: Mapping[str, Any], *path: str) -> str:
    """Return the text at a path; an empty one where it is missing or null.

    Raises:
        ForgeAnswerError: Something else is there.
    """
    found = _find(document, path)
    if found is None:
        return ""
    if isinstance(found, str):
        return found
    raise ForgeAnswerError(f"The forge answers with {_kind(found)} where the text {'.'.join(path)} belongs.")


def read_number(document: Mapping[str, Any], *path: str) -> int:
    """Return the whole number at a path; 0 where it is missing or null.

    Raises:
        ForgeAnswerError: Something else is there.
    """
    found = _find(document, path)
    if found is None:
        return 0
    if isinstance(found, int) and not isinstance(found, bool):
        return found
    raise ForgeAnswerError(
        f"The forge answers with {_kind(found)} where the number {'.'.join(path)} belongs."
    )


def read_flag(document: Mapping[str, Any], *path: str) -> bool:
    """Return whether something is so; not so where it is missing or null.

    Raises:
        ForgeAnswerError: Something else is there.
    """
    found = _find(document, path)
    if found is None:
        return False
    if isinstance(found, bool):
        return found
    raise ForgeAnswerError(
        f"The forge answers with {_kind(found)} where yes or no ({'.'.join(path)}) belongs."
    )


def _find(document: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    found: Any = document
    for index, name in enumerate(path):
        if found is None:
            return None
        found = as_object(found, ".".join(path[:index]) or "an object").get(name)
    return found


def _name(what: str) -> str:
    return on_one_line(what)[:_LONGEST_NAME]


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "yes or no", type(None): "nothing"}
    return names.get(type(value), "a number")
