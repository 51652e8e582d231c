"""The part of the site's store that the run on an inner host may reach, and the key that it seals with."""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING

from stackyard.base.names import escape_part
from stackyard.operator.delegation.store_channel import OfferedStore
from stackyard.path.manifests import KIND
from stackyard.path.target import Target
from stackyard.sources.store.keys import derive_ring, ring_text, site_keys
from stackyard.sources.store.pool import lent_store
from stackyard.state import layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stackyard.sources.store import ChosenStore

__all__ = ["forget_inner", "offer_store"]

# Of a hash: enough to tell the nodes of a manifest apart.
_SHORT = 20


@contextlib.contextmanager
def offer_store(store: ChosenStore, manifest: str, host: str, node: str) -> Iterator[OfferedStore]:
    """Open what the run on an inner host may reach, for the length of a block.

    Args:
        store: The store of the site.
        manifest: The manifest.
        host: The host that the manifest is on.
        node: The inner host, by its name in the manifest.

    Raises:
        StoreError: The store cannot be used.
        SiteKeyMissingError: The store was used with a key that is not here.
    """
    scope = _scope(manifest, host, node)
    with contextlib.closing(store.open()) as objects:
        # Of each key of the site one of its own: a rotation outside is a rotation inside.
        key = ring_text(derive_ring(site_keys(store, objects).ring, scope))
        yield OfferedStore(objects=objects, scope=scope, site_key=key)


def forget_inner(store: ChosenStore, manifest: str, host: str, nodes: Iterable[str]) -> None:
    """Remove what runs stored for inner hosts that were destroyed: a new host of the same name starts empty.

    Raises:
        StoreError: The store cannot be used.
    """
    with contextlib.closing(store.open()) as objects:
        for node in nodes:
            OfferedStore(objects=objects, scope=_scope(manifest, host, node), site_key="").forget()


def _scope(manifest: str, host: str, node: str) -> str:
    state = Target(kind=KIND, name=manifest, node=host).state_name
    if lent_store() is None:
        return layout.inner(state, escape_part(node))
    # Inside of an inner host the names come on top of its own part: short ones keep every key within limits.
    digest = hashlib.sha256(f"{state}\n{node}".encode()).hexdigest()[:_SHORT]
    return layout.inner("nested", digest)
