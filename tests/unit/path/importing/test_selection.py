"""Filters mean guests by what they are; all of them have to hold, and one that means nobody is said."""

from __future__ import annotations

from typing import Any

import pytest

from stackyard.base.errors import InvalidInputError, UsageError
from stackyard.path.importing.selection import choose, parse_filter

ROWS: list[dict[str, Any]] = [
    {"vmid": 201, "name": "docker", "node": "pve2", "type": "lxc", "pool": "home"},
    {"vmid": 100, "name": "web-1", "node": "pve1", "type": "qemu", "tags": "prod;web"},
    {"vmid": 101, "name": "web-2", "node": "pve2", "type": "qemu", "tags": "test;web", "pool": "home"},
    {"vmid": 1000, "name": "100", "node": "pve1", "type": "qemu"},
]


def meant(*texts: str) -> list[int]:
    return [row["vmid"] for row in choose(ROWS, [parse_filter(text) for text in texts])]


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ((), [100, 101, 201, 1000]),
        (("web-*",), [100, 101]),
        (("web-?,docker",), [100, 101, 201]),
        (("100",), [100]),
        (("100-201",), [100, 101, 201]),
        (("tag=prod",), [100]),
        (("tag=*",), [100, 101]),
        (("pool=home",), [101, 201]),
        (("type=ct",), [201]),
        (("type=vm", "node=pve2"), [101]),
        (("node=pve1,node=pve2", "web-*", "tag=test"), [101]),
        (("type=ct", "tag=web"), []),
    ],
)
def test_guests_are_meant_by_what_they_are(filters: tuple[str, ...], wanted: list[int]) -> None:
    assert meant(*filters) == wanted


def test_every_alternative_that_means_nobody_is_said() -> None:
    with pytest.raises(InvalidInputError) as raised:
        meant("web-1,wbe-2", "pool=none", "300-400")
    details = [found.detail for found in raised.value.diagnostics]
    assert [detail.rpartition("by ")[2] for detail in details] == ["`wbe-2`.", "`pool=none`.", "`300-400`."]


@pytest.mark.parametrize("text", ["", "web,", "owner=anna", "type=lxc"])
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_filter(text)


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ("web-1", True),
        ("100", True),
        ("docker,web-1", True),
        ("web-*", False),
        ("100-101", False),
        ("tag=web", False),
    ],
)
def test_only_a_name_or_an_id_means_one_guest_for_certain(text: str, is_named: bool) -> None:
    assert parse_filter(text).names(ROWS[1]) is is_named
