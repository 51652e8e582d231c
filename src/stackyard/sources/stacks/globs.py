"""Globs as OpenTofu's `fileset` reads them: `*`, `?`, `**`, `[a-z]` and `{one,other}`."""

from __future__ import annotations

import functools
import re

__all__ = ["compile_glob", "escape", "is_glob", "literal_prefix"]

_SPECIAL = re.compile(r"[*?\[{]")
_ESCAPED = re.compile(r"([*?\[\]{}\\])")
_DEEPEST = 8


def is_glob(pattern: str) -> bool:
    """Return whether a pattern is more than a path."""
    return _SPECIAL.search(pattern) is not None


def escape(path: str) -> str:
    """Return a pattern that means this path and no other."""
    return _ESCAPED.sub(r"\\\1", path) if _ESCAPED.search(path) else path


def literal_prefix(pattern: str) -> str:
    """Return the folder below which everything is that a pattern can mean, empty for any."""
    match = re.search(r"[*?\[{\\]", pattern)
    return pattern[: match.start()].rpartition("/")[0] if match else pattern.rpartition("/")[0]


@functools.lru_cache(maxsize=4096)
def compile_glob(pattern: str) -> re.Pattern[str]:
    """Return what a path has to match; a pattern that is none means itself."""
    try:
        return re.compile(_translate(pattern, 0))
    except re.error:
        return re.compile(re.escape(pattern))


def _translate(pattern: str, depth: int) -> str:
    out: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**/", at):
            out.append("(?:[^/]+/)*")
            at += 3
        elif pattern.startswith("**", at):
            out.append(".*")
            at += 2
        elif char in "*?":
            out.append("[^/]*" if char == "*" else "[^/]")
            at += 1
        elif char == "\\" and at + 1 < len(pattern):
            out.append(re.escape(pattern[at + 1]))
            at += 2
        elif char == "[" and (end := pattern.find("]", at + 2)) > 0:
            body = pattern[at + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            out.append(f"[^/{body[1:]}]" if body[0] in "!^" else f"[{body}]")
            at = end + 1
        elif char == "{" and depth < _DEEPEST and (end := _closing(pattern, at)) > 0:
            choices = _split(pattern[at + 1 : end])
            out.append(f"(?:{'|'.join(_translate(one, depth + 1) for one in choices)})")
            at = end + 1
        else:
            out.append(re.escape(char))
            at += 1
    return "".join(out)


def _closing(pattern: str, start: int) -> int:
    depth = 0
    for at in range(start, len(pattern)):
        depth += {"{": 1, "}": -1}.get(pattern[at], 0)
        if depth == 0:
            return at
    return -1


def _split(text: str) -> list[str]:
    """Split at commas that are in no inner braces."""
    parts, depth = [""], 0
    for char in text:
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts
