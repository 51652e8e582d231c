"""What the methods of TrueNAS refuse, in its words and numbers."""

from __future__ import annotations

import errno

__all__ = ["CallError", "ValidationErrors", "name_of"]

# TrueNAS counts errors of its own from 201.
NOT_AUTHENTICATED = 207
_OWN_NAMES = {NOT_AUTHENTICATED: "ENOTAUTHENTICATED"}


def name_of(number: int) -> str:
    """Return the name of the number of an error: `EINVAL`."""
    return _OWN_NAMES.get(number) or errno.errorcode.get(number, "EUNKNOWN")


class CallError(Exception):
    """A method cannot be done."""

    def __init__(self, message: str, number: int = errno.EFAULT) -> None:
        super().__init__(f"[{name_of(number)}] {message}")
        self.message = message
        self.number = number


class ValidationErrors(Exception):  # noqa: N818 - the name that TrueNAS gives it
    """The parameters of a method are refused, each with where it is and why."""

    def __init__(self, *found: tuple[str, str, int]) -> None:
        super().__init__("".join(f"[{name_of(number)}] {where}: {why}\n" for where, why, number in found))
        self.found = found
