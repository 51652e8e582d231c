"""What the lab tells a guest of itself at each boot: its addresses, memory, name, system."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["PATH", "load"]

PATH = "/run/lab/facts.json"


def load() -> dict[str, Any]:
    """Return what is known; nothing before the boot."""
    try:
        with open(PATH, encoding="utf-8") as stream:
            found = json.load(stream)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
