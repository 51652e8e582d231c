"""The key of a site: made once, never twice, asked for by its id, and told from that of another site."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import pytest

from stackyard.base.errors import FileError
from stackyard.clients.objects import ABSENT, MemoryObjects, open_objects
from stackyard.clients.objects.sealed import KeyMissingError, MasterKeyError, make_master_key
from stackyard.sources.store import ChosenStore, read_identity
from stackyard.sources.store.keys import (
    KEY_FILE_VARIABLE,
    OtherSiteError,
    SiteKeyMissingError,
    made_key_file,
    site_keys,
)
from stackyard.sources.store.sealed import open_sealed

SHARED = "s3://bucket/site"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv(KEY_FILE_VARIABLE, raising=False)
    return tmp_path


def test_a_key_is_made_once_and_the_store_remembers_only_its_id(tmp_path: Path) -> None:
    store, objects = ChosenStore(base=tmp_path / ".stackyard", address=SHARED), MemoryObjects()
    first = site_keys(store, objects)
    again = site_keys(store, objects)
    assert (first.is_new, again.is_new) == (True, False)
    assert first.ring == again.ring
    identity = read_identity(objects)
    assert identity is not None
    assert identity.keys == first.ids
    secret = first.ring.keys[0].secret
    kept = b"".join(stored.data for one in objects.list("") if (stored := objects.get(one.key)))
    assert secret.hex().encode() not in kept
    assert secret not in kept


def test_a_machine_without_the_key_is_told_which_and_makes_none(tmp_path: Path) -> None:
    objects = MemoryObjects()
    made = site_keys(ChosenStore(base=tmp_path / "a" / ".stackyard", address=SHARED), objects)
    other = ChosenStore(base=tmp_path / "b" / ".stackyard", address=SHARED)
    for _ in range(2):
        with pytest.raises(SiteKeyMissingError, match=made.ids[0]):
            site_keys(other, objects)
    assert not made_key_file(other).exists()


def test_another_site_is_refused_the_store(tmp_path: Path) -> None:
    objects = MemoryObjects()
    one = ChosenStore(base=tmp_path / "a", address=SHARED, site_key=make_master_key())
    other = ChosenStore(base=tmp_path / "b", address=SHARED, site_key=make_master_key())
    site_keys(one, objects)
    with pytest.raises(OtherSiteError, match="site_key"):
        site_keys(other, objects)


def test_a_rotated_key_is_taken_while_the_old_one_is_beside_it(tmp_path: Path) -> None:
    objects, old, new = MemoryObjects(), make_master_key(), make_master_key()
    base = tmp_path / ".stackyard"
    before = ChosenStore(base=base, address=SHARED, site_key=old)
    during = ChosenStore(base=base, address=SHARED, site_key=f"{new},{old}")
    after = ChosenStore(base=base, address=SHARED, site_key=new)
    open_sealed(before, objects).put("guests/x", b"private", expect=ABSENT)
    with pytest.raises(OtherSiteError):
        site_keys(after, objects)
    found = open_sealed(during, objects).get("guests/x")
    assert found is not None
    assert found.data == b"private"
    assert site_keys(after, objects).ids[0] == site_keys(during, objects).ids[0]
    with pytest.raises(KeyMissingError):
        open_sealed(after, objects).get("guests/x")


def test_the_key_of_an_embedded_store_is_beside_it(tmp_path: Path) -> None:
    store = ChosenStore(base=tmp_path / ".stackyard")
    with contextlib.closing(store.open()) as objects:
        made = site_keys(store, objects)
    assert made.path == tmp_path / ".stackyard" / "site.key"
    assert made.path.stat().st_mode & 0o077 == 0


def test_first_uses_at_once_end_with_one_key(tmp_path: Path) -> None:
    store = ChosenStore(base=tmp_path / ".stackyard")
    found: list[tuple[str, ...]] = []

    def use() -> None:
        with contextlib.closing(store.open()) as objects:
            found.append(site_keys(store, objects).ids)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_a_key_that_others_can_read_or_that_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, path = ChosenStore(base=tmp_path / ".stackyard"), tmp_path / "site.key"
    monkeypatch.setenv(KEY_FILE_VARIABLE, str(path))
    with contextlib.closing(open_objects(tmp_path / "state")) as objects:
        with pytest.raises(FileError, match="Cannot read"):
            site_keys(store, objects)
        path.write_text(make_master_key())
        path.chmod(0o644)
        with pytest.raises(FileError, match="Other users can read"):
            site_keys(store, objects)
        path.chmod(0o600)
        assert site_keys(store, objects).path == path
        path.write_text("no key")
        with pytest.raises(MasterKeyError, match="is not a site key"):
            site_keys(store, objects)
