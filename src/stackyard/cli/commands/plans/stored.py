"""The saved plans that the verbs of `stackyard plans` read."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from stackyard.cli.commands.store.open_site import site_option, store_here
from stackyard.cli.unstored import warn_of_unstored_states

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.clients.objects import Objects
    from stackyard.path.planfile import PlanKey
    from stackyard.path.saved_plans import StoredPlan
    from stackyard.sources.store import ChosenStore

__all__ = ["OpenedStore", "open_store", "plan_row", "site_option"]


class OpenedStore:
    """The store of a site, and the keys of its plans.

    Args:
        store: The store that was chosen.
        objects: The same, open.
    """

    def __init__(self, store: ChosenStore, objects: Objects) -> None:
        self.store = store
        self.objects = objects

    def keys(self) -> tuple[PlanKey, ...]:
        """Return the keys of saved plans.

        Raises:
            SiteKeyMissingError: They are not here.
        """
        from stackyard.path.planfile import plan_keys  # lazy: cryptography costs 50 ms
        from stackyard.sources.store.keys import site_keys  # lazy: as above

        return plan_keys(site_keys(self.store, self.objects, create=False).ring)


@contextlib.contextmanager
def open_store(site: str | None) -> Iterator[OpenedStore]:
    """Give the store of a site for the length of a block.

    Raises:
        StoreError: The store cannot be used.
    """
    # With its secrets, which may hold the key.
    store = store_here(site)
    warn_of_unstored_states(store.base)
    with contextlib.closing(store.read()) as objects:
        yield OpenedStore(store, objects)


def plan_row(plan: StoredPlan) -> dict[str, Any]:
    """Return what is known of a saved plan without its key."""
    from stackyard.cli.commands.state.words import instant  # lazy: only when a verb runs

    return {"id": plan.id, "state": plan.state, "saved_at": instant(plan.saved_at), "size": plan.size}
