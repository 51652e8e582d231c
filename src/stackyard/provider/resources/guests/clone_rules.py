"""What the attributes of a clone may be, and what contradicts itself in one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.provider.checks import at_least, between, matches, one_of
from stackyard.provider.problems import Problem
from stackyard.provider.resources.guests.rules import RULES as SHARED
from stackyard.provider.resources.guests.rules import keys_match
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stackyard.provider.values import Object

__all__ = ["RULES", "validate"]

_CARDS, _CARD_SLOTS = r"net\d+", "net0, net1, ..."
_DISKS, _DISK_SLOTS = r"ide[0-3]|sata[0-5]|scsi\d+|virtio\d+", "ide0-3, sata0-5, scsi0, virtio0, ..."
_MOST_MEMORY = 268435456
_NOT_EMPTY = matches(r"(?s:.+)", "not be empty")


def _are_slots(pattern: str, expected: str) -> Callable[[Any], str | None]:
    compiled = re.compile(pattern)

    def check(value: Any) -> str | None:
        wrong = [one for one in value if isinstance(one, str) and not compiled.fullmatch(one)]
        return f"names slots ({expected}), and {wrong[0]!r} is none" if wrong else None

    return check


def _are_vlans(value: Any) -> str | None:
    wrong = [one for one in value if isinstance(one, int) and not 1 <= one <= 4094]
    return f"has VLANs from 1 to 4094, and {wrong[0]} is none" if wrong else None


def validate(config: Object) -> Iterator[Problem]:
    """Give what is wrong with a clone as a whole: a slot cannot be set and taken away."""
    gone = config.get("delete")
    if not isinstance(gone, dict):
        return
    for name, places in (("network", ("network",)), ("disk", ("disk", "cdrom"))):
        slots = gone.get(name)
        for place in places:
            kept = config.get(place)
            kept_slots: dict[str, Any] = kept if isinstance(kept, dict) else {}
            for slot in slots if isinstance(slots, list) else ():
                if slot in kept_slots:
                    yield Problem(
                        path=("delete", name),
                        detail=f"`delete.{name}` names {slot}, which `{place}` sets. Take it out of one.",
                    )


RULES = {
    **SHARED,
    "clone.bandwidth_limit": Rule(replace=True),
    "clone.full": Rule(default=True, replace=True),
    "clone.pool_id": Rule(replace=True),
    "clone.retries": Rule(default=3, replace=True, check=between(1, 10)),
    "clone.snapshot_name": Rule(replace=True),
    "clone.source_node_name": Rule(replace=True),
    "clone.source_vm_id": Rule(replace=True, check=at_least(1)),
    "clone.target_datastore": Rule(replace=True),
    "clone.target_format": Rule(replace=True),
    "delete.disk": Rule(check=_are_slots(_DISKS, _DISK_SLOTS)),
    "delete.network": Rule(check=_are_slots(_CARDS, _CARD_SLOTS)),
    "delete_unreferenced_disks_on_destroy": Rule(default=False),
    "disk": Rule(check=keys_match(_DISKS, f"slots ({_DISK_SLOTS})")),
    "disk.file": Rule(check=_NOT_EMPTY),
    "disk.size_gb": Rule(check=between(1, 10240)),
    "memory.balloon": Rule(check=between(0, _MOST_MEMORY)),
    "memory.hugepages": Rule(check=one_of("2", "1024", "any")),
    "memory.shares": Rule(check=between(0, 50000)),
    "memory.size": Rule(check=between(64, _MOST_MEMORY)),
    "network": Rule(check=keys_match(_CARDS, f"slots ({_CARD_SLOTS})")),
    "network.mac_address": Rule(
        check=matches(r"(?i:[0-9a-f]{2}(:[0-9a-f]{2}){5})", "be a MAC address such as BC:24:11:00:00:01")
    ),
    "network.model": Rule(check=_NOT_EMPTY),
    "network.mtu": Rule(check=between(576, 9216)),
    "network.queues": Rule(check=between(0, 16)),
    "network.rate_limit": Rule(fraction=True),
    "network.tag": Rule(check=between(1, 4094)),
    "network.trunks": Rule(check=_are_vlans),
    "node_name": Rule(replace=True, check=_NOT_EMPTY),
    "started": Rule(default=True),
}
