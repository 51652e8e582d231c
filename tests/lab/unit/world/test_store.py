"""Transactions of the lab's store: whole or not at all, in memory and on disk."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.processes import open_descriptors

from pvelab.world.sqlite import DataFolderBusyError, DataFolderError, SqliteDisk
from pvelab.world.store import Store
from stackyard.base.errors import InternalError


class FailedError(Exception):
    """What a transaction fails with here."""


def fail_after(store: Store, change: Callable[[], None]) -> None:
    """Make a change in a transaction that fails at its end."""
    with contextlib.suppress(FailedError), store.transaction():
        change()
        raise FailedError


def test_a_failed_transaction_leaves_no_trace_in_memory_and_on_disk(tmp_path: Path) -> None:
    store = Store(SqliteDisk(tmp_path / "lab.sqlite"))
    with store.transaction():
        store.put("guests", "100", {"name": "old"})

    def change() -> None:
        store.put("guests", "100", {"name": "new"})
        store.put("guests", "101", {"name": "other"})
        store.delete("guests", "100")

    fail_after(store, change)
    assert dict(store.items("guests")) == {"100": {"name": "old"}}
    store.close()
    again = Store(SqliteDisk(tmp_path / "lab.sqlite"))
    assert dict(again.items("guests")) == {"100": {"name": "old"}}
    again.close()


def test_a_change_outside_a_transaction_is_refused() -> None:
    with pytest.raises(InternalError, match="outside a transaction"):
        Store().put("guests", "100", {})


def test_an_inner_transaction_joins_the_outer_one() -> None:
    store = Store()

    def change() -> None:
        with store.transaction():
            store.put("guests", "100", {})

    fail_after(store, change)
    assert store.get("guests", "100") is None


async def test_a_transaction_left_open_across_an_await_is_noticed() -> None:
    store = Store()

    async def careless() -> None:
        with store.transaction():
            await asyncio.sleep(0)

    first = asyncio.create_task(careless())
    await asyncio.sleep(0)
    with pytest.raises(InternalError, match="across an await"), store.transaction():
        pass
    await first


def test_an_index_follows_changes_and_their_undoing() -> None:
    store = Store()
    index = store.index("guests", "node")
    with store.transaction():
        store.put("guests", "100", {"node": "a"})
        store.put("guests", "101", {"node": "b"})

    def change() -> None:
        store.put("guests", "100", {"node": "b"})
        store.delete("guests", "101")

    fail_after(store, change)
    assert list(index.find("a")) == ["100"]
    assert list(index.find("b")) == ["101"]
    with store.transaction():
        store.delete("guests", "100")
    assert list(index.find("a")) == []


def test_an_edited_document_is_a_copy_until_the_block_ends() -> None:
    store = Store()
    with store.transaction():
        store.put("pools", "p", {"members": [1]})
        with store.edit("pools", "p") as pool:
            pool["members"].append(2)
            assert store.get("pools", "p") == {"members": [1]}
    assert store.get("pools", "p") == {"members": [1, 2]}


def test_actions_after_a_transaction_happen_only_if_it_is_kept() -> None:
    store, happened = Store(), []
    with store.transaction():
        store.after_commit(lambda: happened.append("kept"))
        assert happened == []
    fail_after(store, lambda: store.after_commit(lambda: happened.append("undone")))
    assert happened == ["kept"]


def test_a_dump_brings_everything_back(tmp_path: Path) -> None:
    store = Store(SqliteDisk(tmp_path / "lab.sqlite"))
    with store.transaction():
        store.put("guests", "100", {"name": "a"})
    content = store.dump()
    with store.transaction():
        store.put("guests", "100", {"name": "b"})
        store.put("guests", "101", {"name": "c"})
        store.put("pools", "p", {})
    store.replace_all(content)
    assert store.dump() == content
    store.close()
    again = Store(SqliteDisk(tmp_path / "lab.sqlite"))
    assert again.dump() == content
    again.close()


def test_a_second_lab_on_the_same_folder_is_kept_out(tmp_path: Path) -> None:
    first = SqliteDisk(tmp_path / "lab.sqlite")
    before = len(open_descriptors())
    with pytest.raises(DataFolderBusyError) as refused:
        SqliteDisk(tmp_path / "lab.sqlite")
    first.close()
    assert len(open_descriptors()) < before, refused.value
    SqliteDisk(tmp_path / "lab.sqlite").close()


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lab.sqlite"
    path.write_text("not a database at all, but long enough to look like one" * 40)
    before = open_descriptors()
    with pytest.raises(DataFolderError, match=r"lab\.sqlite") as refused:
        SqliteDisk(path)
    assert open_descriptors() == before, refused.value
