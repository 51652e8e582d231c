"""Changing values of a YAML file by their keys, and nothing else of it: comments, order and quotes stay.

The file is read and written by ruamel.yaml. A file that it would not write back exactly as it is, is refused
before anything is changed: an edit never touches a line that it was not asked to.
"""

from __future__ import annotations

import io
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

from stackyard import files
from stackyard.errors import InvalidInputError, Location

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = [
    "Append",
    "Change",
    "Remove",
    "Set",
    "UnfaithfulEditError",
    "YamlEditError",
    "edit_file",
    "edit_text",
]

# How files are indented, the commonest first: mappings, lists, and the dash in a list.
_INDENTS = ((2, 4, 2), (2, 2, 0), (4, 4, 0), (4, 6, 4), (4, 6, 2), (4, 4, 2), (2, 3, 1))
# No line is ever broken.
_WIDTH = 2**20

Keys = tuple[str | int, ...]


class YamlEditError(InvalidInputError):
    """A YAML file cannot be changed as asked: it is not valid, or the keys lead through something else."""

    code = "E-YAML-EDIT"
    summary = "A YAML file cannot be changed as asked"
    default_remedy = "Change the file with an editor."


class UnfaithfulEditError(InvalidInputError):
    """A YAML file is written in a way that a program cannot keep: a change would disturb other lines."""

    code = "E-YAML-UNFAITHFUL"
    summary = "A YAML file cannot be changed without disturbing the rest of it"
    default_remedy = "Change the file with an editor, or lay it out as usual at the line named."


@dataclass(frozen=True, slots=True)
class Set:
    """Give the last of the keys a value; mappings that are missing on the way are made."""

    keys: Keys
    value: Any


@dataclass(frozen=True, slots=True)
class Append:
    """Add a value to the end of a list, which is made if it is missing; nothing if the value is in it."""

    keys: Keys
    value: Any


@dataclass(frozen=True, slots=True)
class Remove:
    """Take out the last of the keys; nothing if it is not there."""

    keys: Keys


Change = Set | Append | Remove


def edit_file(path: Path, changes: Sequence[Change]) -> bool:
    """Change a file, and tell whether that made a difference.

    Raises:
        UnfaithfulEditError: Other lines would change too; the file is untouched.
        YamlEditError: It is not valid, or the keys do not fit it.
        FileError: It cannot be read or written.
    """
    text = files.read_text(path)
    edited = edit_text(text, changes, str(path))
    if edited == text:
        return False
    files.replace_file(path, edited.encode(), mode=path.stat().st_mode & 0o777)
    return True


