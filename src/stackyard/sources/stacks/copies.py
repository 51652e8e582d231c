"""Stacks that were copied by hand, and what people forget to change in the copy.

A copy that still has the key of the other one is refused (`isolation`). What is found here may be meant, so
it is a warning: the name of the other stack in a module call or a local value, and guests with the same ID
and name. It is looked for only between stacks that call the same modules, or share a file of code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics, Kind, Severity
from stackyard.base.errors import Location, StackyardError
from stackyard.secrets.check.promises import is_secret_name
from stackyard.sources.stacks.kinds import is_code, is_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.sources.stacks.code_file import CodeFile
    from stackyard.sources.stacks.code_reader import FolderFile
    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["CopyCheck"]

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
_NUMBER = re.compile(rb"\b[1-9][0-9]{2,8}\b")
# A copy has dozens of guests in common with the other one; the first ones say enough.
_MOST_SHOWN = 10

# Where a constant is: in which module call or local value, and under which name.
Slot = tuple[str, str]
# Its name and its ID.
Guest = tuple[str, int]


@dataclass(slots=True)
class CopyCheck:
    """Looks for what stacks have of others that they were copied from; knows what it read before.

    Attributes:
        repository: All stacks.
    """

    repository: StackRepository
    _constants: dict[str, Mapping[Slot, tuple[str, Location]]] = field(default_factory=dict)
    _guests: dict[str, Mapping[Guest, Location]] = field(default_factory=dict)
    _by_number: dict[int, list[Stack]] | None = None
    _by_name: dict[str, list[Stack]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for stack in self.repository.stacks.values():
            for name in {stack.name, _last(stack)}:
                self._by_name.setdefault(name, []).append(stack)

    def check(self, stack: Stack) -> Diagnostics:
        """Return what a stack has of another one that it was copied from."""
        found = Diagnostics()
        self._check_names(stack, found)
        self._check_guests(stack, found)
        return found

    def _check_names(self, stack: Stack, found: Diagnostics) -> None:
        for slot, (text, where) in self._list_constants(stack).items():
            if text in (stack.name, _last(stack)):
                continue
            for other in self._by_name.get(text, ()):
                theirs = self._list_constants(other).get(slot)
                # The other one says its own name there, and so should this one.
                if theirs is not None and theirs[0] == text and self._is_alike(stack, other):
                    place = self._line_of(where, text, slot[1])
                    detail = (
                        f'`{slot[0]}.{slot[1]}` of the stack `{stack.name}` ({place}) is "{text}", which is '
                        f"the name of the stack `{other.name}`, as in {theirs[1]}."
                    )
                    found.add(FOREIGN_NAME, detail, place, also=(theirs[1],))

    def _check_guests(self, stack: Stack, found: Diagnostics) -> None:
        own = self._list_guests(stack)
        if not own:
            return
        numbers = self._index_numbers()
        others = {other.name: other for _, number in own for other in numbers.get(number, ())}
        for other in (other for name, other in sorted(others.items()) if name != stack.name):
            same = sorted(own.keys() & self._list_guests(other).keys())
            if same and self._is_alike(stack, other):
                self._add_guests(stack, other, same, found)

    def _add_guests(self, stack: Stack, other: Stack, same: list[Guest], found: Diagnostics) -> None:
        more = f" ({len(same)} guests are the same.)" if len(same) > 1 else ""
        for guest in same[:_MOST_SHOWN]:
            where, place = self._list_guests(stack)[guest], self._list_guests(other)[guest]
            detail = (
                f"The guest `{guest[0]}` with the ID {guest[1]} of the stack `{stack.name}` ({where}) is "
                f"also in the stack `{other.name}` ({place}): each would manage it.{more}"
            )
            found.add(SAME_GUEST, detail, where, also=(place,))
            more = ""

    def _is_alike(self, stack: Stack, other: Stack) -> bool:
        """Return whether two stacks call the same modules under the same names, or share a file of code."""
        one, two = self._shape(stack), self._shape(other)
        return bool(one and one == two) or not self._numbers(stack).isdisjoint(self._numbers(other))

    def _shape(self, stack: Stack) -> frozenset[str]:
        calls = (call for _, code in self._code(stack) for call in code.modules)
        return frozenset(f"{call.name} {call.source}" for call in calls)

    def _numbers(self, stack: Stack) -> frozenset[str]:
        """Return the numbers of the files that say what a stack does; any two have the same backend file."""
        return frozenset(
            file.number for file, code in self._code(stack) if file.number and (code.modules or code.locals)
        )

    def _code(self, stack: Stack) -> Iterator[tuple[FolderFile, CodeFile]]:
        for name, file in self._files(stack).items():
            if is_code(name):
                yield file, self.repository.reader.code(file)

    def _files(self, stack: Stack) -> Mapping[str, FolderFile]:
        names = self.repository.files.get(stack.path)
        return self.repository.reader.files(f"{self.repository.prefix}{stack.path}", names)

    def _list_constants(self, stack: Stack) -> Mapping[Slot, tuple[str, Location]]:
        """Return the constant arguments of module calls and local values, with their places."""
        found: dict[Slot, tuple[str, Location]] = {}
        if stack.name in self._constants:
            return self._constants[stack.name]
        for file, code in self._code(stack):
            for call in code.modules:
                place = Location(file.path, call.line)
                texts = {name: text for name, text in call.arguments.items() if isinstance(text, str)}
                found |= {(f"module.{call.name}", name): (text, place) for name, text in texts.items()}
            texts = {name: text for name, text in code.locals.items() if isinstance(text, str)}
            found |= {("local", name): (text, Location(file.path)) for name, text in texts.items()}
        self._constants[stack.name] = found
        return found

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

    def _list_guests(self, stack: Stack) -> Mapping[Guest, Location]:
        """Return the guests that the variables files of a stack name."""
        known = self._guests.get(stack.name)
        if known is None:
            known = self._guests[stack.name] = {
                guest: Location(path, line)
                for path, data in self._values(stack)
                for guest, line in _read_guests(data, path)
            }
        return known

    def _index_numbers(self) -> Mapping[int, list[Stack]]:
        """Return the stacks whose variables files have a number: far fewer have to be read whole."""
        if self._by_number is None:
            self._by_number = {}
            for stack in self.repository.stacks.values():
                texts = (data for _, data in self._values(stack))
                for number in {int(one) for data in texts for one in _NUMBER.findall(data)}:
                    self._by_number.setdefault(number, []).append(stack)
        return self._by_number

    def _values(self, stack: Stack) -> Iterator[tuple[str, bytes]]:
        for name, file in self._files(stack).items():
            if is_values(name) and not is_secret_name(name):
                data = self.repository.reader.content(file)
                if data is not None:
                    yield file.path, data


def _last(stack: Stack) -> str:
    return stack.name.rpartition("/")[2]


def _read_guests(data: bytes, path: str) -> Iterator[tuple[Guest, int]]:
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
