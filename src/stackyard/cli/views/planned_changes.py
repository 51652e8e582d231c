"""A plan for a human: what is lost comes first, then what changes, then what is new.

A file that one guest uses is shown below that guest.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.cli.views.resource_summary import hide_url_secrets, list_strings, summarise, summarise_disks
from stackyard.engine.changes import Action
from stackyard.guard.subjects import FILES, describe, is_guest, name_of, short_kind, volume_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.engine.changes import Change, Changes, Difference

__all__ = [
    "IMPORTED",
    "MOVED",
    "ORDER",
    "SIGNS",
    "Sign",
    "list_destroyed",
    "show_changes",
    "show_differences",
]


@dataclass(frozen=True, slots=True)
class Sign:
    """How a kind of change is shown."""

    mark: str
    verb: str
    colour: str


# In the order in which they are shown: what is lost comes first.
SIGNS = {
    Action.DELETE: Sign("-", "destroy", "red"),
    Action.REPLACE: Sign("±", "replace", "red"),
    Action.FORGET: Sign("x", "forget", "yellow"),
    Action.UPDATE: Sign("~", "change", "yellow"),
    Action.CREATE: Sign("+", "create", "green"),
}
# What happens to a resource in the state alone.
MOVED = Sign(">", "rename", "yellow")
IMPORTED = Sign("<", "import", "green")
ORDER = [*SIGNS.values(), IMPORTED, MOVED]
_INDENT = " " * 6
_LONGEST_VALUE = 60
_WIDEST_COLUMN = 36
_MOST_LINES = 8
_MOST_NAMES = 4
_NOTHING = "Nothing to change: the cluster is as the input says."


def show_changes(
    writer: TextWriter, changes: Changes, redact: Callable[[str], str], *, nothing: str = _NOTHING
) -> None:
    """Write what a plan does, then the sums.

    Args:
        writer: Where to.
        changes: What the plan does.
        redact: Masks secrets in values that are not part of a difference.
        nothing: What to say where nothing changes.
    """
    shown = [change for change in changes.planned if _sign(change) is not None]
    if not shown and changes.outputs:
        _show_outputs(writer, changes.outputs)
        return
    if not shown:
        writer.line(nothing, style="green")
        return
    wanted_by = _find_wanting_guests(shown)
    alone = {file: guests[0].address for file, guests in wanted_by.items() if len(guests) == 1}
    below: dict[str, list[Change]] = {}
    for change in shown:
        if change.address in alone:
            below.setdefault(alone[change.address], []).append(change)
    for change in sorted(shown, key=_rank):
        if change.address not in alone:
            names = [name_of(guest) for guest in wanted_by.get(change.address, ())]
            _show_change(writer, change, redact, names)
            for file in below.get(change.address, ()):
                _show_file(writer, file)
    writer.line()
    verbs = [(_sign(change) or IMPORTED).verb for change in shown]
    sums = [(sign.verb, verbs.count(sign.verb)) for sign in ORDER]
    writer.line("Plan: " + ", ".join(f"{count} to {verb}" for verb, count in sums if count) + ".")
    if changes.outputs:
        _show_outputs(writer, changes.outputs)


def _show_outputs(writer: TextWriter, names: Sequence[str]) -> None:
    writer.line(f"Outputs that change: {', '.join(names)}.")


def list_destroyed(changes: Changes) -> list[str]:
    """Return what a plan destroys or replaces, as a question names it: guests first, files as a number."""
    lost = sorted((change for change in changes.planned if change.destroys), key=_rank)
    words = {Action.DELETE: "destroys", Action.REPLACE: "replaces"}
    named = [
        f"{words[change.action]} {describe(change)}" for change in lost if short_kind(change) not in FILES
    ]
    files = len(lost) - len(named)
    return [*named, *([f"destroys or replaces {files} {'file' if files == 1 else 'files'}"] if files else ())]


def _sign(change: Change) -> Sign | None:
    """Return how a change is shown; nothing where neither the resource nor its place in the state changes."""
    if change.action in SIGNS:
        return SIGNS[change.action]
    if change.imported_as is not None:
        return IMPORTED
    return None if change.moved_from is None else MOVED


def show_differences(writer: TextWriter, rows: Sequence[tuple[Any, ...]]) -> None:
    """Write attributes side by side: the name, the value before and the one after.

    Args:
        writer: Where to.
        rows: Name, value before, value after, and whether the difference forces replacement.
    """
    plain = [(name, _value(before), _value(after), forces) for name, before, after, forces in rows]
    names = min(_WIDEST_COLUMN, max((len(row[0]) for row in plain), default=0))
    values = min(_WIDEST_COLUMN, max((len(row[1]) for row in plain), default=0))
    for (name, before, after, forces), row in zip(plain, rows, strict=True):
        note = "  (forces replacement)" if forces else ""
        style = "red" if forces else None
        if _is_text(row[1]) and _is_text(row[2]):
            writer.line(f"{_INDENT}{name}:{note}", style=style)
            _show_text_difference(writer, row[1], row[2])
        else:
            writer.line(f"{_INDENT}{name:<{names}}  {before:<{values}}  ->  {after}{note}", style=style)


def _rank(change: Change) -> tuple[int, bool, str]:
    return ORDER.index(_sign(change) or MOVED), not is_guest(change), change.address


def _show_change(
    writer: TextWriter, change: Change, redact: Callable[[str], str], wanted_by: Sequence[str]
) -> None:
    sign = _sign(change) or IMPORTED
    imported = ", imported first" if change.imported_as is not None and change.action in SIGNS else ""
    users = f"  for {_join(wanted_by)}" if wanted_by else ""
    writer.line(f"{sign.mark} {sign.verb:<8} {describe(change)}{imported}{users}", style=sign.colour)
    if change.action is Action.CREATE and (facts := redact(summarise(change))):
        writer.wrapped(facts, indent=_INDENT)
    if change.destroys and is_guest(change) and (disks := redact(summarise_disks(change))):
        writer.wrapped(f"loses {disks}", indent=_INDENT, style="red")
    if change.action in (Action.UPDATE, Action.REPLACE):
        _show_attributes(writer, _select_differences(change))


def _show_file(writer: TextWriter, change: Change) -> None:
    """Write a file below the one guest that uses it."""
    sign = _sign(change) or IMPORTED
    writer.line(f"{_INDENT}{sign.mark} {describe(change)}", style=sign.colour)
    if change.action is Action.UPDATE:
        _show_attributes(writer, _select_differences(change))


def _show_attributes(writer: TextWriter, differences: Iterable[Difference]) -> None:
    show_differences(writer, [(one.name, one.before, one.after, one.forces_replace) for one in differences])


def _find_wanting_guests(shown: Sequence[Change]) -> Mapping[str, list[Change]]:
    """Return the guests of a plan that use each of its files, by the file's address."""
    users: dict[str, list[Change]] = {}
    for guest in shown:
        if is_guest(guest):
            for text in {*list_strings(guest.before), *list_strings(guest.after)}:
                users.setdefault(text, []).append(guest)
    found = {}
    for file in shown:
        if short_kind(file) in FILES and (volume := _volume(file)) is not None:
            found[file.address] = [one for one in users.get(volume, ()) if _goes_with(file, one)]
    return {address: guests for address, guests in found.items() if guests}


