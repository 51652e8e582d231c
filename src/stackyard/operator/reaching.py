"""Reaching into guests by SSH."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.operator.tracking import PhaseFailedError

if TYPE_CHECKING:
    from stackyard import events
    from stackyard.desired import Guest
    from stackyard.manifest.model import Manifest, Node
    from stackyard.operator.creating import HandsFor
    from stackyard.operator.outcome import NodeOutcome, Phase, Verb
    from stackyard.operator.request import Request
    from stackyard.operator.undertaking import Undertaking
    from stackyard.path.verifying import GuestUp

__all__ = ["hands_by_ssh"]


def hands_by_ssh(undertaking: Undertaking, emit: events.Emit) -> HandsFor:
    """Return what gives, for each host, what reaches into its guests."""
    del undertaking, emit
    return lambda host, resolved: _Hands()


class _Hands:
    async def configure(self, node: Node, guest: Guest, up: GuestUp) -> tuple[Phase, ...]:
        del node, guest, up
        return ()

    async def inspect(self, node: Node, guest: Guest, up: GuestUp) -> tuple[Phase, ...]:
        del node, guest, up
        return ()

    async def delegate(
        self, verb: Verb, node: Node, up: GuestUp, subtree: Manifest, request: Request
    ) -> tuple[NodeOutcome, ...]:
        del up, subtree, request
        raise PhaseFailedError(f"{verb} inside of {node.name} is not possible.")
