"""Names by which people say that a file holds secrets."""

from __future__ import annotations

import re

__all__ = ["is_secret_name"]

_NAMED = re.compile(
    r"(?:.*\.)?secrets?\.(?:ya?ml|json|(?:auto\.)?tfvars(?:\.json)?|env)|.*\.secrets?\..+|.*\.sops\..+"
)


def is_secret_name(name: str) -> bool:
    """Return whether the name of a file says that it holds secrets."""
    return _NAMED.fullmatch(name) is not None
