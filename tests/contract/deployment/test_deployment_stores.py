"""What every store of the object promises: memory, SQLite, and a bucket of a real SeaweedFS."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.deployment_bucket import new_bucket
from tests.support.seaweed import require_seaweed

from stackyard.clients.objects import MemoryObjects, SqliteObjects
from stackyard.sources.deployment.embedded import EmbeddedStore
from stackyard.sources.deployment.store import (
    MovedError,
    Store,
    UnversionedError,
    VersionAuthor,
    VersionUnknownError,
    choose_version,
)

pytestmark = pytest.mark.timeout(180)


@dataclass
class Stores:
    """A store that can be opened several times, as by several sessions."""

    open: Callable[[], Store]


@pytest.fixture(params=["memory", "sqlite", "seaweedfs"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    opened: list[Store] = []
    memory = MemoryObjects()
    if request.param == "memory":
        make: Callable[[], Store] = lambda: EmbeddedStore(memory, "memory")  # noqa: E731
    elif request.param == "sqlite":
        make = lambda: EmbeddedStore(SqliteObjects(tmp_path / "o.sqlite"), "sqlite")  # noqa: E731
    else:
        bucket = new_bucket(require_seaweed())
        make = bucket.store

    def open_one() -> Store:
        opened.append(make())
        return opened[-1]

    yield Stores(open_one)
    for store in opened:
        store.close()


def test_a_store_that_works_says_that_there_is_no_object(stores: Stores) -> None:
    store = stores.open()
    assert store.read() is None
    assert list(store.history()) == []


def test_what_was_written_is_read_whole_by_every_session(stores: Stores) -> None:
    first, second = stores.open(), stores.open()
    data = '{"a": "ü 🦊"}\n'.encode()
    written = first.write(data, replaces=None, authored=VersionAuthor(by="me", note="first: ü", kind="put"))
    found = second.read()
    assert found is not None
    assert found.data == data
    assert found.version.id == written.id
    assert found.version.etag == written.etag
    assert found.version.authored == VersionAuthor(by="me", note="first: ü", kind="put")
    assert found.version.is_current


def test_a_first_version_is_written_only_where_there_is_none(stores: Stores) -> None:
    store, other = stores.open(), stores.open()
    store.write(b"1", replaces=None, authored=VersionAuthor())
    with pytest.raises(MovedError):
        other.write(b"2", replaces=None, authored=VersionAuthor())
    found = store.read()
    assert found is not None
    assert found.data == b"1"


def test_a_version_is_written_only_over_the_one_that_was_read(stores: Stores) -> None:
    store, other = stores.open(), stores.open()
    first = store.write(b"1", replaces=None, authored=VersionAuthor())
    second = other.write(b"2", replaces=first, authored=VersionAuthor())
    with pytest.raises(MovedError) as caught:
        store.write(b"3", replaces=first, authored=VersionAuthor())
    assert (caught.value.read, caught.value.there) == (first.etag, second.etag)
    found = store.read()
    assert found is not None
    assert found.data == b"2"


def test_every_version_stays_and_can_be_read(stores: Stores) -> None:
    store = stores.open()
    last = None
    for number in range(4):
        last = store.write(f"{number}".encode(), replaces=last, authored=VersionAuthor(note=f"n{number}"))
    history = list(store.history())
    assert [one.authored.note for one in history] == ["n3", "n2", "n1", "n0"]
    assert [one.is_current for one in history] == [True, False, False, False]
    assert [store.read_version(one).data for one in history] == [b"3", b"2", b"1", b"0"]
    assert len({one.id for one in history}) == 4


def test_a_version_is_named_by_its_id_its_beginning_or_its_distance(stores: Stores) -> None:
    store = stores.open()
    first = store.write(b"1", replaces=None, authored=VersionAuthor())
    second = store.write(b"2", replaces=first, authored=VersionAuthor())
    assert choose_version(store, "@0").id == second.id
    assert choose_version(store, "@1").id == first.id
    assert choose_version(store, first.id).id == first.id
    for said in ("@2", "nope", ""):
        with pytest.raises(VersionUnknownError):
            choose_version(store, said)


def test_of_many_writers_at_once_each_version_has_one(stores: Stores) -> None:
    base = stores.open().write(b"0", replaces=None, authored=VersionAuthor())
    sessions = [stores.open() for _ in range(8)]
    won: list[str] = []
    lost: list[str] = []
    start = threading.Barrier(len(sessions))

    def write(number: int) -> None:
        start.wait()
        try:
            sessions[number].write(f"w{number}".encode(), replaces=base, authored=VersionAuthor())
            won.append(f"w{number}")
        except MovedError:
            lost.append(f"w{number}")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(len(sessions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 7)
    found = stores.open().read()
    assert found is not None
    assert found.data.decode() == won[0]
    assert len(list(stores.open().history())) == 2


def test_the_current_object_in_a_bucket_is_plain_json_for_every_program() -> None:
    bucket = new_bucket(require_seaweed())
    store = bucket.store()
    first = store.write(b'{"a": 1}', replaces=None, authored=VersionAuthor())
    client = bucket.client()
    assert client.get_object(Bucket=bucket.name, Key=bucket.key)["Body"].read() == b'{"a": 1}'
    client.put_object(Bucket=bucket.name, Key=bucket.key, Body=b'{"a": 2}')
    found = store.read()
    assert found is not None
    assert (found.data, found.version.authored) == (b'{"a": 2}', VersionAuthor())
    assert len(list(store.history())) == 2
    with pytest.raises(MovedError):
        store.write(b'{"a": 3}', replaces=first, authored=VersionAuthor())
    # What the check of conditions wrote is gone without a trace.
    assert client.list_object_versions(Bucket=bucket.name, Prefix="checks/").get("Versions", []) == []
    client.close()
    store.close()


def test_a_bucket_that_keeps_no_versions_is_not_written() -> None:
    bucket = new_bucket(require_seaweed(), keeps_versions=False)
    store = bucket.store()
    with pytest.raises(UnversionedError):
        store.write(b"{}", replaces=None, authored=VersionAuthor())
    assert store.read() is None
    store.close()
