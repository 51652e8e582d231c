"""Writing values as expressions of HCL, the language of OpenTofu."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

__all__ = ["HclValue", "write_hcl"]

HclValue: TypeAlias = "str | int | float | bool | Sequence[HclValue] | Mapping[str, HclValue] | None"


def write_hcl(value: HclValue) -> str:
    """Write a value as an expression on one line; template marks in its strings are data.

    Raises:
        ValueError: It holds a number that is not finite.
    """
    if isinstance(value, str):
        return _write_string(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        if not math.isfinite(value):
            raise ValueError("a number is not finite")
        return repr(value)
    if isinstance(value, Mapping):
        items = (f"{_write_string(key)}={write_hcl(item)}" for key, item in value.items())
        return "{" + ",".join(items) + "}"
    return "[" + ",".join(write_hcl(item) for item in value) + "]"


def _write_string(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    # JSON has two escapes that HCL has not.
    quoted = re.sub(r"\\(.)", lambda m: {"b": r"\u0008", "f": r"\u000c"}.get(m[1], m[0]), quoted)
    return quoted.replace("${", "$${").replace("%{", "%%{")
