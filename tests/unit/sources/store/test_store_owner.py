"""Whose store it is, before anything of it is read or written; and keys that are rotated at every depth."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackyard.clients.objects import ABSENT, MemoryObjects
from stackyard.clients.objects.scoped import ScopedObjects
from stackyard.clients.objects.sealed import KeyMissingError, KeyRing, SealedObjects, make_master_key
from stackyard.sources.store import ChosenStore, StoreMovedError, read_identity
from stackyard.sources.store.at_rest import RING_VARIABLE
from stackyard.sources.store.identity import change_identity
from stackyard.sources.store.keys import (
    OtherSiteError,
    SiteKeyMissingError,
    derive_ring,
    made_key_file,
    site_keys,
)
from stackyard.sources.store.pool import lend_store
from stackyard.sources.store.sealed import open_sealed, reseal_all

SHARED = "test://shared"
SCOPE = "inner/manifest!m!lab/node/"


@pytest.fixture
def objects() -> Iterator[MemoryObjects]:
    shared = MemoryObjects()
    with lend_store(SHARED, shared, ""):
        yield shared


def chosen(base: Path, key: str | None = None) -> ChosenStore:
    return ChosenStore(base=base / ".stackyard", address=SHARED, site_key=key)


def test_another_site_reads_and_writes_nothing(tmp_path: Path, objects: MemoryObjects) -> None:
    site_keys(chosen(tmp_path / "one", make_master_key()), objects)
    other = chosen(tmp_path / "two", make_master_key())
    journal = other.base / "journal"
    journal.mkdir(parents=True)
    (journal / "t.json").write_text('{"state": "env/a/b"}')
    before = [one.key for one in objects.list("")]
    for use in (other.open, other.read):
        with pytest.raises(OtherSiteError):
            use()
    assert [one.key for one in objects.list("")] == before
    assert (journal / "t.json").exists(), "what is its own stays with it"


def test_a_machine_without_the_key_reads_and_does_not_write(tmp_path: Path, objects: MemoryObjects) -> None:
    site_keys(chosen(tmp_path / "one", make_master_key()), objects)
    other = chosen(tmp_path / "two")
    other.read().close()
    with pytest.raises(SiteKeyMissingError):
        other.open()


def test_two_sites_in_one_folder_after_each_other_have_two_keys(tmp_path: Path) -> None:
    one = ChosenStore(base=tmp_path / ".stackyard", address="s3://bucket/one")
    two = ChosenStore(base=tmp_path / ".stackyard", address="s3://bucket/two")
    assert made_key_file(one) != made_key_file(two)


def test_a_run_that_began_before_a_move_goes_on_and_no_other_begins(
    tmp_path: Path, objects: MemoryObjects
) -> None:
    store = chosen(tmp_path, make_master_key())
    with store.at_work():
        change_identity(objects, lambda now: dataclasses.replace(now, moving_to="s3://bucket/new"))
        store.open().close()
        store.read().close()
    for use in (store.open, store.read):
        with pytest.raises(StoreMovedError):
            use()
    store.read_as_is().close()
    change_identity(objects, lambda now: dataclasses.replace(now, moved_to="s3://bucket/new"))
    with store.at_work(), pytest.raises(StoreMovedError):
        store.open()
    with pytest.raises(StoreMovedError):
        store.read_as_is()


def test_a_store_that_was_moved_is_known_for_it_where_stores_are_encrypted_as_a_whole(
    tmp_path: Path, objects: MemoryObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RING_VARIABLE, make_master_key())
    embedded = ChosenStore(base=tmp_path / ".stackyard")
    with contextlib.closing(embedded.open_as_is(create=True)) as own:
        own.put("heads/env!a!b", b"", expect=ABSENT)
        change_identity(own, lambda now: dataclasses.replace(now, moved_to="s3://bucket/new"))
    monkeypatch.setattr("stackyard.sources.store.chosen.open_pooled", lambda *_, **__: objects)
    chosen(tmp_path, make_master_key()).read().close()


def test_a_rotation_reaches_what_inner_runs_sealed_and_the_old_key_can_be_left(tmp_path: Path) -> None:
    objects, old, new = MemoryObjects(), make_master_key(), make_master_key()
    before, during, after = (chosen(tmp_path, key) for key in (old, f"{new},{old}", new))
    inner = ScopedObjects(objects, SCOPE)
    open_sealed(before, objects).put("guests/x", b"outer", expect=ABSENT)
    derived = derive_ring(KeyRing.from_text(old), SCOPE)
    SealedObjects(inner, derived).put("guests/y", b"inner", expect=ABSENT)
    change_identity(inner, lambda now: dataclasses.replace(now, keys=tuple(key.id for key in derived.keys)))
    assert reseal_all(during, objects, forget_old=True) == 2
    assert reseal_all(during, objects) == 0
    opened = open_sealed(after, objects).get("guests/x")
    assert opened is not None
    assert opened.data == b"outer"
    own = derive_ring(KeyRing.from_text(new), SCOPE)
    found = SealedObjects(inner, own).get("guests/y")
    assert found is not None
    assert found.data == b"inner"
    identity = read_identity(inner)
    assert identity is not None
    assert own.keys[0].id in identity.keys
    with pytest.raises(OtherSiteError):
        site_keys(before, objects)
    with pytest.raises(KeyMissingError):
        SealedObjects(inner, derived).get("guests/y")
