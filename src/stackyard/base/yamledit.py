"""Changing values of a YAML file by their keys, and nothing else of it: comments, order and quotes stay.

ruamel.yaml makes the change. It does not write every file back as it was (nulls, times and lists in lists
get a spelling of its own), so that what it writes with and without the change is compared, and only the
lines that differ are put into the file. If that does not give exactly what was asked for, the edit is
refused.
"""

from __future__ import annotations

import difflib
import io
import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString
from yaml import YAMLError as PlainYamlError

from stackyard.base import files, locks
from stackyard.base.documents.yamltext import YamlLimitError, check_yaml
from stackyard.base.errors import InvalidInputError, Location

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = [
    "Append",
    "Change",
    "Prepend",
    "Remove",
    "Set",
    "UnfaithfulEditError",
    "YamlEditError",
    "edit_file",
    "edit_text",
    "lay_out",
]

# How files are indented, the commonest first: mappings, lists, and the dash in a list.
_INDENTS = ((2, 4, 2), (2, 2, 0), (4, 4, 0), (4, 6, 4), (4, 6, 2), (4, 4, 2), (2, 3, 1))
# What is longer is not put in one line when it is new.
_COMPACT = 100
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
    """Give the last of the keys a value; mappings that are missing on the way are created."""

    keys: Keys
    value: Any


@dataclass(frozen=True, slots=True)
class Append:
    """Add a value to the end of a list, which is created if it is missing; nothing if the value is in it."""

    keys: Keys
    value: Any


@dataclass(frozen=True, slots=True)
class Prepend:
    """Add a value to the start of a list, as `Append` does to its end."""

    keys: Keys
    value: Any


@dataclass(frozen=True, slots=True)
class Remove:
    """Take out the last of the keys; nothing if it is not there."""

    keys: Keys


Change = Set | Append | Prepend | Remove


def edit_file(path: Path, changes: Sequence[Change]) -> bool:
    """Change a file, and return whether that made a difference.

    Raises:
        UnfaithfulEditError: Other lines would change too; the file is untouched.
        YamlEditError: It is not valid, or the keys do not fit it.
        FileError: It cannot be read or written.
    """
    with locks.hold_folder(path.parent):
        text = files.read_text(path)
        edited = edit_text(text, changes, str(path))
        if edited == text:
            return False
        files.replace_file(path, edited.encode(), mode=path.stat().st_mode & 0o777)
    return True


