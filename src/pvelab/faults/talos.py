"""The faults of Talos machines: each is in force for as long as its document is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pvelab.world.store import Document, Store

__all__ = ["SLOW_S", "TALOS_WAYS", "find_talos_fault"]

TALOS_WAYS = (
    "never-boots",
    "install-hangs",
    "disk-lost",
    "etcd-slow",
    "certificate-expired",
    "unreachable",
    "partition",
)
SLOW_S = 30.0
_COLLECTION = "faults"


def find_talos_fault(store: Store, how: str, vmid: int) -> Document | None:
    """Return the fault of a way that is in force for a machine, None without one."""
    for document in store.items(_COLLECTION).values():
        if document["kind"] == "talos" and document["how"] == how and document.get("vmid", vmid) == vmid:
            return document
    return None
