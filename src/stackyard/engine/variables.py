"""Input variables as `TF_VAR_` environment, the only way we pass them: arguments can be read by other users.

OpenTofu takes the text of a `string` (or untyped) variable as it is, and reads every other type as an HCL
expression. So a string goes through untouched, and anything else is written as HCL, with the template marks
inside its strings escaped: `${` in a value is data, never something to evaluate.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stackyard.base.documents.hcltext import HclValue as Value
from stackyard.base.documents.hcltext import write_hcl
from stackyard.base.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Value", "VariableError", "encode_variables"]

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
    try:
        text = value if isinstance(value, str) else write_hcl(value)
    except ValueError as err:
        raise VariableError(f"The variable {name} holds a number that is not finite.") from err
    if "\0" in text:
        raise VariableError(f"The variable {name} holds a NUL character, which no environment can carry.")
    if len(f"TF_VAR_{name}={text}".encode(errors="surrogateescape")) > _LONGEST_ENTRY_BYTES:
        raise VariableError(f"The variable {name} is too long for the environment.")
    return text
