"""Checks and comparisons of single values, for the rules of resources."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.base.addresses import parse_address, parse_interface
from stackyard.provider.values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["at_least", "between", "is_address", "is_cidr", "is_masked", "matches", "one_of", "same_elements"]


def matches(pattern: str, expected: str) -> Callable[[Any], str | None]:
    """Return a check that a text matches a pattern as a whole."""
    compiled = re.compile(pattern)
    return lambda value: None if compiled.fullmatch(str(value)) else f"must {expected}"


def one_of(*choices: str) -> Callable[[Any], str | None]:
    """Return a check that a text is one of some."""
    return lambda value: None if value in choices else f"must be one of {', '.join(choices)}"


def at_least(least: int) -> Callable[[Any], str | None]:
    """Return a check that a number is not too small."""
    return lambda value: None if float(value) >= least else f"must be at least {least}"


def between(least: int, most: int) -> Callable[[Any], str | None]:
    """Return a check that a number is in a range, its ends included."""
    return lambda value: None if least <= float(value) <= most else f"must be {least} to {most}"


def is_address(value: Any) -> str | None:
    """Check that a text is an IP address."""
    try:
        parse_address(value)
    except ValueError:
        return "must be an IP address"
    return None


def is_cidr(value: Any) -> str | None:
    """Check that a text is an IP address with the length of its network."""
    try:
        if "/" in str(value):
            parse_interface(value)
            return None
    except ValueError:
        pass
    return "must be an address with its prefix length, such as 10.0.0.1/24"


def is_masked(prior: Any, config: Any) -> bool:
    """Tell whether a password is shown as stars only: then nobody can say that it has changed."""
    return bool(prior) and not str(prior).strip("*")


def same_elements(prior: Any, config: Any) -> bool:
    """Tell whether two lists differ at most in their order."""
    if not isinstance(prior, list) or not isinstance(config, list) or UNKNOWN in config:
        return False
    return sorted(map(str, prior)) == sorted(map(str, config))
