"""Commands in texts: GitLab does what a line says that begins with a slash, with the rights of its author."""

from __future__ import annotations

import re

__all__ = ["disarm"]

_QUICK_ACTION = re.compile(r"(?m)^([ \t]*)/(?=[A-Za-z])")


def disarm(text: str) -> str:
    """Return a text for a comment or a description, in which no line is taken for a command."""
    return _QUICK_ACTION.sub(r"\1\\/", text)
