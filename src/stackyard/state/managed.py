"""Who manages what: the resources of all states of a store, from the index that is written with each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.state.document import read_document
from stackyard.state.refusals import BodyRefusedError, StateDeletedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.state.document import Holding
    from stackyard.state.model import StateHead
    from stackyard.state.service import StateService

__all__ = ["ManagedResources", "read_managed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedResources:
    """The resources of states.

    Attributes:
        holdings: Type, node and id of every resource, by the name of its state.
        unreadable: States that cannot be looked into, because an engine encrypted them.
    """

    holdings: Mapping[str, tuple[Holding, ...]] = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()


def read_managed(states: StateService, *, but: tuple[str, ...] = ()) -> ManagedResources:
    """Return what all states have, some of them left out on request.

    Raises:
        StoreError: The store cannot say.
    """
    found: dict[str, tuple[Holding, ...]] = {}
    unreadable = []
    for head in states.heads():
        if head.name in but or head.tombstone is not None or head.current is None:
            continue
        held = _holdings(states, head)
        if held is None:
            unreadable.append(head.name)
        else:
            found[head.name] = held
    return ManagedResources(holdings=found, unreadable=tuple(unreadable))


def _holdings(states: StateService, head: StateHead) -> tuple[Holding, ...] | None:
    if head.current is not None and head.current.is_encrypted:
        return None
    if head.holdings is not None:
        return head.holdings
    try:
        content = states.contents.read(head.name)
        return () if content is None else read_document(content.body.data).holdings
    except StateDeletedError:
        return ()
    except BodyRefusedError:
        return None
