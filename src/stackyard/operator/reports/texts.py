"""Text from outside, made harmless for the form that it goes into."""

from __future__ import annotations

import re

from stackyard.base.visible import visible

__all__ = ["as_block", "as_cell", "as_line", "as_xml"]

# What XML 1.0 has no way to write, escaped or not.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+!|~>-])")
_TICKS = re.compile("`+")


def as_line(text: str) -> str:
    """Return text as part of a line of Markdown, in which it does nothing but appear."""
    plain = " ".join(_escape(text).split())
    escaped = _MARKDOWN.sub(r"\\\1", plain.replace("&", "&amp;").replace("<", "&lt;"))
    # Addresses become links by themselves where nothing stands between their parts.
    return escaped.replace("://", "&#58;//").replace("@", "&#64;").replace("www.", "www&#46;")


def as_cell(text: str) -> str:
    """Return text as a cell of a table; one that is empty says so."""
    return as_line(text) or "-"


def as_block(text: str) -> list[str]:
    """Return the lines of a block that shows text as it is, whatever is in it."""
    shown = _escape(text)
    fence = "`" * (max((len(run) for run in _TICKS.findall(shown)), default=0) + 1)
    fence = max(fence, "```", key=len)
    return [f"{fence}text", *shown.splitlines(), fence]


def as_xml(text: str) -> str:
    """Return text that XML can carry; what it cannot is spelled out."""
    return _NOT_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escape(text: str) -> str:
    return visible(text.replace("\r\n", "\n"))
