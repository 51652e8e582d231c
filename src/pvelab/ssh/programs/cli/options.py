"""Reading the words of a command line as Proxmox does: by the schema of what is called.

`-flag value`, `--flag value` and `--flag=value` mean the same, names may be cut short as long as they are
clear, options and plain arguments are in any order, a switch needs no value, and a list may be given with
commas or by repeating the option. `--` ends the options.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.server.params.verify import Verifier
from pvelab.ssh.programs.cli.model import UsageProblem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Schema = Mapping[str, Any]

__all__ = ["OUTPUT_OPTIONS", "read_options"]

_OPTION = re.compile(r"--?([A-Za-z0-9][A-Za-z0-9_-]*)(?:=(.*))?", re.DOTALL)
_TRUE = frozenset(("1", "on", "yes", "true"))
_FALSE = frozenset(("0", "off", "no", "false"))

_SWITCH = {"type": "boolean", "optional": True}
OUTPUT_OPTIONS: Mapping[str, Schema] = {
    "output-format": {
        "type": "string",
        "optional": True,
        "enum": ["text", "json", "json-pretty", "yaml"],
    },
    "noheader": _SWITCH,
    "noborder": _SWITCH,
    "quiet": _SWITCH,
    "human-readable": _SWITCH,
}


def read_options(
    declared: Mapping[str, Schema],
    words: Sequence[str],
    *,
    arguments: Sequence[str] = (),
    fixed: Mapping[str, Any],
    listed: str = "",
) -> dict[str, Any]:
    """Return the parameters that a command line gives.

    Args:
        declared: The schemas of all parameters; `net[n]` represents `net0` and so on.
        words: The command line.
        arguments: The names of the plain arguments.
        fixed: What cannot be given, because it is always the same.
        listed: The parameter that takes all plain arguments.

    Raises:
        UsageProblem: The command line cannot be read.
    """
    free = {key: schema for key, schema in declared.items() if key not in fixed and key != listed}
    found, plain = _split(_Names(free), list(words))
    if listed:
        if plain:
            found[listed] = ",".join(plain)
    else:
        _place(found, plain, arguments, declared)
    return {**{key: _value(free.get(key), value) for key, value in found.items()}, **fixed}


class _Names:
    """The options that there are."""

    def __init__(self, declared: Mapping[str, Schema]) -> None:
        self._declared = declared
        self._verifier = Verifier(declared)

    def find(self, given: str) -> tuple[str, Schema]:
        """Return the option that a word names, cut short or in capitals.

        Raises:
            UsageProblem: There is none, or more than one.
        """
        schema = self._verifier.schema(given)
        if schema is not None:
            return given, schema
        lower = given.lower()
        exact = [key for key in self._declared if key.lower() == lower]
        candidates = exact or sorted(key for key in self._declared if key.lower().startswith(lower))
        if len(candidates) > 1 or (candidates and candidates[0].endswith("[n]")):
            shown = ", ".join(key.replace("[n]", "0") for key in candidates)
            raise UsageProblem("unable to parse option", f"Option {given} is ambiguous ({shown})")
        if not candidates:
            raise UsageProblem("unable to parse option", f"Unknown option: {given}")
        return candidates[0], self._declared[candidates[0]]


def _split(names: _Names, words: list[str]) -> tuple[dict[str, Any], list[str]]:
    found: dict[str, Any] = {}
    plain: list[str] = []
    while words:
        word = words.pop(0)
        if word == "--":
            return found, plain + words
        option = _OPTION.fullmatch(word)
        if option is None:
            plain.append(word)
            continue
        key, schema = names.find(option[1])
        value = option[2] if option[2] is not None else _next_value(option[1], schema, words)
        if _is_list(schema) and key in found:
            found[key] = [*found[key], value]
        else:
            found[key] = [value] if _is_list(schema) else value
    return found, plain


def _next_value(given: str, schema: Schema, words: list[str]) -> str:
    if schema.get("type") == "boolean":
        return words.pop(0) if words and not words[0].startswith("-") else ""
    if not words:
        raise UsageProblem("unable to parse option", f"Option {given} requires an argument")
    return words.pop(0)


def _is_list(schema: Schema) -> bool:
    declared = schema.get("format")
    return schema.get("type") == "array" or (isinstance(declared, str) and "-list" in declared)


def _place(
    found: dict[str, Any], plain: list[str], arguments: Sequence[str], declared: Mapping[str, Schema]
) -> None:
    """Give the plain arguments their names."""
    left = list(plain)
    for name in arguments:
        if name == "extra-args":
            found[name], left = left, []
        elif left:
            found[name] = left.pop(0)
        elif name not in found and not declared.get(name, {}).get("optional"):
            raise UsageProblem("not enough arguments")
    if left:
        raise UsageProblem("too many arguments")


def _value(schema: Schema | None, value: Any) -> Any:
    if schema is None:
        return value
    if schema.get("type") == "boolean":
        if value == "" or str(value).lower() in _TRUE:
            return 1
        if str(value).lower() in _FALSE:
            return 0
        raise UsageProblem("unable to parse boolean option")
    if isinstance(value, list) and schema.get("type") != "array":
        return ",".join(value)
    return value
