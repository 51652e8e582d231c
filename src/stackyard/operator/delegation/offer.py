"""The part of the site's store that the run on an inner host may reach, and the key that it seals with."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
from typing import TYPE_CHECKING

from stackyard.base.names import escape_part
from stackyard.operator.delegation.store_channel import OfferedStore
from stackyard.path.manifests import KIND
from stackyard.path.target import Target
from stackyard.sources.store.keys import site_keys
from stackyard.state import layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stackyard.sources.store import ChosenStore

__all__ = ["forget_inner", "offer_store"]

_PURPOSE = b"stackyard inner store "


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
        secrets = [key.secret for key in site_keys(store, objects).ring.keys]
        # Of each key of the site one of its own: a rotation outside is a rotation inside.
        derived = [hmac.digest(secret, _PURPOSE + scope.encode(), hashlib.sha256) for secret in secrets]
        key = ",".join(base64.b64encode(one).decode() for one in derived)
        yield OfferedStore(objects=objects, scope=scope, site_key=key)


def forget_inner(store: ChosenStore, manifest: str, host: str, nodes: Iterable[str]) -> None:
    """Remove what runs on inner hosts left that are no more: a new host of the same name begins anew.

    Raises:
        StoreError: The store cannot be used.
    """
    with contextlib.closing(store.open()) as objects:
        for node in nodes:
            OfferedStore(objects=objects, scope=_scope(manifest, host, node), site_key="").forget()


def _scope(manifest: str, host: str, node: str) -> str:
    return layout.inner(Target(kind=KIND, name=manifest, node=host).state_name, escape_part(node))
