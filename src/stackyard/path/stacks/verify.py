"""Proof that the Proxmox guests that a stack has created or changed are up."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import StackyardError
from stackyard.desired import Container, Vm
from stackyard.desired.guest import Agent, Verify
from stackyard.engine.changes import Action
from stackyard.guard.subjects import is_guest
from stackyard.inventory.facts import read_facts
from stackyard.path.verify import GuestUp, verify_guest
from stackyard.provider.durations import duration_s
from stackyard.state.guests import read_guests
from stackyard.state.inside import EncryptedStateError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.desired import Guest
    from stackyard.inventory.facts import Fact
    from stackyard.path.stacks.plan import StackPlan
    from stackyard.path.stacks.run import StackRun
    from stackyard.state.guests import StateGuest

__all__ = ["verify_stack"]

_TOUCHED = (Action.CREATE, Action.UPDATE, Action.REPLACE)


async def verify_stack(
    run: StackRun, made: StackPlan
) -> tuple[tuple[GuestUp, ...], tuple[StackyardError, ...]]:
    """Wait until guests are up; return them, and what is wrong with the others.

    Those are the guests that a plan touched, and those of which the state knows no address: a run before may
    have ended before they were up. Where the plan has nothing to change, all of them are.

    Only the built-in provider tells which cluster it works on. bpg's waits for the agents itself.

    Args:
        run: The stack, applied.
        made: The plan.
    """
    client = None if run.served is None else run.served.client()
    if client is None:
        return (), ()
    data = await run.read_state()
    touched = {one.address for one in made.changes.planned if one.action in _TOUCHED and is_guest(one)}
    facts = read_facts(data, in_modules=True)
    guests = [
        guest
        for address, guest in _guests_of(data)
        if made.is_nothing or address in touched or not facts[address].addresses
    ]
    results = await asyncio.gather(
        *(verify_guest(client, guest, emit=run.emit) for guest in guests), return_exceptions=True
    )
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, StackyardError):
            raise result
    up = tuple(_with_declared(result, facts[result.key]) for result in results if isinstance(result, GuestUp))
    return up, tuple(result for result in results if isinstance(result, StackyardError))


def _with_declared(up: GuestUp, fact: Fact) -> GuestUp:
    """Return a guest that is up, with the addresses that its code gives to it before all others."""
    return replace(up, addresses=tuple(dict.fromkeys((*fact.declared, *up.addresses))))


def _guests_of(data: bytes | None) -> Iterator[tuple[str, Guest]]:
    """Yield the guests of a state that should run, by address."""
    if data is None:
        return
    try:
        found = read_guests(data)
    except EncryptedStateError:
        return
    for guest in found:
        if guest.is_reliable and guest.should_run:
            yield guest.address, _as_model(guest)


def _as_model(guest: StateGuest) -> Guest:
    """Return a guest with what a look at it needs; the rest of it is for the code of the stack to say."""
    values = guest.attributes
    common: dict[str, Any] = {
        "key": guest.address,
        "node": guest.node,
        "vm_id": guest.vm_id,
        "tags": tuple(values.get("tags") or ()),
        "verify": Verify(),
    }
    if guest.kind == "container":
        hostname = _first(values.get("initialization")).get("hostname")
        cards = tuple(values.get("network_interface") or ())
        # Nothing in one that Proxmox does not manage asks for an address.
        is_managed = _first(values.get("operating_system")).get("type") != "unmanaged"
        verify = Verify(address=bool(cards) and is_managed)
        own = {"name": hostname or guest.address, "nics": cards, "verify": verify}
        return Container.model_construct(None, **{**common, **own})
    said = _first(values.get("agent"))
    agent = Agent(enabled=bool(said.get("enabled")))
    cards = tuple(values.get("network_device") or ())
    verify = Verify(address=agent.enabled, timeout_s=_patience_s(said.get("timeout")))
    own = {"name": values.get("name") or guest.address, "nics": cards, "agent": agent, "verify": verify}
    return Vm.model_construct(None, **{**common, **own})


def _patience_s(timeout: Any) -> int:
    """Return how long to wait for a VM: as long as its code says for the agent, and no longer than usual."""
    usual = Verify().timeout_s
    try:
        return max(1, min(usual, int(duration_s(str(timeout)))))
    except ValueError:
        return usual


def _first(values: Any) -> Mapping[str, Any]:
    return values[0] if isinstance(values, list) and values and isinstance(values[0], dict) else {}
