"""Reading a store in a file: nothing is written, whatever the disk and the other processes do."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.processes import DROP_PRIVILEGES, folder_for_anybody, run_python

from stackyard.clients.objects import (
    ABSENT,
    ANYTHING,
    SqliteObjects,
    StoreDamagedError,
    StoreError,
    open_objects,
)

WRITER = """
import os, signal, sys
from pathlib import Path
from stackyard.clients.objects import ANYTHING, SqliteObjects
objects = SqliteObjects(Path(sys.argv[1]))
for number in range(40):
    objects.put(f"k/{number:02d}", b"x" * 10_000, expect=ANYTHING)
print("written", flush=True)
sys.stdin.readline()
objects.close() if sys.argv[2] == "closed" else os.kill(os.getpid(), signal.SIGKILL)
"""


@contextlib.contextmanager
def _full_disk() -> Iterator[None]:
    """Let no file of this process grow: the system itself refuses it, as with a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextlib.contextmanager
def _written(path: Path, how: str) -> Iterator[None]:
    """Have another process write a store: it still has it open, was killed, or closed it."""
    command = [sys.executable, "-c", WRITER, str(path), how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"written\n"
        if how != "open":
            writer.communicate(b"\n")
        yield
        if how == "open":
            writer.communicate(b"\n")


def _files(folder: Path) -> dict[str, bytes]:
    # The index of the log is memory that processes share, and not what is stored.
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")}


@pytest.mark.parametrize("how", ["open", "killed", "closed"])
def test_a_full_disk_is_read_and_nothing_is_made_on_it(tmp_path: Path, how: str) -> None:
    path = tmp_path / "x.sqlite"
    with _written(path, how):
        before = _files(tmp_path)
        with _full_disk():
            objects = SqliteObjects(path, create=False)
            assert [entry.key for entry in objects.list("k/")] == [f"k/{number:02d}" for number in range(40)]
            found = objects.get("k/07")
            assert _files(tmp_path) == before
            with pytest.raises(StoreError):
                objects.put("k/07", os.urandom(100_000), expect=ANYTHING)
            again = objects.get("k/07")
        assert found is not None
        assert found.data == b"x" * 10_000
        assert again == found
        # With room again, the same open store writes.
        objects.put("k/07", b"new", expect=found.tag)
        last = objects.get("k/07")
        assert last is not None
        assert last.data == b"new"
        objects.close()


@pytest.mark.parametrize("how", ["killed", "closed"])
def test_reading_changes_no_file(tmp_path: Path, how: str) -> None:
    path = tmp_path / "x.sqlite"
    with _written(path, how):
        before = _files(tmp_path)
        objects = SqliteObjects(path, create=False)
        assert len(objects.list("")) == 40
        objects.close()
        assert _files(tmp_path) == before


def test_a_folder_that_may_not_be_written_is_read() -> None:
    script = f"""
import os, sys
from pathlib import Path
from stackyard.clients.objects import ANYTHING, StoreReadOnlyError, open_objects
folder = Path(sys.argv[1])
objects = open_objects(folder)
objects.put("x", b"1", expect=ANYTHING)
objects.close()
(folder / "objects.sqlite").chmod(0o444)
folder.chmod(0o555)
{DROP_PRIVILEGES}
objects = open_objects(folder, create=False)
print(objects.get("x").data, os.listdir(folder))
try:
    objects.put("x", b"2", expect=ANYTHING)
except StoreReadOnlyError as err:
    print(err.code)
print(objects.get("x").data)
objects.close()
"""
    with folder_for_anybody() as folder:
        said = run_python(script, str(folder))
        folder.chmod(0o755)
    assert said == "b'1' ['objects.sqlite']\nE-STORE-READ-ONLY\nb'1'\n"


def test_a_reader_sees_what_others_write_while_it_is_open(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    with contextlib.closing(SqliteObjects(path)) as first:
        first.put("x", b"0", expect=ABSENT)
    reader = SqliteObjects(path, create=False)
    for number in range(1, 6):
        with contextlib.closing(SqliteObjects(path)) as writer:
            writer.put("x", b"%d" % number, expect=ANYTHING)
            beside = reader.get("x")
        after = reader.get("x")
        assert beside is not None
        assert after is not None
        assert (beside.data, after.data) == (b"%d" % number,) * 2
    reader.close()


def test_a_reader_beside_writers_that_come_and_go_never_sees_damage(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    SqliteObjects(path).close()
    is_over = threading.Event()

    def write() -> None:
        for number in range(30):
            with contextlib.closing(SqliteObjects(path)) as writer:
                writer.put("a", b"%d" % number * 5000, expect=ANYTHING, before={"b": b"%d" % number})
        is_over.set()

    writing = threading.Thread(target=write)
    writing.start()
    seen = 0
    reader = SqliteObjects(path, create=False)
    while not is_over.is_set():
        found = reader.get("b")
        number = -1 if found is None else int(found.data)
        assert number >= seen - 1
        seen = max(seen, number)
    writing.join()
    found = reader.get("b")
    assert found is not None
    assert found.data == b"29"
    reader.close()


def test_a_second_store_of_a_process_does_not_cost_the_first_one_its_writes(tmp_path: Path) -> None:
    other = (
        "import sys; from pathlib import Path; from stackyard.clients.objects import *;"
        "objects = SqliteObjects(Path(sys.argv[1])); objects.put(sys.argv[2], b'', expect=ANYTHING);"
        "print([entry.key for entry in objects.list('')]); objects.close()"
    )
    path = tmp_path / "x.sqlite"
    first = SqliteObjects(path)
    first.put("a", b"", expect=ABSENT)
    second = SqliteObjects(path)
    second.close()
    # Whoever closes a store last throws its log away: it must not take itself for the last.
    assert run_python(other, str(path), "b") == "['a', 'b']\n"
    first.put("c", b"", expect=ABSENT)
    assert run_python(other, str(path), "d") == "['a', 'b', 'c', 'd']\n"
    assert [entry.key for entry in first.list("")] == ["a", "b", "c", "d"]
    first.close()


def test_a_store_whose_maker_was_stopped_at_once_is_empty_and_one_of_something_else_is_refused(
    tmp_path: Path,
) -> None:
    (tmp_path / "x.sqlite").touch()
    objects = SqliteObjects(tmp_path / "x.sqlite", create=False)
    assert (objects.get("x"), objects.list("")) == (None, ())
    objects.put("x", b"1", expect=ABSENT)
    assert len(objects.list("")) == 1
    objects.close()
    (tmp_path / "y.sqlite").write_bytes(b"no database at all\n" * 100)
    with pytest.raises(StoreDamagedError):
        SqliteObjects(tmp_path / "y.sqlite", create=False)


def test_a_store_that_is_opened_to_write_on_a_full_disk_can_be_read_until_there_is_room(
    tmp_path: Path,
) -> None:
    with contextlib.closing(open_objects(tmp_path)) as objects:
        objects.put("x", b"1", expect=ABSENT)
    with _full_disk():
        objects = open_objects(tmp_path)
        found = objects.get("x")
        with pytest.raises(StoreError):
            objects.put("x", b"2", expect=ANYTHING)
        with pytest.raises(StoreError):
            open_objects(tmp_path / "new")
    assert found is not None
    objects.put("x", b"2", expect=found.tag)
    objects.close()


def test_a_store_that_exists_is_not_written_by_opening_it(tmp_path: Path) -> None:
    with contextlib.closing(open_objects(tmp_path)) as objects:
        objects.put("x", b"1", expect=ABSENT)
    before = (tmp_path / "objects.sqlite").read_bytes()
    open_objects(tmp_path).close()
    assert (tmp_path / "objects.sqlite").read_bytes() == before