def edit_text(text: str, changes: Sequence[Change], path: str) -> str:
    """Return a YAML text with some values changed.

    Args:
        text: The whole file; empty, or only comments, for one that is to be created.
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
    edited = _edit(unix + ending, changes, path)
    return (edited.removesuffix("\n") if ending else edited).replace("\n", newline)


def _edit(text: str, changes: Sequence[Change], path: str) -> str:
    data = _load(text, path)
    if data is None:
        # ruamel.yaml has nowhere to keep the comments of an empty document.
        made = CommentedMap()
        _apply_all(made, changes, path)
        return text + _dump(made, _INDENTS[0], text="") if made else text
    before = _plain(data)
    unchanged = [(_dump(data, indents, text=text), indents) for indents in _INDENTS]
    _apply_all(data, changes, path)
    wanted = _plain(data)
    if wanted == before:
        return text
    refused: UnfaithfulEditError | None = None
    # A file may be indented in more than one way: the nearest that fits the place of the change will do.
    for base, indents in sorted(unchanged, key=lambda one: _difference(one[0], text)):
        try:
            merged = _merge(text, base, _dump(data, indents, text=text), path)
            if _plain(_load(merged, path)) == wanted:
                return merged
        except UnfaithfulEditError as err:
            refused = err
        except YamlEditError:
            continue
    raise refused or UnfaithfulEditError(
        f"{path} is laid out so that the change does not fit in.", where=Location(path)
    )


def _difference(one: str, other: str) -> int:
    pairs = itertools.zip_longest(one.split("\n"), other.split("\n"))
    return sum(old != new for old, new in pairs)


def _writer(indents: tuple[int, int, int], *, text: str) -> YAML:
    mapping, sequence, offset = indents
    yaml = YAML(typ="rt", pure=True)
    yaml.preserve_quotes = True
    yaml.width = _WIDTH
    yaml.indent(mapping=mapping, sequence=sequence, offset=offset)
    yaml.explicit_start = text.startswith("---") or "\n---" in text
    return yaml


def _merge(text: str, unchanged: str, changed: str, path: str) -> str:
    """Put what differs between two writings of a document into the document itself."""
    lines, base, new = (one.splitlines(keepends=True) for one in (text, unchanged, changed))
    places = _alignment(base, lines)
    hunks = difflib.SequenceMatcher(None, base, new, autojunk=False).get_opcodes()
    for kind, start, end, new_start, new_end in reversed(hunks):
        if kind == "equal":
            continue
        first, last = places.get(start), places.get(end)
        if first is None or last is None or last - first != end - start:
            where = Location(path, (first or 0) + 1)
            raise UnfaithfulEditError(
                f"{path} would not stay as it is around line {where.line}.", where=where
            )
        added = new[new_start:new_end]
        if start == end:
            first = last = _above_comments(lines, first, added)
        lines[first:last] = added
    return "".join(lines)


def _alignment(base: Sequence[str], lines: Sequence[str]) -> dict[int, int]:
    """Return which line of a text each line of another is, and where both end; other ones are left out."""
    places = {len(base): len(lines)}
    matcher = difflib.SequenceMatcher(None, base, lines, autojunk=False)
    for _, start, end, other_start, other_end in matcher.get_opcodes():
        if end - start == other_end - other_start:
            places |= {start + step: other_start + step for step in range(end - start)}
    return places


def _above_comments(lines: Sequence[str], at: int, added: Sequence[str]) -> int:
    """Return where to insert lines: before comments and empty lines that belong to what comes next."""
    column = len(added[0]) - len(added[0].lstrip(" "))
    while at > 0:
        above = lines[at - 1]
        is_other = above.lstrip(" ").startswith("#") and len(above) - len(above.lstrip(" ")) < column
        if above.strip() and not is_other:
            break
        at -= 1
    return at


def _load(text: str, path: str) -> CommentedMap | None:
    _check_limits(text, path)
    try:
        data = _writer(_INDENTS[0], text=text).load(text)
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


def _check_limits(text: str, path: str) -> None:
    """Refuse what ruamel.yaml, which has no limits, would not end with; what else is wrong it says itself."""
    try:
        check_yaml(text)
    except YamlLimitError as err:
        mark = err.problem_mark
        where = Location(path) if mark is None else Location(path, mark.line + 1, mark.column + 1)
        raise YamlEditError(f"{path} is not valid YAML: it is {err.problem}.", where=where) from err
    except PlainYamlError:
        return


def _dump(data: CommentedMap, indents: tuple[int, int, int], *, text: str) -> str:
    stream = io.StringIO()
    _writer(indents, text=text).dump(data, stream)
    return stream.getvalue()


def _plain(data: Any) -> Any:
    """Return a copy of what a document means, to see whether it changed."""
    if isinstance(data, dict):
        return [(key, _plain(value)) for key, value in data.items()]
    if isinstance(data, list):
        return [_plain(value) for value in data]
    # Quotes and the like make types of their own, and two of these differ although they mean the same.
    kind = next((one for one in (bool, str, int, float) if isinstance(data, one)), object)
    return (kind, data)


def _apply_all(data: CommentedMap, changes: Sequence[Change], path: str) -> None:
    for change in changes:
        _apply(data, change, path)


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
            _set(here, last, _quote(change.value), path)
        case Append() | Prepend():
            _add_item(_step(here, last, path, change, makes_list=True), change, path)
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
        raise _make_type_error(here, key, path)
    return found


def _set(here: Any, key: str | int, value: Any, path: str) -> None:
    if (isinstance(here, CommentedMap) and not isinstance(key, int)) or (
        isinstance(here, CommentedSeq) and isinstance(key, int) and key < len(here)
    ):
        here[key] = value
    else:
        raise _make_type_error(here, key, path)


def _add_item(here: Any, change: Append | Prepend, path: str) -> None:
    if not isinstance(here, CommentedSeq):
        raise _make_type_error(here, change.keys[-1], path)
    if change.value not in here:
        here.insert(len(here) if isinstance(change, Append) else 0, _quote(change.value))


# What older YAML, which many programs read, takes for a truth or a number of sixties.
_DOUBTFUL = re.compile(
    r"y|yes|n|no|on|off|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?|[-+0-9.]+e[0-9]+", re.IGNORECASE
)


def _quote(value: Any) -> Any:
    """Put text into quotes that not every program would take for text."""
    if isinstance(value, CommentedMap | CommentedSeq):
        return value
    if isinstance(value, dict):
        return {key: _quote(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_quote(inner) for inner in value]
    is_doubtful = isinstance(value, str) and _DOUBTFUL.fullmatch(value)
    return DoubleQuotedScalarString(value) if is_doubtful else value


def lay_out(mapping: Mapping[str, Any]) -> Any:
    """Return a mapping to put into a file as people write it.

    Each key has its line. Short lists and mappings of plain values are in one, and texts of several lines
    are written as such.
    """
    return CommentedMap((key, _compact(value)) for key, value in mapping.items())


def _compact(value: Any) -> Any:
    if isinstance(value, str):
        return LiteralScalarString(value) if _is_text(value) else _quote(value)
    if not isinstance(value, dict | list):
        return value
    parts = list(value.values()) if isinstance(value, dict) else value
    inner = (
        CommentedMap((key, _compact(part)) for key, part in value.items())
        if isinstance(value, dict)
        else CommentedSeq(_compact(part) for part in value)
    )
    if all(_is_plain(part) for part in parts) and len(str(value)) <= _COMPACT:
        inner.fa.set_flow_style()
    return inner


def _is_text(value: str) -> bool:
    """Return whether a text is several lines that a block keeps as they are."""
    lines = value.removesuffix("\n").split("\n")
    return (
        len(lines) > 1
        and value[0].isalnum()
        and all(one.isprintable() and one == one.rstrip() for one in lines)
    )


def _is_plain(value: Any) -> bool:
    return not isinstance(value, dict | list) and "\n" not in str(value)


def _make_type_error(here: Any, key: str | int, path: str) -> YamlEditError:
    line = getattr(getattr(here, "lc", None), "line", None)
    where = Location(path, line + 1) if isinstance(line, int) else Location(path)
    what = (
        "list" if isinstance(here, CommentedSeq) else "mapping" if isinstance(here, CommentedMap) else "value"
    )
    return YamlEditError(f"{path} has a {what} where `{key}` should be found or put.", where=where)
