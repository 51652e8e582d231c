"""The spelling of old, in which scenarios were options of the program: made into commands before parsing.

    stackyard --scenario pve-setup --local        stackyard scenario run pve-setup --local
    stackyard --list-scenarios                    stackyard scenario list
    stackyard --scenario pve-setup --list-phases  stackyard scenario phases pve-setup
    stackyard --preflight --host father           stackyard preflight --host father
    stackyard scenario pve-setup --local          stackyard scenario run pve-setup --local

It knows words alone and loads nothing, because every command line passes here.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["respelled"]

_SCENARIO = ("--scenario", "-S")
_FLAGS = ("--list-scenarios", "--list-phases", "--preflight")
_VERBS = ("list", "phases", "run")


def respelled(argv: Sequence[str]) -> list[str]:
    """Return a command line as the parser knows it; one that is in no spelling of old as it is."""
    words = list(argv)
    if words[:1] == ["scenario"]:
        return _with_verb(words)
    if not words or not words[0].startswith("-"):
        return words
    end = words.index("--") if "--" in words else len(words)
    name, rest = _taken(words[:end])
    said = {flag for flag in _FLAGS if flag in rest}
    if name is None and not said:
        return words
    rest = [word for word in rest if word not in said] + words[end:]
    if "--list-scenarios" in said:
        return ["scenario", "list", *rest]
    if "--list-phases" in said:
        return ["scenario", "phases", *_named(name), *rest]
    if "--preflight" in said:
        return ["preflight", *_hosted(rest)]
    return ["scenario", "run", *_named(name), *rest]


def _hosted(rest: list[str]) -> list[str]:
    """Name this machine in place of `--local`: a preflight looks at a host by its name."""
    if "--local" not in rest:
        return rest
    own = os.uname().nodename.partition(".")[0]
    return ["--host", own, *(word for word in rest if word != "--local")]


def _named(name: str | None) -> list[str]:
    return [] if name is None else [name]


def _taken(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Take the scenario out of a command line: `--scenario X`, `--scenario=X`, `-S X` or `-SX`."""
    name: str | None = None
    rest: list[str] = []
    pending = iter(words)
    for word in pending:
        option, equals, value = word.partition("=")
        if option in _SCENARIO and equals:
            name = value
        elif word in _SCENARIO:
            name = next(pending, "")
        elif word.startswith("-S") and not word.startswith("--"):
            name = word[2:]
        else:
            rest.append(word)
    return name, rest


def _with_verb(words: list[str]) -> list[str]:
    """Put the verb into `scenario NAME`, which an older program needed none for."""
    if len(words) > 1 and "-" in words[1] and not words[1].startswith("-") and words[1] not in _VERBS:
        return ["scenario", "run", *words[1:]]
    return words
