"""Everything that a double has, as bytes: what a snapshot of etcd is to a real API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from pvelab.kubernetes.record import Manager, Record
from pvelab.kubernetes.store import Key
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import LARGE

if TYPE_CHECKING:
    from pvelab.kubernetes.store import Store

__all__ = ["restore_snapshot", "take_snapshot"]


def take_snapshot(store: Store) -> bytes:
    """Return all objects with their versions and the managers of their fields."""
    rows = [
        {
            "key": [key.group, key.plural, key.namespace, key.name],
            "object": record.object,
            "owners": [
                {
                    "manager": [manager.name, manager.operation, manager.subresource],
                    "paths": sorted(paths),
                    "time": record.times.get(manager, ""),
                }
                for manager, paths in record.owners.items()
            ],
        }
        for key, record in store.list_all()
    ]
    return orjson.dumps({"version": store.version, "records": rows})


def restore_snapshot(store: Store, data: bytes) -> None:
    """Replace everything by what a snapshot has; watches from before must list again.

    Raises:
        JsonError: It is not a snapshot.
    """
    document = parse_json(data, LARGE)
    records = {Key(*row["key"]): _read_record(row) for row in document["records"]}
    store.replace_all(records, int(document["version"]))


def _read_record(row: dict[str, Any]) -> Record:
    owners, times = {}, {}
    for entry in row["owners"]:
        manager = Manager(*entry["manager"])
        owners[manager] = frozenset(tuple((kind, name) for kind, name in path) for path in entry["paths"])
        times[manager] = entry["time"]
    return Record(object=row["object"], owners=owners, times=times)