def _goes_with(file: Change, guest: Change) -> bool:
    """Return whether a file can be shown below a guest: something lost is never hidden below what is made."""
    return file.destroys == guest.destroys or not file.destroys


def _volume(file: Change) -> str | None:
    if (known := volume_of(file)) is not None:
        return known
    values = file.after or file.before or {}
    parts = [values.get(name) for name in ("datastore_id", "content_type", "file_name")]
    return f"{parts[0]}:{parts[1]}/{parts[2]}" if all(isinstance(part, str) for part in parts) else None


def _join(names: Sequence[str]) -> str:
    ordered = sorted(names)
    more = len(ordered) - _MOST_NAMES
    return ", ".join(ordered) if more <= 1 else f"{', '.join(ordered[:_MOST_NAMES])} and {more} more"


def _select_differences(change: Change) -> list[Difference]:
    """Return what a human wants to know: what is only known afterwards says nothing of a replacement."""
    if change.action is not Action.REPLACE:
        return list(change.differences)
    return [d for d in change.differences if d.forces_replace or not str(d.after).startswith("(known after")]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\n" in value.rstrip("\n")


def _show_text_difference(writer: TextWriter, before: str, after: str) -> None:
    """Write the lines that a text loses and gains."""
    found = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0))[2:]
    lines = [line for line in found if not line.startswith("@@")]
    for line in map(hide_url_secrets, lines[:_MOST_LINES]):
        shown = line if len(line) <= 2 * _LONGEST_VALUE else f"{line[: 2 * _LONGEST_VALUE]}..."
        writer.line(f"{_INDENT}  {shown}", style="red" if line.startswith("-") else "green")
    if len(lines) > _MOST_LINES:
        writer.line(f"{_INDENT}  and {len(lines) - _MOST_LINES} more lines")


def _value(value: Any) -> str:
    text = "nothing" if value is None else repr(value) if isinstance(value, str) else str(value)
    text = hide_url_secrets(text)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
