"""The outputs of a target as its state has them, read without an engine and without writing anything."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.engine.changes import SENSITIVE
from stackyard.sources.site.own_code.find import GUESTS_OUTPUT
from stackyard.state import StateService

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.path.target import Target
    from stackyard.sources.store import ChosenStore

__all__ = ["StateOutputs", "read_outputs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOutputs:
    """The outputs of a target.

    Attributes:
        guests: What its guests are, by key.
        others: Those of own code, a sensitive value masked.
    """

    guests: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, outputs: Mapping[str, tuple[Any, bool]]) -> StateOutputs:
        """Return the outputs with their values, where it is known which are sensitive."""
        guests = outputs.get(GUESTS_OUTPUT, ({}, False))[0]
        others = {
            name: str(SENSITIVE) if is_sensitive else value
            for name, (value, is_sensitive) in sorted(outputs.items())
            if name != GUESTS_OUTPUT
        }
        return cls(guests=guests if isinstance(guests, dict) else {}, others=others)


def read_outputs(store: ChosenStore, target: Target) -> StateOutputs | None:
    """Return the outputs of a target as its state has them; None where only the engine can read the state.

    Args:
        store: Where the states are.
        target: The target.

    Raises:
        StoreError: The store of the states cannot be read.
    """
    with contextlib.closing(store.read()) as objects:
        content = StateService(objects).contents.read(target.state_name)
    if content is None:
        return StateOutputs()
    document = parse_json(content.body.data, LARGE)
    if "encrypted_data" in document:
        return None
    found = document.get("outputs", {})
    return StateOutputs.of(
        {name: (one.get("value"), bool(one.get("sensitive"))) for name, one in found.items()}
    )
