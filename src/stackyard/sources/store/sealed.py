"""What is kept in the store so that only the machines of the site can read it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackyard.clients.objects import Objects
    from stackyard.clients.objects.sealed import KeyRing
    from stackyard.sources.store.chosen import ChosenStore

__all__ = ["open_sealed", "reseal_all"]

# What is sealed with the key of the site; certificates and times of changes among them are not.
_SEALED = ("guests/", "controller/", "ssh/", "state-changes/", "kept-states/", "gitops/")
_INNER = "inner/"


def open_sealed(store: ChosenStore, objects: Objects) -> Objects:
    """Return a view of a store whose objects are sealed with the key of the site.

    Raises:
        SiteKeyMissingError: The store was used with a key that is not here.
        OtherSiteError: The store was used with other keys than those of this site.
        FileError: The key cannot be read or made.
        StoreError: The store cannot be used.
    """
    from stackyard.clients.objects.sealed import SealedObjects  # lazy: cryptography costs 50 ms
    from stackyard.sources.store.keys import site_keys  # lazy: as above

    return SealedObjects(objects, site_keys(store, objects).ring)


def reseal_all(store: ChosenStore, objects: Objects, *, forget_old: bool = False) -> int:
    """Seal everything with the first key of the site; return how many objects had another.

    Args:
        store: The store of the site.
        objects: The same, open.
        forget_old: Whether machines that have only older keys are refused from then on.

    Raises:
        KeyMissingError: Something was sealed with a key that is not here.
        StoreError: The store cannot be used.
    """
    from stackyard.sources.store.keys import site_keys  # lazy: cryptography costs 50 ms

    return _reseal(objects, site_keys(store, objects).ring, forget_old=forget_old)


def _reseal(objects: Objects, ring: KeyRing, *, forget_old: bool) -> int:
    from stackyard.clients.objects.scoped import ScopedObjects  # lazy: only for a rotation
    from stackyard.clients.objects.sealed import SealedObjects, is_sealed  # lazy: cryptography costs 50 ms
    from stackyard.sources.store.identity import change_identity, read_identity  # lazy: as above
    from stackyard.sources.store.keys import derive_ring  # lazy: as above

    sealed, count, scopes = SealedObjects(objects, ring), 0, set[str]()
    for prefix in (*_SEALED, _INNER):
        after = ""
        while entries := objects.list(prefix, after=after):
            after = entries[-1].key
            if prefix == _INNER:
                scopes |= {"/".join(entry.key.split("/", 3)[:3]) + "/" for entry in entries}
                continue
            for entry in entries:
                stored = objects.get(entry.key)
                if stored is not None and is_sealed(stored.data):
                    count += sealed.reseal(entry.key)
    for scope in sorted(scopes):
        # Runs on inner hosts seal with keys of their own, which come from those of the site.
        count += _reseal(ScopedObjects(objects, scope), derive_ring(ring, scope), forget_old=forget_old)
    if read_identity(objects) is not None:
        first = ring.keys[0].id
        change_identity(
            objects,
            lambda now: dataclasses.replace(
                now, keys=(first,) if forget_old else tuple(dict.fromkeys((first, *now.keys)))
            ),
        )
    return count
