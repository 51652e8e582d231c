"""`uname`: the kernel that the guest booted with, as the lab tells it."""

from __future__ import annotations

import os
import sys

from . import facts

__all__ = ["run"]

# In the order in which all of them are printed.
_PARTS = {
    "s": "kernel-name",
    "n": "nodename",
    "r": "kernel-release",
    "v": "kernel-version",
    "m": "machine",
    "p": "processor",
    "i": "hardware-platform",
    "o": "operating-system",
}
_UNKNOWN = ("p", "i")


def run(name: str, words: list[str]) -> int:
    """Print what is asked for."""
    known = os.uname()
    values = {
        "s": known.sysname,
        "n": known.nodename,
        "r": str(facts.load().get("kernel") or known.release),
        "v": "#1 SMP PREEMPT_DYNAMIC Debian",
        "m": known.machine,
        "p": "unknown",
        "i": "unknown",
        "o": "GNU/Linux",
    }
    wanted: set[str] = set()
    for word in words:
        letters = _letters(word)
        if letters is None:
            sys.stderr.write(f"{name}: invalid option -- '{word.lstrip('-')}'\n")
            return 1
        wanted |= letters
    chosen = [values[letter] for letter in _PARTS if letter in (wanted or {"s"})]
    print(" ".join(chosen))
    return 0


def _letters(word: str) -> set[str] | None:
    if word in ("-a", "--all"):
        return set(_PARTS) - set(_UNKNOWN)
    if word.startswith("--"):
        found = {letter for letter, long in _PARTS.items() if word[2:] == long}
        return found or None
    letters = set(word[1:])
    return letters if word.startswith("-") and letters and letters <= set(_PARTS) else None
