"""The block of backups of storages, and what a configuration may say in it."""

from __future__ import annotations

from typing import Any

import pytest

from stackyard.provider.resources.storage.backups import check_backups, print_retention, read_backups


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"keep_all": True}, "keep-all=1"),
        ({"keep_daily": 7, "keep_last": 0}, "keep-last=0,keep-daily=7"),
        ({"keep_yearly": 1}, "keep-yearly=1"),
    ],
)
def test_what_is_kept_is_read_as_it_was_written(block: dict[str, Any], text: str) -> None:
    assert print_retention(block) == text
    read = read_backups({"prune-backups": text, "max-protected-backups": "-1"})
    shown = {name: value for name, value in read.items() if value is not None}
    assert shown == {"keep_all": False, "max_protected_backups": -1, **block}


def test_a_block_that_says_nothing_sets_nothing() -> None:
    assert print_retention({"keep_all": False, "max_protected_backups": 3}) is None
    assert read_backups({})["max_protected_backups"] is None


def test_keep_all_and_counts_exclude_each_other() -> None:
    found = check_backups({"backups": {"keep_all": True, "keep_last": 1, "keep_daily": 2}})
    assert [problem.path for problem in found] == [("backups", "keep_last"), ("backups", "keep_daily")]
    assert not list(check_backups({"backups": {"keep_all": False, "keep_last": 1}}))
    assert not list(check_backups({"backups": None}))
