"""The objects of Kubernetes clusters, kept with the lab under the etcd that holds them.

A document `talos_kubernetes/<uuid>|<group>|<plural>|<namespace>|<name>` has one object with the managers of
its fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.kubernetes.record import pack_record, unpack_record
from pvelab.kubernetes.store import Key, Store, StoredChange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.store import Document
    from pvelab.world.store import Store as LabStore

__all__ = ["open_objects", "read_objects", "write_objects"]

_COLLECTION = "talos_kubernetes"


def open_objects(lab: LabStore, uuid: str) -> Store:
    """Return the objects of an etcd; every change of them is kept with the lab."""

    def keep(change: StoredChange) -> None:
        key = change.key
        name = "|".join((uuid, key.group, key.plural, key.namespace, key.name))
        with lab.transaction():
            if change.change == "DELETED":
                lab.delete(_COLLECTION, name)
            else:
                lab.put(_COLLECTION, name, pack_record(change.record))

    store = Store()
    store.restore(
        (Key(*name.split("|")), unpack_record(document)) for name, document in read_objects(lab, uuid).items()
    )
    store.on_change = keep
    return store


def read_objects(lab: LabStore, uuid: str) -> dict[str, Document]:
    """Return the documents of an etcd, by their names without its own."""
    prefix = f"{uuid}|"
    return {
        key.removeprefix(prefix): document
        for key, document in lab.items(_COLLECTION).items()
        if key.startswith(prefix)
    }


def write_objects(lab: LabStore, uuid: str, documents: Mapping[str, Document]) -> None:
    """Fill an etcd, in the running transaction."""
    for name, document in documents.items():
        lab.put(_COLLECTION, f"{uuid}|{name}", document)
