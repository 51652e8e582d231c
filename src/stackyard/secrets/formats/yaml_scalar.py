"""Writing one value as YAML, so that it is read back as the same value."""

from __future__ import annotations

import base64
import json
import math
import re

from stackyard.secrets.values import Scalar, Timestamp, resolve_plain

__all__ = ["yaml_flow", "yaml_scalar"]

# What needs no quotes, between brackets neither; and with colons, which need them there.
_WORD = r"[\w/.$^()+@=!~%*;'<-]"
_PLAIN_IN_FLOW = re.compile(rf"[\w/.$^(+@]{_WORD}*(?: {_WORD}+)*")
_PLAIN = re.compile(rf"[\w/.$^(+@](?:{_WORD}|:(?=[\w/]))*(?: (?:{_WORD}|:(?=[\w/]))+)*")
# Older YAML, which other programs read, takes these for something else than text.
_DOUBTFUL = re.compile(
    r"y|yes|n|no|on|off|true|false|null|[-+]?[0-9_]*+(:[0-9]+)*+\.?[0-9_]*(e[-+]?[0-9]+)?|0[xob][0-9a-f_]*",
    re.IGNORECASE,
)
_NOT_LITERAL = re.compile(
    "[^\n\t\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|[\u2028\u2029]"
)
_NOT_QUOTED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def yaml_scalar(value: Scalar, *, indent: int = 0, is_flow: bool = False) -> str:
    """Return the YAML of a value.

    Args:
        value: What to write.
        indent: The column of the mapping or list that it goes into; several lines are set off from it.
        is_flow: Whether it goes between brackets, where it must stay on one line.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return _float(value)
        case int() | Timestamp():
            return str(value)
        case bytes():
            return f'!!binary "{base64.b64encode(value).decode()}"'
    return _text(value, indent=indent, is_flow=is_flow)


def _float(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    return repr(value)


def _text(value: str, *, indent: int, is_flow: bool) -> str:
    pattern = _PLAIN_IN_FLOW if is_flow else _PLAIN
    if pattern.fullmatch(value) and not _DOUBTFUL.fullmatch(value) and resolve_plain(value) == value:
        return value
    is_literal = "\n" in value.rstrip("\n") and value.strip() and not value.endswith("\n\n")
    if is_literal and not is_flow and not _NOT_LITERAL.search(value):
        return _literal(value, indent + 2)
    quoted = json.dumps(value, ensure_ascii=False)
    return _NOT_QUOTED.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def _literal(value: str, indent: int) -> str:
    """Write text of several lines as it is."""
    body = value.rstrip("\n")
    chomping = "" if value.endswith("\n") else "-"
    # Leading space, also below empty lines, would be taken for the indentation.
    hint = "2" if value.lstrip("\n")[:1] in (" ", "\t") or value.startswith("\n") else ""
    space = " " * indent
    lines = [space + line if line else "" for line in body.split("\n")]
    return "\n".join([f"|{hint}{chomping}", *lines])


def yaml_flow(value: object) -> str:
    """Return a mapping, list or value on one line."""
    if isinstance(value, dict):
        inside = ", ".join(
            f"{_text(key, indent=0, is_flow=True)}: {yaml_flow(item)}" for key, item in value.items()
        )
        return f"{{{inside}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(yaml_flow, value))}]"
    if value is None or isinstance(value, str | bytes | int | float | Timestamp):
        return yaml_scalar(value, is_flow=True)
    raise TypeError(f"{type(value).__name__} is no value of YAML")
