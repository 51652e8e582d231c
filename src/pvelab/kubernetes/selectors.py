"""Selecting objects by labels and by fields, as Kubernetes writes it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.kubernetes import problems

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["read_selectors"]

_SET = re.compile(r"\s*(\S+)\s+(in|notin)\s*\(([^)]*)\)\s*")
# A comma in brackets separates values, any other one separates terms.
_TERMS = re.compile(r",(?![^()]*\))")


def read_selectors(labels: str, fields: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return a test of objects.

    Raises:
        KubeStatusError: A selector cannot be read.
    """
    tests = [_read_label(term) for term in _TERMS.split(labels) if term.strip()]
    tests += [_read_field(term) for term in fields.split(",") if term.strip()]
    return lambda obj: all(test(obj) for test in tests)


def _labels(obj: Mapping[str, Any]) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}


def _read_label(term: str) -> Callable[[Mapping[str, Any]], bool]:
    if match := _SET.fullmatch(term):
        key, word, listed = match.groups()
        values = {value.strip() for value in listed.split(",")}
        return lambda obj: (_labels(obj).get(key) in values) == (word == "in")
    text = term.strip()
    for sign, is_equal in (("!=", False), ("==", True), ("=", True)):
        if sign in text:
            name, _, value = (part.strip() for part in text.partition(sign))
            return lambda obj: (_labels(obj).get(name) == value) == is_equal
    if text.startswith("!"):
        return lambda obj: text[1:] not in _labels(obj)
    return lambda obj: text in _labels(obj)


def _read_field(term: str) -> Callable[[Mapping[str, Any]], bool]:
    path, sign, value = term.partition("=")
    if not sign:
        raise problems.bad_request(f"invalid selector: '{term}'; can't understand '{term}'")
    is_equal = not path.endswith("!")
    names = path.rstrip("!").strip().split(".")

    def test(obj: Mapping[str, Any]) -> bool:
        found: Any = obj
        for name in names:
            found = found.get(name, "") if isinstance(found, dict) else ""
        return (str(found) == value.lstrip("=")) == is_equal

    return test
