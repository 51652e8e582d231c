"""What a state says of the guests of a target, read without an engine and without writing anything."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.state import StateService

if TYPE_CHECKING:
    from stackyard.path.target import Target
    from stackyard.sources.store import ChosenStore

__all__ = ["read_guests"]

_OUTPUT = "guests"


def read_guests(store: ChosenStore, target: Target) -> dict[str, Any] | None:
    """Return the guests of a target as its state has them; None where only the engine can read the state.

    Args:
        store: Where the states are.
        target: The target.

    Raises:
        StoreError: The store of the states cannot be read.
    """
    with contextlib.closing(store.read()) as objects:
        content = StateService(objects).contents.read(target.state_name)
    if content is None:
        return {}
    document = parse_json(content.body.data, LARGE)
    if "encrypted_data" in document:
        return None
    found = document.get("outputs", {}).get(_OUTPUT, {}).get("value")
    return found if isinstance(found, dict) else {}
