"""What earlier versions kept in files of `.stackyard`, taken into the store when it is opened.

Each file is removed once its content is stored: whoever is killed in between finds both, which say the same.
One that says something else than the store is kept under another name.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.names import escape_part
from stackyard.clients.objects import ABSENT, ConflictError
from stackyard.sources.store.sealed import open_sealed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stackyard.clients.objects import Objects
    from stackyard.sources.store.chosen import ChosenStore

__all__ = ["are_there", "take_over"]

_JOURNAL = "journal"
_OPERATOR = "operator"
_GUESTS = "guests"
# Of the controller: which object each file becomes, and whether it is sealed there.
_CONTROLLER = (
    ("controller/certificate/server.pem", "controller/certificate-key", True),
    ("controller/tokens.json", "controller/tokens", True),
    ("controller/tokens.last-change", "controller/tokens-changed", False),
)


def are_there(base: Path) -> bool:
    """Return whether there may be something to take over."""
    folders = (_JOURNAL, _OPERATOR, _GUESTS, _CONTROLLER[0][0], _CONTROLLER[1][0])
    return any((base / name).exists() for name in folders)


def take_over(store: ChosenStore, objects: Objects) -> None:
    """Store what earlier versions left in files, where the store has nothing of it yet.

    Raises:
        StoreError: It cannot be stored; the files stay.
    """
    sealed: Objects | None = None
    for path, key, is_sealed in _files(store.base):
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            # Another process was faster.
            continue
        if is_sealed and sealed is None:
            sealed = open_sealed(store, objects)
        _store(sealed if is_sealed and sealed is not None else objects, key, path, data)
    for name in (_JOURNAL, _OPERATOR, _GUESTS):
        _put_aside(store.base / name)


def _store(objects: Objects, key: str, path: Path, data: bytes) -> None:
    """Store a file and remove it; one that says something else than the store is put aside."""
    try:
        objects.put(key, data, expect=ABSENT)
    except ConflictError:
        known = objects.get(key)
        if known is not None and known.data != data:
            with contextlib.suppress(FileNotFoundError):
                path.rename(path.with_name(f"{path.name}.old"))
            return
    path.unlink(missing_ok=True)


def _files(base: Path) -> Iterator[tuple[Path, str, bool]]:
    """Yield each file, the object that it becomes, and whether that is sealed."""
    for path in sorted((base / _JOURNAL).glob("*.json")):
        state = _read(path).get("state")
        if isinstance(state, str) and state:
            yield path, f"journal/{_part(state)}/{path.stem}", False
    for path in sorted((base / _OPERATOR).glob("*/record.json")):
        manifest, host = (_read(path).get(name) for name in ("manifest", "host"))
        if isinstance(manifest, str) and isinstance(host, str):
            state = f"manifest/{escape_part(manifest)}/{escape_part(host)}"
            yield path, f"operator/{_part(state)}", False
    for path in sorted((base / _GUESTS).glob("*.json")):
        kind, _, rest = path.stem.partition("--")
        name, _, node = rest.rpartition("--")
        if kind and name and node:
            yield path, f"guests/{_part(f'{kind}/{name}/{node}')}", True
    for name, key, is_sealed in _CONTROLLER:
        if (base / name).is_file():
            yield base / name, key, is_sealed


def _part(state: str) -> str:
    return state.replace("/", "!")


def _read(path: Path) -> dict[str, object]:
    try:
        found = parse_json(path.read_bytes())
    except (OSError, JsonError):
        return {}
    return found if isinstance(found, dict) else {}


def _put_aside(folder: Path) -> None:
    """Remove a folder that is empty now; one with other things, such as a history, is put aside."""
    with contextlib.suppress(OSError):
        for lock in folder.glob("*/lock"):
            lock.unlink()
        for below in sorted(folder.rglob("*"), reverse=True):
            if below.is_dir() and not any(below.iterdir()):
                below.rmdir()
        if any(folder.iterdir()):
            folder.rename(folder.with_name(f"{folder.name}.old"))
        else:
            folder.rmdir()
