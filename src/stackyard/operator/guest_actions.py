"""What the operator does with a guest that is up: the seams to configuration, inspection and delegation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from stackyard.desired import Guest
    from stackyard.operator.delegation.delegate import Delegated
    from stackyard.operator.outcome import Phase, Verb
    from stackyard.operator.request import VerbRequest
    from stackyard.path.verify import GuestUp
    from stackyard.sources.manifest.model import Manifest, Node

__all__ = ["GuestActions", "HandsFor"]


class GuestActions(Protocol):
    """Reaches into guests of one host."""

    async def configure(self, node: Node, guest: Guest, up: GuestUp) -> tuple[Phase, ...]:
        """Make a guest what its spec says, or wait until it has done so itself."""
        ...

    async def inspect(self, node: Node, guest: Guest, up: GuestUp) -> tuple[Phase, ...]:
        """Look whether a guest is what its spec says; a phase that failed says what is not."""
        ...

    async def delegate(
        self, verb: Verb, node: Node, guest: Guest, up: GuestUp, *, subtree: Manifest, request: VerbRequest
    ) -> Delegated:
        """Let the operator inside of a node do something with what runs there."""
        ...


# Gives what reaches into the guests of a host; what their first boots need is there inside of the block.
HandsFor: TypeAlias = Callable[[str], AbstractAsyncContextManager[GuestActions]]
