"""How the written SDN configuration differs from the one in force."""

from __future__ import annotations

from typing import Any

import pytest

from pvelab.api.cluster.sdn.applied import (
    commit,
    has_pending_changes,
    list_pending,
    read_applied,
    read_applied_version,
    roll_back,
)
from pvelab.world.store import Store

ZONE = {"type": "simple", "mtu": 1400, "nodes": "a,b"}


@pytest.mark.parametrize(
    ("written", "in_force", "entry"),
    [
        (ZONE, ZONE, ZONE),
        (ZONE, None, {"type": "simple", "state": "new", "pending": {"mtu": 1400, "nodes": "a,b"}}),
        (None, ZONE, {**ZONE, "state": "deleted", "pending": {}}),
        ({**ZONE, "mtu": 1300}, ZONE, {**ZONE, "state": "changed", "pending": {"mtu": 1300}}),
        ({**ZONE, "ipam": "pve"}, ZONE, {**ZONE, "state": "changed", "pending": {"ipam": "pve"}}),
        (
            {"type": "simple", "mtu": 1400},
            ZONE,
            {**ZONE, "state": "changed", "pending": {"nodes": "deleted"}},
        ),
        ({"type": "simple"}, None, {"type": "simple", "state": "new", "pending": {}}),
        ({"dhcp-range": ["b", "a"]}, {"dhcp-range": ["a", "b"]}, {"dhcp-range": ["a", "b"]}),
    ],
)
def test_an_object_shows_what_is_in_force_and_what_waits(
    written: dict[str, Any] | None, in_force: dict[str, Any] | None, entry: dict[str, Any]
) -> None:
    found = list_pending(
        {} if written is None else {"z": written}, {} if in_force is None else {"z": in_force}
    )
    assert found == {"z": entry}


def test_a_commit_puts_in_force_and_a_roll_back_takes_back() -> None:
    store = Store()
    with store.transaction():
        store.put("sdn_zones", "z1", ZONE)
        assert has_pending_changes(store)
        commit(store)
        assert not has_pending_changes(store)
        store.put("sdn_zones", "z1", {"type": "simple"})
        store.put("sdn_zones", "z2", ZONE)
        roll_back(store)
    assert dict(store.items("sdn_zones")) == {"z1": ZONE} == read_applied(store, "zones")
    assert read_applied_version(store) == 1
