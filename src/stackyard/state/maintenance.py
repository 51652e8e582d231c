"""What is done to states now and then: dropping old versions, sweeping up what killed writers left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.state.model import Actor

if TYPE_CHECKING:
    from stackyard.state.service import StateService

__all__ = ["maintain"]

_SELF = Actor(principal="stackyard")


def maintain(service: StateService, name: str) -> int:
    """Tidy one state; return how many versions, contents and refused writes were removed.

    Any number of processes may do it at once, and while the state is in use.
    """
    dropped = service.versions.drop_old(name, _SELF)
    return dropped + service.versions.sweep(name) + service.contents.drop_old_quarantined(name)
