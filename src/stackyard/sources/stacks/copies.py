"""Stacks that were copied by hand, and what people forget to change in the copy.

A copy that still has the key of the other one is refused (`isolation`). What is found here may be meant, so
it is a warning: the name of the other stack in a module call or a local value, and guests with the same ID
and name. It is looked for only between stacks that call the same modules, or share a file of code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics, Kind, Severity
from stackyard.base.errors import Location, StackyardError
from stackyard.secrets.check.promises import is_secret_name
from stackyard.sources.stacks.kinds import is_code, is_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.sources.stacks.code_file import CodeFile
    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["check_copies"]

FOREIGN_NAME = Kind(
    code="W-STACK-COPIED-NAME",
    summary="The code of a stack has the name of the stack that it was copied from",
    remedy="Write the name of this stack there: both would use the same inventory, tags or names.",
    severity=Severity.WARNING,
)
SAME_GUEST = Kind(
    code="W-STACK-SAME-GUEST",
    summary="Two stacks have a guest with the same ID and name",
    remedy="Change the ID and the name in one of the two; on two separate clusters, both may stay.",
    severity=Severity.WARNING,
)

_IDS = ("vm_id", "vmid", "id")
_SMALLEST_ID = 100
# A copy has dozens of guests in common with the other one; the first ones say enough.
_MOST_SHOWN = 10

# Where a constant is: in which module call or local value, and under which name.
Slot = tuple[str, str]


@dataclass(slots=True)
class _Copies:
    """Looks for stacks that one stack is a copy of."""

    repository: StackRepository
    found: Diagnostics = field(default_factory=Diagnostics)

    def check(self, stack: Stack) -> None:
        own = self._constants(stack)
        data = None
        for other in self.repository.stacks.values():
            if other.name == stack.name or not self._is_alike(stack, other):
                continue
            self._check_names(stack, own, other)
            if data is None:
                data = dict(self._guests(stack))
            self._check_guests(stack, data, other)

    def _is_alike(self, stack: Stack, other: Stack) -> bool:
        """Return whether two stacks call the same modules under the same names, or share a file of code."""
        one, two = self._shape(stack), self._shape(other)
        return bool(one and one == two) or not self._numbers(stack).isdisjoint(self._numbers(other))

    def _code(self, stack: Stack) -> Iterator[tuple[str, CodeFile]]:
        reader = self.repository.reader
        names = self.repository.files.get(stack.path)
        for name, file in reader.files(f"{self.repository.prefix}{stack.path}", names).items():
            if is_code(name):
                yield file.path, reader.code(file)

    def _shape(self, stack: Stack) -> frozenset[str]:
        calls = (call for _, code in self._code(stack) for call in code.modules)
        return frozenset(f"{call.name} {call.source}" for call in calls)

    def _numbers(self, stack: Stack) -> frozenset[str]:
        """Return the numbers of the files that say what a stack does; any two have the same backend file."""
        reader = self.repository.reader
        names = self.repository.files.get(stack.path)
        files = reader.files(f"{self.repository.prefix}{stack.path}", names).items()
        return frozenset(
            file.number
            for name, file in files
            if is_code(name) and file.number and (reader.code(file).modules or reader.code(file).locals)
        )

    def _constants(self, stack: Stack) -> dict[Slot, tuple[str, Location]]:
        """Return the constant arguments of module calls and local values, with their places."""
        found: dict[Slot, tuple[str, Location]] = {}
        for path, code in self._code(stack):
            for call in code.modules:
                for name, value in call.arguments.items():
                    if isinstance(value, str):
                        found[f"module.{call.name}", name] = value, Location(path, call.line)
            for name, value in code.locals.items():
                if isinstance(value, str):
                    found["local", name] = value, Location(path)
        return found

    def _check_names(self, stack: Stack, own: Mapping[Slot, tuple[str, Location]], other: Stack) -> None:
        last, other_last = stack.name.rpartition("/")[2], other.name.rpartition("/")[2]
        names = {other.name, other_last} - {stack.name, last}
        theirs = self._constants(other)
        for slot, (text, where) in own.items():
            # The other one says its own name there, and so should this one.
            if text in names and slot in theirs and theirs[slot][0] == text:
                place = self._line_of(where, text, slot[1])
                detail = (
                    f'`{slot[0]}.{slot[1]}` of the stack `{stack.name}` ({place}) is "{text}", which is the '
                    f"name of the stack `{other.name}`, as in {theirs[slot][1]}."
                )
                self.found.add(FOREIGN_NAME, detail, place, also=(theirs[slot][1],))

    def _line_of(self, where: Location, text: str, name: str) -> Location:
        """Return the line of a value: what is kept of a file has that of its block alone."""
        try:
            with open(f"{self.repository.tree.top}/{where.path}", encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            return where
        for number, line in enumerate(lines[(where.line or 1) - 1 :], where.line or 1):
            if name in line and f'"{text}"' in line:
                return Location(where.path, number)
        return where

    def _guests(self, stack: Stack) -> Iterator[tuple[tuple[str, int], Location]]:
        """Yield the guests that the variables files of a stack name, by name and ID."""
        for path, data in self._values(stack):
            for guest, line in _read_guests(data, path):
                yield guest, Location(path, line)

    def _values(self, stack: Stack) -> Iterator[tuple[str, bytes]]:
        reader = self.repository.reader
        names = self.repository.files.get(stack.path)
        for name, file in reader.files(f"{self.repository.prefix}{stack.path}", names).items():
            if is_values(name) and not is_secret_name(name):
                data = reader.content(file)
                if data is not None:
                    yield file.path, data

    def _check_guests(self, stack: Stack, own: Mapping[tuple[str, int], Location], other: Stack) -> None:
        texts = [(path, data) for path, data in self._values(other)]
        if not any(name.encode() in data for name, _ in own for _, data in texts):
            return
        theirs = dict(self._guests(other))
        same = sorted(own.keys() & theirs.keys())
        for name, number in same[:_MOST_SHOWN]:
            where, place = own[name, number], theirs[name, number]
            more = (
                f" ({len(same)} guests are the same.)" if (name, number) == same[0] and len(same) > 1 else ""
            )
            detail = (
                f"The guest `{name}` with the ID {number} of the stack `{stack.name}` ({where}) is also in "
                f"the stack `{other.name}` ({place}): each would manage it.{more}"
            )
            self.found.add(SAME_GUEST, detail, where, also=(place,))


def check_copies(repository: StackRepository, stack: Stack) -> Diagnostics:
    """Return what a stack has of another one that it was copied from."""
    copies = _Copies(repository)
    copies.check(stack)
    return copies.found


def _read_guests(data: bytes, path: str) -> Iterator[tuple[tuple[str, int], int]]:
    """Yield guests and their lines: objects with an ID, by the key that they have."""
    from stackyard.sources.stacks.tfvars import read_tfvars  # lazy: only for stacks that are alike

    try:
        values = read_tfvars(data, path).variables
    except StackyardError:
        # The run itself reports a file that is not valid.
        return
    text = data.decode(errors="replace")
    waiting: list[tuple[Any, Any]] = [(None, one.value) for one in values.values()]
    while waiting:
        key, value = waiting.pop()
        if not isinstance(value, dict):
            continue
        number = next((value[name] for name in _IDS if name in value), None)
        if isinstance(key, str) and isinstance(number, int) and number >= _SMALLEST_ID:
            yield (key, number), _find_line(text, key, number)
        waiting.extend(value.items())


def _find_line(text: str, key: str, number: int) -> int:
    """Return the line of a guest: the one with its name before its ID, else the first with its name."""
    at = text.find(str(number))
    while at >= 0:
        before = text.rfind(key, 0, at)
        if before >= 0 and "}" not in text[before:at]:
            return text.count("\n", 0, before) + 1
        at = text.find(str(number), at + 1)
    return text.count("\n", 0, max(text.find(key), 0)) + 1
