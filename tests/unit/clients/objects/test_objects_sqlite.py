"""The store in one file: who may read it, what it refuses to open, and what it says when it cannot work."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

import pytest
from tests.support.processes import DROP_PRIVILEGES, folder_for_anybody, open_descriptors, run_python

from stackyard.base.errors import ExitStatus
from stackyard.clients.objects import (
    ABSENT,
    ANYTHING,
    ConflictError,
    SqliteObjects,
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    open_objects,
)


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    objects = open_objects(tmp_path / "new" / "store")
    objects.put("x", b"secret", expect=ABSENT)
    made = [tmp_path / "new", tmp_path / "new" / "store", *(tmp_path / "new" / "store").iterdir()]
    assert [path for path in made if path.stat().st_mode & 0o077] == []
    assert len(made) == 5
    objects.close()


@pytest.mark.parametrize("content", [b"no database at all\n" * 100, b"SQLite format 3\x00" + b"\xff" * 4096])
def test_a_file_that_is_no_store_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.sqlite"
    path.write_bytes(content)
    with pytest.raises(StoreDamagedError) as caught:
        SqliteObjects(path)
    assert caught.value.exit_status is ExitStatus.UNREACHABLE
    assert path.read_bytes() == content


def test_a_database_of_something_else_and_one_of_a_newer_stackyard_are_refused(tmp_path: Path) -> None:
    foreign = sqlite3.connect(tmp_path / "foreign.sqlite")
    foreign.execute("CREATE TABLE mine (x)")
    foreign.commit()
    foreign.close()
    with pytest.raises(StoreDamagedError, match="something else"):
        SqliteObjects(tmp_path / "foreign.sqlite")
    SqliteObjects(tmp_path / "newer.sqlite").close()
    newer = sqlite3.connect(tmp_path / "newer.sqlite")
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(StoreDamagedError, match="newer stackyard"):
        SqliteObjects(tmp_path / "newer.sqlite")


def test_a_store_that_another_process_makes_meanwhile_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.sqlite"
    connect = SqliteObjects._connect
    others: list[SqliteObjects] = []

    def make_meanwhile(statement: str) -> None:
        # The last look at what the file holds: the tables of another appear just before it.
        if "count(*)" in statement and not others:
            monkeypatch.setattr(SqliteObjects, "_connect", connect)
            others.append(SqliteObjects(path))

    def connect_and_watch(self: SqliteObjects) -> sqlite3.Connection:
        connection = connect(self)
        connection.set_trace_callback(make_meanwhile)
        return connection

    monkeypatch.setattr(SqliteObjects, "_connect", connect_and_watch)
    objects = SqliteObjects(path)
    assert len(others) == 1
    others[0].put("x", b"1", expect=ABSENT)
    stored = objects.get("x")
    assert stored is not None
    assert stored.data == b"1"
    for store in (objects, *others):
        store.close()


def test_a_store_that_must_exist_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store"):
        open_objects(tmp_path / "missing", create=False)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StoreError):
        SqliteObjects(tmp_path / "no" / "folder" / "x.sqlite")


def test_a_folder_that_may_not_be_written_is_said_to_be_so() -> None:
    script = f"""
import os, sys
from pathlib import Path
from stackyard.clients.objects import StoreReadOnlyError, SqliteObjects
{DROP_PRIVILEGES}
try:
    SqliteObjects(Path(sys.argv[1]) / "x.sqlite")
except StoreReadOnlyError as err:
    print(err.code)
"""
    with folder_for_anybody() as folder:
        # Its owner runs the script where we are not root.
        folder.chmod(0o555)
        assert run_python(script, str(folder)) == "E-STORE-READ-ONLY\n"


def test_a_store_that_is_read_only_can_be_read_and_not_written(tmp_path: Path) -> None:
    objects = SqliteObjects(tmp_path / "x.sqlite")
    objects.put("x", b"1", expect=ABSENT)
    objects._writer.execute("PRAGMA query_only = ON")
    with pytest.raises(StoreReadOnlyError):
        objects.put("x", b"2", expect=ANYTHING)
    found = objects.get("x")
    assert found is not None
    assert found.data == b"1"
    objects.close()


def test_a_full_database_keeps_what_it_has(tmp_path: Path) -> None:
    objects = SqliteObjects(tmp_path / "x.sqlite")
    tag = objects.put("x", b"1", expect=ABSENT)
    objects._writer.execute("PRAGMA max_page_count = 20")
    with pytest.raises(StoreFullError):
        objects.put("x", os.urandom(200_000), expect=tag, before={"body": os.urandom(100)})
    found = objects.get("x")
    assert found is not None
    assert (found.data, found.tag, objects.get("body")) == (b"1", tag, None)
    objects.put("x", b"2", expect=tag)
    objects.close()


def test_another_process_that_keeps_the_file_busy_is_waited_for_and_then_named(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    objects = SqliteObjects(path, busy_timeout_s=0.1)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusyError) as caught:
        objects.put("x", b"1", expect=ABSENT)
    assert caught.value.exit_status is ExitStatus.BUSY
    other.execute("ROLLBACK")
    objects.put("x", b"1", expect=ABSENT)
    other.close()
    objects.close()


def test_writes_that_wait_for_each_other_share_a_commit_and_each_learns_its_own_end(tmp_path: Path) -> None:
    objects = SqliteObjects(tmp_path / "x.sqlite")
    objects.put("taken", b"", expect=ABSENT)
    refused: list[str] = []

    def write(number: int) -> None:
        try:
            key = "taken" if number % 2 else f"k{number}"
            objects.put(key, b"x", expect=ABSENT)
        except ConflictError as err:
            refused.append(err.key)

    with objects._write_lock:
        threads = [threading.Thread(target=write, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        while len(objects._waiting) < 20:
            threading.Event().wait(0.001)
        before = objects._writer.total_changes
    for thread in threads:
        thread.join()
    assert refused == ["taken"] * 10
    assert len(objects.list("k")) == 10
    # Two rows a write: the object and the last tag.
    assert objects._writer.total_changes - before == 20
    objects.close()


def test_a_file_that_was_replaced_is_not_taken_for_an_empty_store(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    objects = SqliteObjects(path)
    objects.put("x", b"1", expect=ABSENT)
    path.rename(tmp_path / "away.sqlite")
    with pytest.raises(StoreError, match="gone"):
        objects.get("x")
    SqliteObjects(path).close()
    for action in (
        lambda: objects.get("x"),
        lambda: objects.put("x", b"", expect=ANYTHING),
        lambda: objects.list(""),
    ):
        with pytest.raises(StoreError, match="no longer"):
            action()
    objects.close()


def test_a_thread_that_has_ended_leaves_no_connection_open(tmp_path: Path) -> None:
    objects = SqliteObjects(tmp_path / "x.sqlite")
    objects.put("x", b"1", expect=ABSENT)

    def read() -> None:
        assert objects.get("x") is not None

    held = []
    for _ in range(10):
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
        held.append(len(open_descriptors()))
    objects.close()
    assert held == [held[0]] * 10


def test_a_file_that_is_refused_is_not_held_open(tmp_path: Path) -> None:
    foreign = sqlite3.connect(tmp_path / "foreign.sqlite")
    foreign.execute("CREATE TABLE t (x)")
    foreign.close()
    (tmp_path / "text.sqlite").write_bytes(b"just text, of some length" * 100)
    before = open_descriptors()
    for name in ("foreign", "text"):
        with pytest.raises(StoreDamagedError) as refused:
            SqliteObjects(tmp_path / f"{name}.sqlite")
        assert open_descriptors() == before, refused.value
