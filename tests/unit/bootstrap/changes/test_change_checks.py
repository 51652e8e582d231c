"""Checks before a cluster is changed: ways of upgrades, and snapshots that are whole."""

from __future__ import annotations

import hashlib

import pytest

from pvelab.talos.etcd_snapshot import make_snapshot
from stackyard.bootstrap.changes.snapshot import SnapshotDamagedError, check_snapshot
from stackyard.bootstrap.changes.upgrade import UpgradePathError, check_path

ALLOWED = [("1.12.1", "1.12.1"), ("1.12.9", "1.12.1"), ("1.12.9", "1.13.0")]
REFUSED = [("1.12.1", "1.14.0"), ("1.13.0", "1.12.9"), ("1.12.1", "2.13.0")]


@pytest.mark.parametrize(("before", "after"), ALLOWED)
def test_an_upgrade_goes_to_the_same_or_the_next_minor_version(before: str, after: str) -> None:
    check_path(before, after)


@pytest.mark.parametrize(("before", "after"), REFUSED)
def test_other_ways_are_refused(before: str, after: str) -> None:
    with pytest.raises(UpgradePathError):
        check_path(before, after)


def test_only_a_whole_snapshot_passes() -> None:
    whole = make_snapshot({"a": {"b": 1}})
    check_snapshot(whole, "x")
    other = b"\0" * 1024
    flipped = bytes([whole[0] ^ 1]) + whole[1:]
    with_digest = [content + hashlib.sha256(content).digest() for content in (b"", other)]
    for damaged in (b"", whole[:-1], whole[:-32], flipped, *with_digest):
        with pytest.raises(SnapshotDamagedError):
            check_snapshot(damaged, "x")
