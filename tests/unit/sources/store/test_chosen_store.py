"""The store of a site: opened once, read without a trace, and not exchanged while it holds states."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from pathlib import Path

import pytest
from tests.support.postgres import Postgres, new_schema, postgres
from tests.support.state_client import state_body

from stackyard.clients.objects import ABSENT, MemoryObjects, Objects, open_objects, watch
from stackyard.clients.objects.sealed import MasterKey, make_master_key
from stackyard.sources.store import ChosenStore, StoreMovedError, StoreSwitchedError, read_identity
from stackyard.sources.store.chosen import RING_VARIABLE
from stackyard.sources.store.identity import change_identity
from stackyard.sources.store.last_used import note_last, read_last
from stackyard.sources.store.pool import close_pooled, open_pooled
from stackyard.state import Actor, StateService

__all__ = ["postgres"]

ME = Actor(principal="tests")


def write_state(store: ChosenStore) -> None:
    with contextlib.closing(store.open()) as objects:
        change_identity(objects, lambda now: now)
        StateService(objects).contents.write("env/a/lab", state_body(1), ME)


def test_an_embedded_store_that_is_not_there_is_empty_and_stays_away(tmp_path: Path) -> None:
    store = ChosenStore(base=tmp_path / ".stackyard")
    with contextlib.closing(store.read()) as objects:
        assert objects.list("") == ()
        assert read_identity(objects) is None
    assert not store.base.exists()
    assert (store.is_shared, store.label) == (False, str(tmp_path / ".stackyard" / "state"))


def test_a_store_that_was_moved_is_neither_read_nor_written(tmp_path: Path) -> None:
    store = ChosenStore(base=tmp_path / ".stackyard")
    with contextlib.closing(store.open()) as objects:
        change_identity(objects, lambda now: dataclasses.replace(now, moved_to="s3://bucket/new"))
    for use in (store.open, store.read):
        with pytest.raises(StoreMovedError, match="s3://bucket/new"):
            use()
    store.open_as_is().close()


def test_a_store_is_encrypted_as_a_whole_where_the_environment_has_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = make_master_key()
    monkeypatch.setenv(RING_VARIABLE, text)
    store = ChosenStore(base=tmp_path / ".stackyard")
    write_state(store)
    kept = b"".join(path.read_bytes() for path in store.folder.iterdir() if path.is_file())
    assert b"terraform_data" not in kept
    with contextlib.closing(store.read()) as objects:
        assert StateService(objects).contents.read("env/a/lab") is not None
    assert MasterKey.from_text(text).id


def test_another_store_is_refused_while_the_embedded_one_holds_states(
    tmp_path: Path, postgres: Postgres
) -> None:
    embedded = ChosenStore(base=tmp_path / ".stackyard")
    shared = dataclasses.replace(embedded, address=postgres.address(new_schema()), chosen_by="site.yaml")
    write_state(embedded)
    with pytest.raises(StoreSwitchedError, match=r"site\.yaml") as refused:
        shared.open()
    assert f"stackyard store move {embedded.folder} '{shared.address}'" in refused.value.remedy
    with contextlib.closing(embedded.open_as_is()) as objects:
        change_identity(objects, lambda now: dataclasses.replace(now, moved_to=shared.label))
    shared.open().close()
    assert read_last(shared.base) == shared.address


def test_a_shared_store_is_left_only_when_it_holds_no_states(tmp_path: Path, postgres: Postgres) -> None:
    base = tmp_path / ".stackyard"
    first, second = (ChosenStore(base=base, address=postgres.address(new_schema())) for _ in range(2))
    write_state(first)
    for other in (second, ChosenStore(base=base)):
        with pytest.raises(StoreSwitchedError):
            other.open()
    # By another address of the same store nothing is elsewhere.
    again = dataclasses.replace(first, address=str(first.address).replace("127.0.0.1", "localhost"))
    again.open().close()
    first.open().close()


def test_a_store_before_that_cannot_be_asked_is_named_with_the_way_out(
    tmp_path: Path, postgres: Postgres
) -> None:
    base = tmp_path / ".stackyard"
    gone = ChosenStore(base=base, address="postgresql://me@127.0.0.1:1/gone?connect_timeout=2")
    note_last(gone)
    shared = ChosenStore(base=base, address=postgres.address(new_schema()))
    with pytest.raises(StoreSwitchedError, match=r"127\.0\.0\.1:1") as refused:
        shared.open()
    assert str(base / "store") in refused.value.remedy
    (base / "store").unlink()
    shared.open().close()


def test_a_folder_that_cannot_be_written_costs_a_look_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = ChosenStore(base=tmp_path / "file" / "below", address="s3://bucket/x")
    note_last(store)
    assert read_last(store.base) == ""


def test_one_connection_serves_all_that_open_the_same_store(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def count(address: str, **options: object) -> Objects:
        opened.append(address)
        del options
        return MemoryObjects()

    close_pooled()
    monkeypatch.setattr("stackyard.sources.store.pool.open_objects", count)
    address = postgres.address(new_schema())
    one, two = open_pooled(address), open_pooled(address, create=False)
    one.put("a", b"1", expect=ABSENT)
    one.close()
    stored = two.get("a")
    assert stored is not None
    assert [entry.key for entry in two.list("")] == ["a"]
    with watch(two, "a") as changes:
        two.delete("a")
        assert changes.wait(10)
    assert opened == [address]
    close_pooled()
    open_pooled(address)
    assert len(opened) == 2
    close_pooled()


def test_what_may_only_be_read_is_opened_again_to_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[bool] = []

    def count(address: str, *, create: bool, **options: object) -> Objects:
        del address, options
        opened.append(create)
        return MemoryObjects()

    close_pooled()
    monkeypatch.setattr("stackyard.sources.store.pool.open_objects", count)
    for create in (False, False, True, False):
        open_pooled("s3://bucket/x", create=create)
    assert opened == [False, True]
    close_pooled()


def test_the_key_of_the_site_is_never_shown(tmp_path: Path) -> None:
    assert "hunter2" not in repr(ChosenStore(base=tmp_path, site_key="hunter2"))
    assert os.environ.get("STACKYARD_STORE") is None
    with contextlib.closing(open_objects(tmp_path / "state")) as objects:
        assert objects.list("") == ()


def test_a_database_in_which_nothing_was_stored_is_empty_and_leaves_no_trace(
    tmp_path: Path, postgres: Postgres
) -> None:
    base = tmp_path / ".stackyard"
    first, second = (ChosenStore(base=base, address=postgres.address(new_schema())) for _ in range(2))
    with contextlib.closing(first.read()) as objects:
        assert objects.list("") == ()
    assert read_last(base) == ""
    # A name that was mistyped once does not stand in the way.
    note_last(first)
    write_state(second)
    with pytest.raises(StoreSwitchedError):
        first.read()
