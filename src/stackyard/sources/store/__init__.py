"""The store of a site: where its states, journals, records, saved plans and keys are kept.

`ChosenStore` is the one that the input names, and opens it; `sources.site.store_choice` reads which.
`keys` finds the key of the site, which seals what not everyone who can read the store may read. `identity` is
whose store it is.
"""

from __future__ import annotations

from stackyard.sources.store.chosen import ChosenStore
from stackyard.sources.store.identity import StoreIdentity, StoreMovedError, read_identity
from stackyard.sources.store.last_used import StoreSwitchedError

__all__ = ["ChosenStore", "StoreIdentity", "StoreMovedError", "StoreSwitchedError", "read_identity"]
