"""Names of states: what may be one, and how it becomes part of the name of an object."""

from __future__ import annotations

import re

from stackyard.base.errors import InvalidInputError

__all__ = ["StateNameError", "check_name", "is_below", "is_name", "name_of", "object_part"]

_PART = re.compile(r"[A-Za-z0-9_@:+=,~.-]+")
_LONGEST = 400
# Stands for a slash in the name of an object; no state's name holds one. With slashes, a state `a` and a
# state # `a/b` would be a file and a folder of the same name in some stores.
_SLASH = "!"


class StateNameError(InvalidInputError):
    """The name of a state is empty, too long, or holds something that could be taken for a path trick."""

    code = "E-STATE-NAME"
    summary = "The name of a state is not usable"
    default_remedy = "Use letters, digits and _@:+=,~.- in parts separated by single slashes: prod/network."


def check_name(name: str) -> str:
    """Return a name that a state may have.

    Raises:
        StateNameError: It is none.
    """
    if not is_name(name):
        raise StateNameError(f"{name[:100]!r} cannot be the name of a state.")
    return name


def is_name(name: str) -> bool:
    """Return whether a state may have this name."""
    fits = all(_PART.fullmatch(part) and part.strip(".") for part in name.split("/"))
    return fits and len(name) <= _LONGEST


def object_part(name: str) -> str:
    """Return what represents a state in the names of its objects."""
    return check_name(name).replace("/", _SLASH)


def name_of(part: str) -> str:
    """Return the state that a part of an object's name represents."""
    return part.replace(_SLASH, "/")


def is_below(name: str, prefix: str) -> bool:
    """Return whether a state is the one that a prefix names, or below it; an empty prefix is above all."""
    above = prefix.rstrip("/")
    return not above or name == above or name.startswith(f"{above}/")
