"""Records of the guest in JSON files, read whole and replaced whole."""

from __future__ import annotations

import json
from typing import Any

from .accounts import replace_file

__all__ = ["FOLDER", "load", "save"]

FOLDER = "/var/lib/stackyard-lab"


def load(name: str) -> dict[str, Any]:
    """Return a record; empty if there is none yet."""
    try:
        with open(f"{FOLDER}/{name}.json", encoding="utf-8") as stream:
            found = json.load(stream)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def save(name: str, record: dict[str, Any]) -> None:
    """Replace a record."""
    replace_file(f"{FOLDER}/{name}.json", json.dumps(record, separators=(",", ":")))
