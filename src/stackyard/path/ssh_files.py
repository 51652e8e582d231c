"""The SSH files of a site that several machines share: its own key, and the host keys that were seen.

SSH reads them from files. With a store that other machines reach they are copies of what is in the store: the
key is sealed there, and of the host keys each machine adds and removes what it saw, and no one else's.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from stackyard.base import directories, files, locks
from stackyard.clients.objects import ABSENT, ConflictError
from stackyard.sources.site.pull import OWN_KEY_FILE
from stackyard.sources.store.sealed import open_sealed

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.clients.objects import Objects
    from stackyard.sources.store import ChosenStore

__all__ = ["KNOWN_HOSTS", "fetch_ssh_files", "push_known_hosts"]

KNOWN_HOSTS = "known_hosts"
# What the store held when the file was last the same as it.
_FETCHED = "known_hosts.fetched"
_HOSTS_OBJECT = "ssh/known_hosts"
_KEY_OBJECT = "ssh/id_ed25519"
_ATTEMPTS = 20
_fetched: set[Path] = set()


def fetch_ssh_files(store: ChosenStore) -> None:
    """Bring the SSH files of a site to this machine, once for each process.

    Raises:
        StoreError: The store cannot be read.
        SiteKeyMissingError: The SSH key is sealed with a key that is not here.
        FileError: They cannot be written.
    """
    if not store.is_shared or store.base in _fetched:
        return
    with contextlib.closing(store.open()) as objects:
        _fetch_key(store, objects)
        stored = objects.get(_HOSTS_OBJECT)
        theirs = [] if stored is None else stored.data.decode("utf-8", "surrogateescape").splitlines()
        directories.ensure_private(store.base)
        with locks.hold_folder(store.base):
            ours = _merge(store.base, theirs)
            _write(store.base / KNOWN_HOSTS, ours)
            _write(store.base / _FETCHED, theirs)
    _fetched.add(store.base)


def push_known_hosts(store: ChosenStore, objects: Objects) -> None:
    """Store the host keys that this machine saw, and forget those that it forgot.

    Raises:
        StoreError: They cannot be stored.
    """
    if not store.is_shared or _read(store.base / KNOWN_HOSTS) == _read(store.base / _FETCHED):
        return
    for _ in range(_ATTEMPTS):
        stored = objects.get(_HOSTS_OBJECT)
        theirs = [] if stored is None else stored.data.decode("utf-8", "surrogateescape").splitlines()
        with locks.hold_folder(store.base):
            ours = _merge(store.base, theirs)
            data = "".join(f"{line}\n" for line in ours).encode("utf-8", "surrogateescape")
            try:
                objects.put(_HOSTS_OBJECT, data, expect=ABSENT if stored is None else stored.tag)
            except ConflictError:
                continue
            _write(store.base / KNOWN_HOSTS, ours)
            _write(store.base / _FETCHED, ours)
        return


def _fetch_key(store: ChosenStore, objects: Objects) -> None:
    path = store.base.parent / OWN_KEY_FILE
    if path.is_file() and (store.base / _FETCHED).exists():
        return
    stored = objects.get(_KEY_OBJECT)
    if stored is None and path.is_file():
        with contextlib.suppress(ConflictError):
            open_sealed(store, objects).put(_KEY_OBJECT, path.read_bytes(), expect=ABSENT)
    elif stored is not None and not path.is_file():
        opened = open_sealed(store, objects).get(_KEY_OBJECT)
        if opened is not None:
            directories.ensure_private(path.parent)
            files.replace_file(path, opened.data)


def _merge(base: Path, theirs: list[str]) -> list[str]:
    """Return what the store holds, with what this machine added and removed since it fetched."""
    ours, before = _read(base / KNOWN_HOSTS), _read(base / _FETCHED)
    removed = {line for line in before if line not in ours}
    added = [line for line in ours if line not in before]
    return list(dict.fromkeys([*(line for line in theirs if line not in removed), *added]))


def _read(path: Path) -> list[str]:
    try:
        return path.read_text(errors="surrogateescape").splitlines()
    except FileNotFoundError:
        return []


def _write(path: Path, lines: list[str]) -> None:
    if _read(path) != lines or not path.exists():
        files.replace_file(path, "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
