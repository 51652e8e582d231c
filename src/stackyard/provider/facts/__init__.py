"""What bpg/proxmox declares, as data: types, nesting, defaults and replace rules of the supported resources.

`scripts/generate_provider_facts.py` writes `bpg.json`; do not edit it by hand.
"""

from __future__ import annotations

import importlib.resources
from typing import Any

import orjson

__all__ = ["load"]


def load() -> dict[str, Any]:
    """Return the facts: `provider`, and `resources` and `data_sources` by name."""
    data = importlib.resources.files(__name__).joinpath("bpg.json").read_bytes()
    loaded: dict[str, Any] = orjson.loads(data)
    return loaded
