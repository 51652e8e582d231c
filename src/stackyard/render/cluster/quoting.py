"""Values as text of HCL and YAML, for templates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from stackyard.base.documents.hcltext import write_hcl

__all__ = ["quote_hcl", "quote_yaml"]

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
# What YAML does not allow as it is, or reads as the end of a line.
_SPECIAL = re.compile('[\x00-\x1f"\\\\\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]')


def quote_hcl(value: Any) -> str:
    """Return a value as an expression of HCL; template marks in its text are data.

    Raises:
        ValueError: It holds a number that is not finite.
        TypeError: It is nothing that HCL can express.
    """
    if isinstance(value, IPv4Address | IPv4Network):
        return write_hcl(str(value))
    if isinstance(value, Mapping):
        items = ", ".join(f"{write_hcl(str(key))} = {quote_hcl(item)}" for key, item in value.items())
        return f"{{ {items} }}" if items else "{}"
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return "[" + ", ".join(quote_hcl(item) for item in value) + "]"
    if value is None or isinstance(value, str | int | float):
        return write_hcl(value)
    # An undefined value of a template says here which name it has.
    str(value)
    raise TypeError(f"a value of type {type(value).__name__} cannot be written as HCL")


def quote_yaml(value: Any) -> str:
    """Return a text, a number or a truth value as YAML on one line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return repr(value)
    return '"' + _SPECIAL.sub(_escape, str(value)) + '"'


def _escape(found: re.Match[str]) -> str:
    return _SHORT.get(found[0]) or f"\\u{ord(found[0]):04x}"
