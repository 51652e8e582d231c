"""The place in a variables file of a value that the engine reports by its address.

A check in the code (`validation`, `precondition`) knows a value by its address alone. A message that has the
address in backquotes, such as `resources["k3s"].nodes["w1"].vm_id`, is shown at the line of that value. A
message with several such lines becomes a finding for each.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import TYPE_CHECKING

from stackyard.sources.stacks.value_places import ValuePlaces

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.base.errors import Location
    from stackyard.engine.failures import Finding
    from stackyard.sources.stacks.var_files import StackVarFiles

__all__ = ["InputAddresses"]

_KEY = r'\.[A-Za-z_][\w-]*|\[\d+\]|\["(?:[^"\\\n]|\\.)*"\]'
_ADDRESS = re.compile(rf"`([A-Za-z_][\w-]*)((?:{_KEY})*)`")
_KEYS = re.compile(_KEY)
# The engine adds where its check is, which is no problem of its own.
_CHECKED_BY = "This was checked by the validation rule at "


class InputAddresses:
    """Finds values of input variables by their addresses.

    Args:
        values: The variables files of a stack.
        folder: The folder of the stack.
    """

    def __init__(self, values: StackVarFiles, folder: Path) -> None:
        self._places = dict(values.places)
        self._contents = {str(folder / name): data for name, data in values.contents}
        self._open = functools.cache(self._open_file)

    def refine(self, finding: Finding) -> tuple[Finding, ...]:
        """Return what a finding says of values in variables files, each with its place."""
        parts: list[tuple[list[str], Location | None]] = []
        for line in finding.detail.splitlines():
            if not line.strip() or line.startswith(_CHECKED_BY):
                continue
            where = self._locate(line)
            if not parts or (where is not None and parts[-1][1] is not None):
                parts.append(([line.strip()], where))
            else:
                # A line without an address belongs to the one before it, or to the first with one.
                lines, before = parts.pop()
                parts.append(([*lines, line.strip()], before or where))
        if not parts or parts[0][1] is None:
            return (finding,)
        return tuple(
            dataclasses.replace(finding, detail="\n".join(lines), where=where) for lines, where in parts
        )

    def _locate(self, line: str) -> Location | None:
        """Return the place of the first value that a line names."""
        for name, rest in _ADDRESS.findall(line):
            where = self._places.get(name)
            if where is not None:
                places = self._open(where.path)
                return where if places is None else places.find((name, *map(_read_key, _KEYS.findall(rest))))
        return None

    def _open_file(self, path: str) -> ValuePlaces | None:
        data = self._contents.get(path)
        return None if data is None else ValuePlaces(data, path)


def _read_key(text: str) -> str | int:
    if text.startswith("."):
        return text[1:]
    inner = text[1:-1]
    if inner.isdecimal():
        return int(inner)
    # A quoted key, as HCL writes it.
    return re.sub(r"\\(.)", r"\1", inner[1:-1])
