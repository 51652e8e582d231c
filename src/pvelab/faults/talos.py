"""The faults of Talos machines: each is in force for as long as its document is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.faults.faults import FaultRule, Point, Strike
from pvelab.server.problems import PveError
from stackyard.base.addresses import is_loopback

if TYPE_CHECKING:
    from pvelab.world.store import Document, Store
    from pvelab.world.world import World

__all__ = [
    "SKEW_S",
    "SLOW_S",
    "TALOS_KINDS",
    "TALOS_WAYS",
    "check_address",
    "find_talos_fault",
    "list_taken_addresses",
    "talos_call_rule",
]

TALOS_WAYS = (
    "never-boots",
    "install-hangs",
    "disk-lost",
    "etcd-slow",
    "certificate-expired",
    "clock-skew",
    "unreachable",
    "partition",
    "api-away",
)
# The kinds of faults whose changes Talos machines notice.
TALOS_KINDS = frozenset(("talos", "address-taken"))
SLOW_S = 30.0
SKEW_S = 7200.0
_COLLECTION = "faults"
_TAKEN = "address-taken"
_API_PORT = 6443


def find_talos_fault(store: Store, how: str, vmid: int) -> Document | None:
    """Return the fault of a way that is in force for a machine, None without one."""
    for document in store.items(_COLLECTION).values():
        if document["kind"] == "talos" and document["how"] == how and document.get("vmid", vmid) == vmid:
            return document
    return None


def talos_call_rule(document: Document) -> FaultRule:
    """Return the rule of a fault of calls: whether they are done stands where a rule has the HTTP method."""
    return FaultRule(
        point=Point.TALOS,
        strike=Strike(drop=True),
        method=str(document.get("when", "before")),
        path=str(document["method"]),
        node=str(document.get("vmid", "*")),
        nth=int(document.get("nth", 0)),
        probability=float(document.get("probability", 1.0)),
        times=int(document.get("times", 0)),
    )


def check_address(_world: World, document: Document) -> None:
    """Refuse an address at which the lab cannot answer.

    Raises:
        PveError: It is none of this machine.
    """
    if not is_loopback(str(document["address"])):
        raise PveError("'address' must be in 127.0.0.0/8: the lab answers at no other", status=400)


def list_taken_addresses(store: Store) -> frozenset[tuple[str, int]]:
    """Return the addresses and ports at which another machine answers."""
    return frozenset(
        (str(document["address"]), int(document.get("port", _API_PORT)))
        for document in store.items(_COLLECTION).values()
        if document["kind"] == _TAKEN
    )
