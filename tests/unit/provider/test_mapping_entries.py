"""Entries of mappings, as the texts that Proxmox has for them."""

from __future__ import annotations

import pytest

from stackyard.provider.resources.hardware_mapping.entries import parse_entry, print_entry

NOTHING = dict.fromkeys(("id", "node", "path", "comment", "iommu_group", "subsystem_id"))


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"node": "pve1", "path": "/srv/a b"}, "node=pve1,path=/srv/a b"),
        ({"id": "8086:1521", "node": "pve1", "iommu_group": 0}, "id=8086:1521,node=pve1,iommugroup=0"),
        ({"node": "n", "subsystem_id": "10de:0001"}, "node=n,subsystem-id=10de:0001"),
        ({"node": "n", "comment": "50% of é"}, "node=n,description=50%25 of %C3%A9"),
    ],
)
def test_an_entry_is_read_as_it_was_written(entry: dict[str, object], text: str) -> None:
    assert print_entry(entry) == text
    assert parse_entry(text) == {**NOTHING, **entry}


def test_a_comment_that_was_never_encoded_is_read_as_it_is() -> None:
    assert parse_entry("node=n,description=by %FF hand")["comment"] == "by %FF hand"
