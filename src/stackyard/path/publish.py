"""The inventory of a target: from its input and its state, to where its readers find it."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from stackyard.inventory.contract import IncompleteError, Origin, parse, render
from stackyard.inventory.facts import read_facts
from stackyard.inventory.freshness import Freshness, freshness
from stackyard.inventory.targets import StoredInventory, open_inventory_target
from stackyard.path.run_state import state_version
from stackyard.render.legacy_names import find_renamed
from stackyard.state import StateService, layout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from stackyard.inventory import Inventory
    from stackyard.inventory.targets import InventoryTarget, Published
    from stackyard.path.run import Run
    from stackyard.path.target import Resolved, Target
    from stackyard.sources.store import ChosenStore

__all__ = [
    "inventory_of",
    "inventory_target_of",
    "is_current",
    "is_state_published",
    "origin_of",
    "place_of",
    "publish",
]

_FOLDER = "inventory"


def inventory_target_of(store: ChosenStore, target: Target) -> InventoryTarget:
    """Return where the inventory of a target is published unless someone says another place.

    Args:
        store: Where what runs leave is kept.
        target: The target.
    """
    copy = open_inventory_target(place_of(store.base, target))
    return StoredInventory(store, layout.inventory(target.state_name), copy)


def place_of(base: Path, target: Target) -> Path:
    """Return the folder with the copy of the inventories of a target that Ansible reads."""
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
    return inventory_target_of(run.settings.store, run.resolved.target).publish(inventory)


def is_current(run: Run) -> bool:
    """Return whether the published inventory says what the input and the state of a target say.

    Raises:
        StackyardError: The store cannot be read.
    """
    return freshness(_read_published(run), _origin(run.resolved, run.states)) is Freshness.CURRENT


def is_state_published(run: Run) -> bool:
    """Return whether an inventory was published since the state was last written.

    If not, the run that wrote the state did not see all its guests up: it was interrupted, it failed, or it
    did not verify.

    Raises:
        StackyardError: The store cannot be read.
    """
    published = _read_published(run)
    return published is not None and published.origin.state == run.state_version()


def _read_published(run: Run) -> Inventory | None:
    # From the store that the run has open: another connection would cost more than the rest of the check.
    stored = run.states.objects.get(layout.inventory(run.resolved.target.state_name))
    try:
        return None if stored is None else parse(stored.data)
    except IncompleteError:
        # It is replaced like one that is out of date.
        return None


def inventory_of(store: ChosenStore, resolved: Resolved) -> Inventory:
    """Return the inventory of a target as it is now.

    Raises:
        IncompleteError: The state does not have exactly what should be there.
        StackyardError: The state cannot be read.
    """
    with contextlib.closing(store.read()) as objects:
        return _render_inventory(resolved, StateService(objects), {})


def origin_of(store: ChosenStore, resolved: Resolved) -> Origin:
    """Return what an inventory that is rendered now comes from.

    Raises:
        StackyardError: The state cannot be read.
    """
    with contextlib.closing(store.read()) as objects:
        return _origin(resolved, StateService(objects))


def _render_inventory(
    resolved: Resolved, states: StateService, seen: Mapping[str, Sequence[str]]
) -> Inventory:
    content = states.contents.read(resolved.target.state_name)
    facts = read_facts(None if content is None else content.body.data)
    renamed = find_renamed(resolved.desired, facts.keys())
    facts = {renamed.get(address, address): fact for address, fact in facts.items()}
    known = {
        address: fact if fact.addresses else replace(fact, addresses=tuple(seen.get(address, ())))
        for address, fact in facts.items()
    }
    return render(resolved.desired, known, _origin(resolved, states), extras=resolved.extras)


def _origin(resolved: Resolved, states: StateService) -> Origin:
    return Origin(
        target=str(resolved.target),
        desired=hashlib.sha256(resolved.desired.model_dump_json().encode()).hexdigest(),
        version=resolved.version,
        etag=str(resolved.extras.get("etag", "")),
        state=state_version(states, resolved.target.state_name),
    )
