"""What an earlier commit made, kept as text files; the program of today has to make the same."""

from __future__ import annotations

import difflib
import json
import os
from pathlib import Path
from typing import Any

__all__ = ["FIXTURES", "RECORDING", "compare", "kept_names"]

FIXTURES = Path(__file__).parent / "fixtures"
# Set by `python -m tests.compatibility.record` alone: then files are written in place of being compared.
RECORDING = "STACKYARD_TEST_RECORD"
_LONGEST_DIFFERENCE = 120


def compare(name: str, value: Any) -> None:
    """Fail where a value is not what the file keeps: the message is the difference, line by line.

    Args:
        name: The file, below the folder of fixtures.
        value: What JSON can say; texts that vary have been replaced by fixed words.
    """
    path = FIXTURES / name
    text = _written(value)
    if os.environ.get(RECORDING):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return
    kept = path.read_text() if path.exists() else ""
    if text != kept:
        lines = difflib.unified_diff(kept.splitlines(), text.splitlines(), "kept", "now", lineterm="", n=2)
        shown = list(lines)
        more = len(shown) - _LONGEST_DIFFERENCE
        note = [f"... and {more} more lines"] if more > 0 else []
        raise AssertionError("\n".join([f"{name} differs:", *shown[:_LONGEST_DIFFERENCE], *note]))


def kept_names(folder: str) -> set[str]:
    """Return the names of all files that are kept in a folder."""
    return {path.name for path in (FIXTURES / folder).iterdir()}


def _written(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
