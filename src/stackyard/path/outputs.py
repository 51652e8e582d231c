"""What a state says of the guests of a target, read without an engine and without writing anything."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.clients.objects import open_objects
from stackyard.clients.objects.open_store import DATABASE
from stackyard.state import StateService

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.path.target import Target

__all__ = ["read_guests"]

_OUTPUT = "guests"


def read_guests(base: Path, target: Target) -> dict[str, Any] | None:
    """Return the guests of a target as its state has them; None where only the engine can read the state.

    Args:
        base: The folder for what runs leave for the next.
        target: The target.

    Raises:
        StoreError: The store of the states cannot be read.
    """
    folder = base / "state"
    if not (folder / DATABASE).exists():
        return {}
    with contextlib.closing(open_objects(folder, create=False)) as objects:
        content = StateService(objects).contents.read(target.state_name)
    if content is None:
        return {}
    document = parse_json(content.body.data, LARGE)
    if "encrypted_data" in document:
        return None
    found = document.get("outputs", {}).get(_OUTPUT, {}).get("value")
    return found if isinstance(found, dict) else {}
