"""Input variables as `TF_VAR_` environment, the only way we pass them: arguments can be read by other users.

OpenTofu takes the text of a `string` (or untyped) variable as it is, and reads every other type as an HCL
expression. So a string goes through untouched, and anything else is written as HCL, with the template marks
inside its strings escaped: `${` in a value is data, never something to evaluate.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from stackyard.base.errors import InvalidInputError

__all__ = ["Value", "VariableError", "encode_variables"]

Value: TypeAlias = "str | int | float | bool | Sequence[Value] | Mapping[str, Value] | None"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
# Linux refuses to start a program with a longer `NAME=value` (MAX_ARG_STRLEN, its end mark included).
_LONGEST_ENTRY_BYTES = 128 * 1024 - 1


class VariableError(InvalidInputError):
    """An input variable cannot be handed to OpenTofu: its name, its value or its size."""

    code = "E-TOFU-VARIABLE"
    summary = "An input variable cannot be passed on"
    default_remedy = "Correct the variable; a value of more than 128 KiB fits in a variables file only."


def encode_variables(variables: Mapping[str, Value]) -> dict[str, str]:
    """Return the environment that sets these variables; one that is None stays unset.

    Raises:
        VariableError: A name or value cannot be passed; the message never shows a value.
    """
    env = {}
    for name, value in variables.items():
        if not _NAME.fullmatch(name):
            raise VariableError(f"{name!r} is not a name for an input variable.")
        if value is not None:
            env[f"TF_VAR_{name}"] = _entry(name, value)
    return env


def _entry(name: str, value: Value) -> str:
    text = value if isinstance(value, str) else _hcl(name, value)
    if "\0" in text:
        raise VariableError(f"The variable {name} holds a NUL character, which no environment can carry.")
    if len(f"TF_VAR_{name}={text}".encode(errors="surrogateescape")) > _LONGEST_ENTRY_BYTES:
        raise VariableError(f"The variable {name} is too long for the environment.")
    return text


def _hcl(name: str, value: Value) -> str:
    """Write a value as an HCL expression."""
    if isinstance(value, str):
        return _hcl_string(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        if not math.isfinite(value):
            raise VariableError(f"The variable {name} holds a number that is not finite.")
        return repr(value)
    if isinstance(value, Mapping):
        items = (f"{_hcl_string(key)}={_hcl(name, item)}" for key, item in value.items())
        return "{" + ",".join(items) + "}"
    return "[" + ",".join(_hcl(name, item) for item in value) + "]"


def _hcl_string(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    # JSON has two escapes that HCL has not.
    quoted = re.sub(r"\\(.)", lambda m: {"b": r"\u0008", "f": r"\u000c"}.get(m[1], m[0]), quoted)
    return quoted.replace("${", "$${").replace("%{", "%%{")
