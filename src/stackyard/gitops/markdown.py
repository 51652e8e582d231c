"""Markdown that holds text from outside: in spans and blocks of code alone, from which nothing leads out.

Inside of them no mark-up, no link, no mention of a person and no HTML has any meaning.
"""

from __future__ import annotations

import re

from stackyard.base.visible import on_one_line, visible

__all__ = ["code", "cut_middle", "fence", "fold"]

_TICKS = re.compile("`+")
_LONGEST_SPAN = 200
_FENCE = "```"


def code(text: str) -> str:
    """Return text as a span of code, on one line, cut where it is very long."""
    shown = on_one_line(text)
    if len(shown) > _LONGEST_SPAN:
        shown = f"{shown[:_LONGEST_SPAN]}…"
    # A table is cut at its bars before anything else is read.
    shown = shown.replace("|", "¦")
    ticks = "`" * (_longest_run(shown) + 1)
    space = " " if not shown or shown[0] in "` " or shown[-1] in "` " else ""
    return f"{ticks}{space}{shown}{space}{ticks}"


def fence(lines: list[str], language: str = "") -> str:
    """Return lines as a block of code."""
    shown = [visible(line).replace("\n", "\\n") for line in lines]
    longest = max((_longest_run(line) for line in shown), default=0)
    ticks = "`" * max(len(_FENCE), longest + 1)
    return "\n".join([f"{ticks}{language}", *shown, ticks])


def fold(title: str, body: str) -> str:
    """Return a part that a reader opens; the title is text of ours."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def cut_middle(lines: list[str], most: int) -> list[str]:
    """Return the first and the last of some lines, as many characters as there is room for.

    Args:
        lines: The lines.
        most: How many characters they may have, with a line feed behind each.
    """
    if sum(len(line) + 1 for line in lines) <= most:
        return lines
    room = most - 60
    first, last = list[str](), list[str]()
    used, rest = 0, list(lines)
    while rest:
        side, line = (first, rest[0]) if len(first) <= len(last) else (last, rest[-1])
        if used + len(line) + 1 > room:
            break
        used += len(line) + 1
        side.append(line)
        rest = rest[1:] if side is first else rest[:-1]
    return [*first, f"… {len(rest)} lines are left out here …", *reversed(last)]


def _longest_run(text: str) -> int:
    return max((len(found) for found in _TICKS.findall(text)), default=0)
