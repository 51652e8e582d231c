"""The SSH files of a site on several machines: one key, and the host keys that any of them saw."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from tests.support.postgres import Postgres, new_schema, postgres

from stackyard.path import ssh_files
from stackyard.path.ssh_files import KNOWN_HOSTS, fetch_ssh_files, push_known_hosts
from stackyard.sources.site.pull import OWN_KEY_FILE
from stackyard.sources.store import ChosenStore
from stackyard.sources.store.keys import KEY_FILE_VARIABLE, SiteKeyMissingError

__all__ = ["postgres"]


@pytest.fixture
def pair(tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> list[ChosenStore]:
    address = postgres.address(new_schema())
    key = tmp_path / "key"
    key.write_text("a" * 43 + "=")
    key.chmod(0o600)
    monkeypatch.setenv(KEY_FILE_VARIABLE, str(key))
    return [ChosenStore(base=tmp_path / name / ".stackyard", address=address) for name in ("a", "b")]


def fetch(store: ChosenStore) -> None:
    """Fetch as a new process does."""
    ssh_files._fetched.clear()
    fetch_ssh_files(store)


def push(store: ChosenStore) -> None:
    with contextlib.closing(store.open()) as objects:
        push_known_hosts(store, objects)


def hosts(store: ChosenStore) -> list[str]:
    return (store.base / KNOWN_HOSTS).read_text().splitlines()


def see(store: ChosenStore, *lines: str) -> None:
    (store.base / KNOWN_HOSTS).write_text("".join(f"{line}\n" for line in lines))


def test_the_key_of_one_machine_becomes_that_of_all_and_is_sealed_in_the_store(
    pair: list[ChosenStore],
) -> None:
    a, b = pair
    own = a.base.parent / OWN_KEY_FILE
    own.parent.mkdir(parents=True)
    own.write_text("PRIVATE")
    fetch(a)
    fetch(b)
    copied = b.base.parent / OWN_KEY_FILE
    assert copied.read_text() == "PRIVATE"
    assert copied.stat().st_mode & 0o077 == 0
    with contextlib.closing(a.open()) as objects:
        stored = objects.get("ssh/id_ed25519")
    assert stored is not None
    assert b"PRIVATE" not in stored.data


def test_a_machine_without_the_key_of_the_site_is_told(
    pair: list[ChosenStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = pair
    own = a.base.parent / OWN_KEY_FILE
    own.parent.mkdir(parents=True)
    own.write_text("PRIVATE")
    fetch(a)
    monkeypatch.delenv(KEY_FILE_VARIABLE)
    with pytest.raises(SiteKeyMissingError):
        fetch(b)


def test_what_each_saw_is_known_to_both(pair: list[ChosenStore]) -> None:
    a, b = pair
    for store in pair:
        fetch(store)
    see(a, "one A")
    see(b, "two B")
    push(a)
    push(b)
    assert sorted(hosts(b)) == ["one A", "two B"]
    fetch(a)
    assert sorted(hosts(a)) == ["one A", "two B"]


def test_what_one_forgets_is_forgotten_and_what_only_its_folder_lost_is_not(pair: list[ChosenStore]) -> None:
    a, b = pair
    fetch(a)
    see(a, "one A", "two B")
    push(a)
    fetch(b)
    see(b, "two B")
    push(b)
    fetch(a)
    assert hosts(a) == ["two B"]
    for path in (a.base / KNOWN_HOSTS, a.base / "known_hosts.fetched"):
        path.unlink()
    fetch(a)
    push(a)
    assert hosts(a) == ["two B"]
    fetch(b)
    assert hosts(b) == ["two B"]


def test_an_embedded_store_shares_nothing(tmp_path: Path) -> None:
    store = ChosenStore(base=tmp_path / ".stackyard")
    fetch(store)
    assert not store.base.exists()
