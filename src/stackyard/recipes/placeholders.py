"""The text of a new file with secrets: every sensitive variable with a value to replace."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["PLACEHOLDER", "SecretVariable", "format_secrets", "placeholder"]

PLACEHOLDER = "change-me"
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[A-Za-z_][\w-]*|[-\w.]+|[^\s\w]')
_OPENING = {"(": ")", "{": "}", "[": "]"}
_DEEPEST = 20
_OPTIONAL = re.compile(r"(\w+) = optional\(")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretVariable:
    """A sensitive variable of a stack.

    Attributes:
        type: As it is written.
        has_default: Whether it may be left out.
        is_null: Whether its default is null.
    """

    type: str | None
    has_default: bool = False
    is_null: bool = False


def format_secrets(
    name: str,
    variables: Mapping[str, SecretVariable],
    shown: str,
    known: Callable[[str, str | None], str | None],
) -> tuple[str, list[str]]:
    """Return the text, and the variables whose values are to be replaced.

    Args:
        name: The name of the stack.
        variables: The sensitive variables of its code.
        shown: The path of the file, as the user types it.
        known: Returns the value of a variable, where it needs none of the user.
    """
    lines = [
        f"# Secrets of the stack {name}: values of its sensitive variables.",
        f"# Change them with `stackyard secrets edit {shown}`.",
    ]
    required = []
    for one, variable in sorted(variables.items()):
        example = placeholder(variable.type)
        if variable.has_default:
            text = f"{one} = {example}"
            lines += ["", *(f"# {line}" for line in text.splitlines())]
            optional = _OPTIONAL.findall(variable.type or "")
            lines += [f"# Optional, see variables.tf: {', '.join(optional)}"] if optional else []
            # A file that sets nothing would be taken for one that was cut off.
            lines += [f"{one} = null"] if variable.is_null else []
            continue
        value = known(one, variable.type)
        lines += ["", f"{one} = {example if value is None else value}"]
        required += [one] if value is None and PLACEHOLDER in example else []
    return "\n".join(lines) + "\n", required


def placeholder(kind: str | None) -> str:
    """Return a value of a type, as HCL."""
    return _Types(_TOKENS.findall(kind or "any")).value(0)


class _Types:
    """Reads the type of a variable, and writes a value of it."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def value(self, depth: int) -> str:
        word = self._take()
        if word in ("number", "bool"):
            return "0" if word == "number" else "false"
        if word in ("list", "set", "tuple"):
            self._skip_group()
            return "[]"
        if word == "map":
            self._skip_group()
            return "{}"
        if word == "object" and depth < _DEEPEST:
            return self._object(depth)
        if word == "optional":
            self._skip_group()
            return "null"
        return f'"{PLACEHOLDER}"'

    def _object(self, depth: int) -> str:
        self._take()
        self._take()
        fields = list(self._fields(depth))
        self._take()
        if not fields:
            return "{}"
        inner = "  " * (depth + 1)
        width = max(len(name) for name, _ in fields)
        body = "\n".join(f"{inner}{name:<{width}} = {value}" for name, value in fields)
        return f"{{\n{body}\n{'  ' * depth}}}"

    def _fields(self, depth: int) -> Iterator[tuple[str, str]]:
        while self._peek() not in ("}", ""):
            name = self._take().strip('"')
            self._take()
            is_optional = self._peek() == "optional"
            value = self.value(depth + 1)
            if self._peek() == ",":
                self._take()
            if not is_optional:
                yield name, value
        self._take()

    def _skip_group(self) -> None:
        waiting = []
        while self._peek():
            token = self._peek()
            if token in _OPENING:
                waiting.append(_OPENING[token])
            elif waiting and token == waiting[-1]:
                waiting.pop()
            elif not waiting:
                return
            self._take()
            if not waiting:
                return

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        found = self._peek()
        self._at += 1
        return found
