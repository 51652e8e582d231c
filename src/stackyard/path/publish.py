"""The inventory of a target: from its input and its state, to where its readers find it."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from stackyard.clients.objects import open_objects
from stackyard.clients.objects.open_store import DATABASE
from stackyard.inventory.contract import Origin, render
from stackyard.inventory.facts import read_facts
from stackyard.inventory.targets import open_inventory_target
from stackyard.path.run import state_version
from stackyard.render.legacy_names import find_renamed
from stackyard.state import StateService

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from stackyard.inventory import Inventory
    from stackyard.inventory.targets import InventoryTarget, Published
    from stackyard.path.run import Run
    from stackyard.path.target import Resolved, Target

__all__ = ["inventory_of", "inventory_target_of", "origin_of", "place_of", "publish"]

_FOLDER = "inventory"


def inventory_target_of(base: Path, resolved: Resolved) -> InventoryTarget:
    """Return where the inventory of a target is published unless someone says another place.

    Args:
        base: The folder for what runs leave for the next.
        resolved: The target.
    """
    return open_inventory_target(place_of(base, resolved.target))


def place_of(base: Path, target: Target) -> Path:
    """Return the folder for the inventories of a target."""
    return base / _FOLDER / target.state_name


def publish(run: Run, *, seen: Mapping[str, Sequence[str]]) -> Published:
    """Publish the inventory of a target that was just applied.

    Args:
        run: The target.
        seen: The addresses at which guests were seen to be up, by address of the resource: they may have come
            later than the state was written.

    Raises:
        IncompleteError: Something is missing; the inventory before stays.
        StackyardError: It cannot be written; the inventory before stays.
    """
    inventory = _render_inventory(run.resolved, run.states, seen)
    return inventory_target_of(run.settings.base, run.resolved).publish(inventory)


def inventory_of(base: Path, resolved: Resolved) -> Inventory:
    """Return the inventory of a target as it is now.

    Raises:
        IncompleteError: The state does not have exactly what should be there.
        StackyardError: The state cannot be read.
    """
    with _states(base) as states:
        return _render_inventory(resolved, states, {})


def origin_of(base: Path, resolved: Resolved) -> Origin:
    """Return what an inventory that is rendered now comes from.

    Raises:
        StackyardError: The state cannot be read.
    """
    with _states(base) as states:
        return _origin(resolved, states)


@contextlib.contextmanager
def _states(base: Path) -> Iterator[StateService | None]:
    folder = base / "state"
    if not (folder / DATABASE).exists():
        yield None
        return
    with contextlib.closing(open_objects(folder, create=False)) as objects:
        yield StateService(objects)


def _render_inventory(
    resolved: Resolved, states: StateService | None, seen: Mapping[str, Sequence[str]]
) -> Inventory:
    content = None if states is None else states.contents.read(resolved.target.state_name)
    facts = read_facts(None if content is None else content.body.data)
    renamed = find_renamed(resolved.desired, facts.keys())
    facts = {renamed.get(address, address): fact for address, fact in facts.items()}
    known = {
        address: fact if fact.addresses else replace(fact, addresses=tuple(seen.get(address, ())))
        for address, fact in facts.items()
    }
    return render(resolved.desired, known, _origin(resolved, states), extras=resolved.extras)


def _origin(resolved: Resolved, states: StateService | None) -> Origin:
    return Origin(
        target=str(resolved.target),
        desired=hashlib.sha256(resolved.desired.model_dump_json().encode()).hexdigest(),
        version=resolved.version,
        etag=str(resolved.extras.get("etag", "")),
        state="" if states is None else state_version(states, resolved.target.state_name),
    )
