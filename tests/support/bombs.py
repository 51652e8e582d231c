"""Short texts that cost a careless reader everything."""

from __future__ import annotations

__all__ = ["DEEP_JSON", "DEEP_YAML", "FULL_YAML", "alias_bomb", "merge_bomb"]

_LEVELS = 1_000_000
_JSON_LEVELS = 200_000


def alias_bomb(levels: int = 30, width: int = 10) -> str:
    """Return lists of aliases of lists of aliases: `width ** levels` values in a few kilobytes."""
    lines = ["a0: &a0 [x]"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * width)}]")
    return "\n".join(lines) + "\n"


def merge_bomb(levels: int = 30, width: int = 10) -> str:
    """Return the same with merge keys, which a reader has to follow to read it."""
    lines = ["a0: &a0 {k: v}"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * width)}]}}")
    return "\n".join(lines) + "\n"


# Each is nested far more deeply than a stack is.
DEEP_YAML = {
    "lists in brackets": "[" * _LEVELS,
    "mappings in brackets": "{" * _LEVELS,
    "mappings of mappings in brackets": "{a: " * _LEVELS,
    "lists on a line": "- " * _LEVELS,
    "keys of keys": "? " * _LEVELS,
    "tags": "!x [" * _LEVELS,
    "anchors": "".join(f"&a{level} [" for level in range(_LEVELS // 10)),
    "lists on lines": "[\n" * _LEVELS,
    "keys in brackets": "[? " * _LEVELS,
    "indentation": "".join(" " * level + "a:\n" for level in range(2_000)),
    "indented lists": "".join(" " * level + "-\n" for level in range(2_000)),
    "aliases": "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 5_000)),
}
DEEP_JSON = {
    "arrays": "[" * _JSON_LEVELS,
    "whole arrays": "[" * 1_000 + "]" * 1_000,
    "objects": '{"a":' * _JSON_LEVELS,
    "whole objects": '{"a":' * 1_000 + "1" + "}" * 1_000,
    "both": '[{"a":' * _JSON_LEVELS,
}
# Each takes a time or a memory that grows with the square of its length, or worse.
FULL_YAML = {
    "aliases of aliases": alias_bomb(),
    "merge keys of merge keys": merge_bomb(),
    "an alias in its own anchor": "&a [*a]",
    "a merge key of its own mapping": "&a {<<: *a}",
    "directives": "".join(f"%TAG !a{number}! x:\n" for number in range(100_000)) + "--- a\n",
    "a number in sixties": "a: 1" + ":1" * 500_000,
    "a long number": "a: " + "9" * 5_000,
    "numbers that look the same to a dictionary": "".join(
        f"{(2**61 - 1) * number}: 1\n" for number in range(1, 20_000)
    ),
    "merge keys in one mapping": "a: &a {b: c}\nd:\n" + "  <<: *a\n" * 40_000,
}
