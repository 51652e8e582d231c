"""The building blocks of format checkers: how a checker says no."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["Checker", "FormatError", "make_pattern_checker", "split_list"]

Checker = Callable[[str], object]

_LIST_SEPARATOR = re.compile(r"[,;\s\0]+")


class FormatError(Exception):
    """A value does not have the format that its schema asks for; the text is Proxmox's."""


def make_pattern_checker(pattern: str, text: str, flags: re.RegexFlag = re.NOFLAG) -> Checker:
    """Return a checker for a regular expression; `{}` in the text represents the value."""
    compiled = re.compile(pattern, flags)

    def check(value: str) -> None:
        if not compiled.fullmatch(value):
            raise FormatError(text.replace("{}", value))

    return check


def split_list(text: str) -> list[str]:
    """Split a list parameter the way Proxmox does: at commas, semicolons, blanks and NULs."""
    return [part for part in _LIST_SEPARATOR.split(text) if part]
