"""Addresses of resources: what a user names with one, and how to name many with few.

A resource without an index stands for all its instances, and a module for all that is below it:
`aws_instance.web` covers `aws_instance.web[0]`, and `module.web` covers `module.web["a"].aws_instance.this`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

__all__ = ["covers", "list_shortest", "split_names"]

_NAME = r"[^\W\d][\w-]*"
# What `count` and `for_each` give: a number, or a text in which quotes are escaped.
_KEY = r'\[(?:\d+|"(?:[^"\\]|\\.)*+")\]'
_PART = rf"{_NAME}\.{_NAME}(?:{_KEY})?"
_ADDRESS = re.compile(rf"{_PART}(?:\.{_PART})*", re.DOTALL)
_STEP = re.compile(rf"({_NAME})\.({_NAME})({_KEY})?\.?", re.DOTALL)
# A text in brackets, so that a comma inside it separates nothing.
_LISTED = re.compile(r'(?:[^,\["]|\[(?:[^\]"]|"(?:[^"\\]|\\.)*+")*+\]|["\[])++', re.DOTALL)
_MODULE = "module"


def covers(name: str, address: str) -> bool:
    """Return whether a name that a user gave is the address of a resource, or of what it is a part of."""
    if name == address:
        return bool(name)
    return name in _list_parents(address)


def _list_parents(address: str) -> tuple[str, ...]:
    """Return what an address is a part of, the widest first; nothing for what is no address."""
    if not _ADDRESS.fullmatch(address):
        return ()
    parents = []
    for step in _STEP.finditer(address):
        kind, _, key = step.groups()
        end = step.end() - address[step.start() : step.end()].endswith(".")
        if key is not None:
            parents.append(address[: end - len(key)])
        if kind == _MODULE:
            parents.append(address[:end])
    return tuple(parent for parent in parents if parent != address)


def list_shortest(going: Collection[str], kept: Collection[str]) -> tuple[str, ...]:
    """Return the fewest addresses that cover all that goes, and nothing that is kept.

    Args:
        going: Addresses of what goes.
        kept: Addresses of what stays; a name that covers one of them would permit more than is shown.
    """
    spared = {parent for address in kept for parent in (address, *_list_parents(address))}
    found = set()
    for address in going:
        wider = (parent for parent in _list_parents(address) if parent not in spared)
        found.add(next(wider, address))
    return tuple(sorted(found))


def split_names(text: str) -> tuple[str, ...]:
    """Return the names of a list with commas; a comma in the brackets of an address separates nothing."""
    return tuple(_split(text))


def _split(text: str) -> Iterator[str]:
    for part in _LISTED.findall(text):
        if name := part.strip():
            yield name