def edit_text(text: str, changes: Sequence[Change], path: str) -> str:
    """Return a YAML text with some values changed.

    Args:
        text: The whole file; empty, or only comments, for one that is to be made.
        changes: What to change, one after the other.
        path: The file that errors name.

    Raises:
        UnfaithfulEditError: Other lines would change too.
        YamlEditError: It is not valid, or the keys do not fit it.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    unix = text.replace("\r\n", "\n")
    if newline == "\r\n" and unix.replace("\n", "\r\n") != text:
        raise UnfaithfulEditError(f"{path} mixes line ends of Windows and Unix.", where=Location(path))
    ending = "" if not unix or unix.endswith("\n") else "\n"
    yaml, data, preamble = _faithful(unix + ending, path)
    before = _plain(data)
    for change in changes:
        _apply(data, change, path)
    if _plain(data) == before:
        return text
    edited = preamble + _dumped(yaml, data)
    return (edited if not ending else edited.removesuffix("\n")).replace("\n", newline)


def _faithful(text: str, path: str) -> tuple[YAML, CommentedMap, str]:
    """Read a text in the first of the usual ways in which it is written back exactly."""
    written = ""
    for mapping, sequence, offset in _INDENTS:
        yaml = YAML(typ="rt", pure=True)
        yaml.preserve_quotes = True
        yaml.width = _WIDTH
        yaml.indent(mapping=mapping, sequence=sequence, offset=offset)
        yaml.explicit_start = text.startswith("---") or "\n---" in text
        data = _loaded(yaml, text, path)
        if data is None:
            # ruamel.yaml has nowhere to keep the comments of an empty document.
            return yaml, CommentedMap(), "" if text.strip() == "---" else text
        if (written := _dumped(yaml, data)) == text:
            return yaml, data, ""
    pairs = itertools.zip_longest(text.split("\n"), written.split("\n"))
    line = next(number for number, (old, new) in enumerate(pairs, start=1) if old != new)
    raise UnfaithfulEditError(
        f"{path} would not stay as it is, first in line {line}.", where=Location(path, line)
    )


def _loaded(yaml: YAML, text: str, path: str) -> CommentedMap | None:
    try:
        data = yaml.load(text)
    except YAMLError as err:
        mark = getattr(err, "problem_mark", None)
        where = Location(path) if mark is None else Location(path, mark.line + 1, mark.column + 1)
        raise YamlEditError(f"{path} is not valid YAML.", where=where) from err
    except (ValueError, RecursionError, AttributeError, TypeError, KeyError, AssertionError) as err:
        # ruamel.yaml lets errors of its own making through on some invalid input.
        raise YamlEditError(f"{path} is not valid YAML.", where=Location(path)) from err
    if data is not None and not isinstance(data, CommentedMap):
        raise YamlEditError(f"{path} is not a mapping at its top.", where=Location(path, 1))
    return data


def _dumped(yaml: YAML, data: CommentedMap) -> str:
    stream = io.StringIO()
    yaml.dump(data, stream)
    return stream.getvalue()


def _plain(data: Any) -> Any:
    """Return a copy of what a document means, to see whether it changed."""
    if isinstance(data, CommentedMap):
        return [(key, _plain(value)) for key, value in data.items()]
    if isinstance(data, CommentedSeq):
        return [_plain(value) for value in data]
    return (type(data).__name__, data)


def _apply(data: CommentedMap, change: Change, path: str) -> None:
    if not change.keys:
        raise YamlEditError("A change must name at least one key.")
    *above, last = change.keys
    here: Any = data
    for depth, key in enumerate(above):
        following = change.keys[depth + 1]
        here = _step(here, key, path, change, makes_list=isinstance(following, int))
        if here is None:
            return
    match change:
        case Set():
            _set(here, last, change.value, path)
        case Append():
            _append(_step(here, last, path, change, makes_list=True), change, path)
        case Remove():
            if (isinstance(here, CommentedMap) and last in here) or (
                isinstance(here, CommentedSeq) and isinstance(last, int) and last < len(here)
            ):
                del here[last]


def _step(here: Any, key: str | int, path: str, change: Change, *, makes_list: bool) -> Any:
    """Go to what a key names; make it if it is missing or empty and something is to be put there."""
    if isinstance(here, CommentedSeq) and isinstance(key, int) and key < len(here):
        found = here[key]
    elif isinstance(here, CommentedMap) and not isinstance(key, int):
        found = here.get(key)
        if found is None and not isinstance(change, Remove):
            found = here[key] = CommentedSeq() if makes_list else CommentedMap()
    else:
        raise _misfit(here, key, path)
    return found


def _set(here: Any, key: str | int, value: Any, path: str) -> None:
    if (isinstance(here, CommentedMap) and not isinstance(key, int)) or (
        isinstance(here, CommentedSeq) and isinstance(key, int) and key < len(here)
    ):
        here[key] = value
    else:
        raise _misfit(here, key, path)


def _append(here: Any, change: Append, path: str) -> None:
    if not isinstance(here, CommentedSeq):
        raise _misfit(here, change.keys[-1], path)
    if change.value not in here:
        here.append(change.value)


def _misfit(here: Any, key: str | int, path: str) -> YamlEditError:
    line = getattr(getattr(here, "lc", None), "line", None)
    where = Location(path, line + 1) if isinstance(line, int) else Location(path)
    what = (
        "list" if isinstance(here, CommentedSeq) else "mapping" if isinstance(here, CommentedMap) else "value"
    )
    return YamlEditError(f"{path} has a {what} where `{key}` should be found or put.", where=where)
