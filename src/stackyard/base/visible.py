r"""Text from outside, with every character made visible that would steer a terminal or hide what it is.

Control characters move the cursor and change what was written before; marks of direction show a text in
another order than it has; characters without width hide a difference. Each is spelled out as `\x1b` or
`\u202e`. Everything that a guest, a cluster or a program wrote goes through here before a person reads it.
"""

from __future__ import annotations

import re

__all__ = ["on_one_line", "visible"]

# All controls but tab and line feed; what Python makes of bytes that are not UTF-8; separators of lines and
# paragraphs; marks of direction; characters without width, but for the two that join letters.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """Return text that does nothing but appear; it keeps its lines and tabs."""
    return _HIDDEN.sub(_escape, text)


def on_one_line(text: str) -> str:
    """Return text that does nothing but appear, on one line: a line feed is spelled out, too."""
    return visible(text).replace("\n", "\\n")


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    # Bytes that were no UTF-8 are shown as the bytes that they were.
    if number < 0x100 or 0xDC80 <= number <= 0xDCFF:
        return f"\\x{number & 0xFF:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
