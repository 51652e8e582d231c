"""From the events of an apply to the moment at which each guest is ready for its next step."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import StackyardError
from stackyard.engine.changes import Action
from stackyard.engine.failures import TofuError
from stackyard.render.references import address_of, data_addresses

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from stackyard.desired import Guest
    from stackyard.engine.changes import Changes

__all__ = ["GuestNotCreatedError", "HaltedError", "Readiness"]

_MAKES = (Action.CREATE, Action.UPDATE, Action.REPLACE)


class GuestNotCreatedError(StackyardError):
    """A guest was to be created or changed, and the engine could not do it."""

    code = "E-OPERATOR-NOT-MADE"
    summary = "Cannot create a guest"
    default_remedy = "Correct what the engine reports and run the command again."


class HaltedError(StackyardError):
    """A node was skipped because an earlier node failed.

    Args:
        cause: The node that failed.
    """

    code = "E-OPERATOR-HALTED"
    summary = "Node skipped: an earlier node failed"
    default_remedy = "Run the command again when the node that failed first is put right."

    def __init__(self, cause: str) -> None:
        super().__init__(f"{cause} failed first, and nothing new is begun then.")
        self.cause = cause


class Readiness:
    """Which nodes are ready for their next step.

    Args:
        guests: The guests by the names of their nodes.
        changes: What the plan does.
    """

    def __init__(self, guests: Mapping[str, Guest], changes: Changes) -> None:
        self._names = {address_of(guest): name for name, guest in guests.items()}
        # The guest itself, and its cloud-init data.
        self._resources = {
            name: frozenset((address_of(guest), *data_addresses(guest.key))) for name, guest in guests.items()
        }
        actions = {change.address: change.action for change in changes.planned}
        self._waiting = {
            name: asyncio.Event() for address, name in self._names.items() if actions.get(address) in _MAKES
        }
        self.to_create = frozenset(
            name for address, name in self._names.items() if actions.get(address) is Action.CREATE
        )
        self.begun: set[str] = set()
        self.done: set[str] = set()
        self._errors: dict[str, StackyardError] = {}

    def note_event(self, event: events.ResourceApplied) -> str | None:
        """Take an event of the apply; return the node whose guest it makes or changes."""
        name = self._names.get(event.address)
        if name is None or event.action == "delete":
            return None
        self.begun.add(name)
        if event.phase is events.ApplyPhase.DONE:
            self.done.add(name)
            if name in self._waiting:
                self._waiting[name].set()
        return name

    async def wait(self, name: str) -> None:
        """Wait until the engine is done with a guest.

        Raises:
            StackyardError: It could not be created, or no one tries any more.
        """
        if name in self._waiting:
            await self._waiting[name].wait()
        if name in self._errors:
            raise self._errors[name]

    def end(self, error: StackyardError) -> frozenset[str]:
        """Let everyone know whose guest is not there that it will not come; return who that is."""
        left = {name for name, done in self._waiting.items() if not done.is_set()}
        for name in left:
            self._errors[name] = _error_of(name, self._resources[name], error)
            self._waiting[name].set()
        return frozenset(left)


def _error_of(name: str, resources: Collection[str], error: StackyardError) -> StackyardError:
    if not isinstance(error, TofuError):
        return error
    own = [finding for finding in error.findings if finding.address in resources]
    said = own or [finding for finding in error.findings if finding.severity.value == "error"]
    text = " ".join(f"{finding.summary.strip()} {finding.detail.strip()}".strip() for finding in said)
    return GuestNotCreatedError(f"Cannot create {name}: {text or error.detail}")
