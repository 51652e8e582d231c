"""What is kept in the store so that only the machines of the site can read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackyard.clients.objects import Objects
    from stackyard.sources.store.chosen import ChosenStore

__all__ = ["open_sealed", "reseal_all"]

# What is sealed with the key of the site; certificates and times of changes among them are not.
_SEALED = ("guests/", "controller/", "ssh/")


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


def reseal_all(store: ChosenStore, objects: Objects) -> int:
    """Seal everything that is sealed with the first key of the site; return how many objects had another.

    Raises:
        KeyMissingError: Something was sealed with a key that is not here.
        StoreError: The store cannot be used.
    """
    from stackyard.clients.objects.sealed import SealedObjects, is_sealed  # lazy: cryptography costs 50 ms
    from stackyard.sources.store.keys import site_keys  # lazy: as above

    sealed, count = SealedObjects(objects, site_keys(store, objects).ring), 0
    for prefix in _SEALED:
        after = ""
        while entries := objects.list(prefix, after=after):
            for entry in entries:
                stored = objects.get(entry.key)
                if stored is not None and is_sealed(stored.data):
                    count += sealed.reseal(entry.key)
            after = entries[-1].key
    return count
