"""Which store this machine used last: another one is used only once the one before holds no states."""

from __future__ import annotations

import contextlib
import shlex
from typing import TYPE_CHECKING

from stackyard.base import directories, files
from stackyard.base.errors import FileError, InvalidInputError
from stackyard.clients.objects import StoreAbsentError, StoreError, open_objects
from stackyard.clients.objects.open_store import DATABASE
from stackyard.sources.store.at_rest import read_ring
from stackyard.sources.store.identity import read_identity
from stackyard.sources.store.pool import open_pooled

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.clients.objects import Objects
    from stackyard.sources.store.chosen import ChosenStore

__all__ = ["StoreSwitchedError", "note_last", "read_last", "require_nothing_elsewhere"]

_FILE = "store"
_STATES = "heads/"


class StoreSwitchedError(InvalidInputError):
    """The store of the site was changed, and the earlier one still holds the states."""

    code = "E-STORE-SWITCHED"
    summary = "The states are in another store"


def read_last(base: Path) -> str:
    """Return the store that was used last; empty for the embedded one, and where nothing is known."""
    try:
        return (base / _FILE).read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def note_last(store: ChosenStore) -> None:
    """Remember the store that is used now."""
    # A folder that cannot be written costs a look at the next command, and nothing else.
    with contextlib.suppress(FileError, OSError):
        if store.address is None:
            (store.base / _FILE).unlink(missing_ok=True)
            return
        directories.ensure_private(store.base)
        files.replace_file(store.base / _FILE, f"{store.address}\n".encode())


def require_nothing_elsewhere(store: ChosenStore, last: str, own_id: str) -> None:
    """Refuse a store while another one that was used here still holds states.

    Args:
        store: The store that is chosen now.
        last: The one that was used last; empty for the embedded one.
        own_id: The id of the store that is chosen now: one store may have several addresses.

    Raises:
        StoreSwitchedError: It does, or cannot be asked.
    """
    if store.address is not None and (store.folder / DATABASE).exists():
        with contextlib.closing(open_objects(store.folder, ring=read_ring(), create=False)) as objects:
            _require_left(store, objects, str(store.folder), own_id)
    if last and last != store.address:
        try:
            with contextlib.closing(open_pooled(last, ring=read_ring(), create=False)) as objects:
                _require_left(store, objects, last, own_id)
        except StoreAbsentError:
            return
        except StoreError as err:
            raise StoreSwitchedError(
                f"The site used {last} before, and it is unknown whether it still holds states: {err.detail}",
                remedy=f"Make that store reachable. If it no longer exists, delete {store.base / _FILE}.",
            ) from err


def _require_left(store: ChosenStore, objects: Objects, label: str, own_id: str) -> None:
    identity = read_identity(objects)
    if identity is not None and (identity.moved_to or (own_id and identity.id == own_id)):
        return
    if objects.list(_STATES, limit=1):
        raise StoreSwitchedError(
            f"The store is now {store.label} (set by {store.chosen_by}), but the states of this site are in"
            f" {label}.",
            remedy=f"Move them: {shlex.join(['stackyard', 'store', 'move', label, store.label])}",
        )
