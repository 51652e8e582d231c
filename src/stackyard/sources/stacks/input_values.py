"""Values of variables that come from committed JSON or from the outputs of other stacks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.documents.hcltext import write_hcl
from stackyard.base.errors import InvalidInputError, Location
from stackyard.secrets.var_file import PrivateVarFile
from stackyard.sources.deployment.domains import read_domain_files
from stackyard.sources.deployment.text import is_comment, strip_comments
from stackyard.sources.stacks.tfvars_scan import IDENTIFIER

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

__all__ = ["InputValueError", "inputs_text", "read_domain_values"]

_NAME = re.compile(IDENTIFIER)

UNDECLARED = Kind(
    code="E-STACK-DOMAIN-UNDECLARED",
    summary="A committed value has no variable",
    remedy="Declare a variable of that name in the stack, or correct the key.",
)
EMPTY = Kind(
    code="E-STACK-DOMAIN-EMPTY",
    summary="A committed value is empty",
    remedy="Restore the value: nothing empty is ever a plan.",
)


class InputValueError(InvalidInputError):
    """A value cannot be passed to a stack: the name is none for a variable, or a number is not finite."""

    code = "E-STACK-INPUT"
    summary = "A value cannot be passed to a stack"
    default_remedy = "Correct the output or the key that the value comes from."


def inputs_text(values: Mapping[str, Any]) -> bytes:
    """Return values as a text of HCL, one variable a line; template marks in strings are data.

    Raises:
        InputValueError: A value cannot be passed; the message never shows it.
    """
    lines = []
    for name, value in values.items():
        if not _NAME.fullmatch(name):
            raise InputValueError(f"{name!r} is not a name for an input variable.")
        try:
            lines.append(f"{name} = {write_hcl(value)}\n")
        except ValueError as err:
            raise InputValueError(f"The value of `{name}` holds a number that is not finite.") from err
    return "".join(lines).encode(errors="surrogateescape")


def read_domain_values(folder: Path, declared: Collection[str]) -> PrivateVarFile:
    """Read a folder of committed JSON files, one top-level key each, as values of a stack's variables.

    Args:
        folder: The folder.
        declared: The variables that the stack declares.

    Raises:
        ObjectMissingError: There is no such folder, or no file in it.
        InvalidInputError: A file is empty, cut off, or has a key of another file or of no variable.
    """
    values: dict[str, Any] = {}
    lines: list[int] = []
    found = Diagnostics()
    for key, domain in read_domain_files(folder).items():
        if is_comment(key):
            continue
        value = strip_comments(domain.value)
        if key not in declared:
            found.add(UNDECLARED, f"The stack declares no variable `{key}`.", domain.where)
        elif value is None or (isinstance(value, str | list | dict) and not value):
            found.add(EMPTY, f"`{key}` is empty.", domain.where)
        values[key] = value
        lines.append(domain.where.line or 1)
    if not values:
        found.add(EMPTY, f"{folder}/*.json holds comments alone.", Location(str(folder)))
    found.raise_errors(f"The values in {folder}")
    return PrivateVarFile(path=folder / "*.json", content=inputs_text(values), lines=tuple(lines))
