"""YAML exactly as the image factory writes it: an id is the hash of such a text.

Members are in the order of the document, four spaces for each level, and lists one level below their key.
Text is quoted where a reader would take it for something else.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

from yaml.emitter import Emitter
from yaml.nodes import ScalarNode
from yaml.resolver import Resolver

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["write_yaml"]

_INDENT = "    "
_STR = "tag:yaml.org,2002:str"
# Words that YAML 1.1 takes for booleans, which the factory therefore quotes.
_OLD_BOOLEANS = frozenset("y Y yes Yes YES on On ON n N no No NO off Off OFF".split())
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")


def write_yaml(document: Mapping[str, Any]) -> str:
    """Return a document as the factory writes it, with the end of its last line."""
    return "\n".join(_mapping(document, "")) + "\n"


def _mapping(value: Mapping[str, Any], lead: str) -> Iterator[str]:
    for key, one in value.items():
        yield from _entry(f"{lead}{_scalar(key, lead)}:", one, lead)


def _entry(start: str, value: Any, lead: str) -> Iterator[str]:
    """Write a value after its key, or after the dash of a list."""
    if isinstance(value, dict):
        if not value:
            yield f"{start} {{}}"
            return
        yield start
        yield from _mapping(value, lead + _INDENT)
    elif isinstance(value, list):
        if not value:
            yield f"{start} []"
            return
        yield start
        yield from _sequence(value, lead + _INDENT)
    else:
        yield f"{start} {_scalar(value, lead + _INDENT)}"


def _sequence(items: Sequence[Any], lead: str) -> Iterator[str]:
    for item in items:
        if isinstance(item, dict) and item:
            lines = list(_mapping(item, f"{lead}  "))
            yield f"{lead}- {lines[0][len(lead) + 2 :]}"
            yield from lines[1:]
        else:
            yield from _entry(f"{lead}-", item, lead)


def _scalar(value: Any, lead: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if not isinstance(value, str):
        return str(value)
    if "\n" in value:
        return _literal(value, lead)
    analysis = Emitter(io.StringIO()).analyze_scalar(value)
    resolver: Any = Resolver()
    is_text = resolver.resolve(ScalarNode, value, (True, False)) == _STR
    if not is_text or value in _OLD_BOOLEANS or _BASE_60.fullmatch(value):
        return _double(value)
    if analysis.allow_block_plain:
        return value
    return f"'{value.replace(chr(39), chr(39) * 2)}'" if analysis.allow_single_quoted else _double(value)


def _literal(text: str, lead: str) -> str:
    chomping = "-" if not text.endswith("\n") else "+" if text.endswith("\n\n") or text == "\n" else ""
    hint = str(len(_INDENT)) if text[0] in " \n" else ""
    lines = text.removesuffix("\n").split("\n") if chomping != "+" else text[:-1].split("\n")
    return "\n".join([f"|{hint}{chomping}", *(f"{lead}{line}" if line else "" for line in lines)])


def _double(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t").replace("\r", "\\r")
    return f'"{escaped}"'
