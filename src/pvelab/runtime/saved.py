"""Saved states of a whole lab: everything in its store, and the bytes of files that it names.

With a data folder they outlive the lab, as one file each; without one they live as long as it does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from pvelab.server.problems import PveError
from pvelab.world.storage.blobs import blobs_of
from stackyard.base import directories
from stackyard.base.errors import FileError
from stackyard.base.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["SavedSnapshot", "SavedStates"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_SUFFIX = ".json"

Content = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedSnapshot:
    """A saved state: when it was saved, in lab time, and how much it holds."""

    name: str
    time: float
    guests: int
    bytes: int

    def document(self) -> dict[str, Any]:
        """Return the JSON view."""
        return {"name": self.name, "time": self.time, "guests": self.guests, "bytes": self.bytes}


class SavedStates:
    """Keeps states by name.

    Args:
        folder: Where they outlive the lab; None keeps them in memory.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._kept: dict[str, bytes] = {}
        if folder is not None and folder.is_dir():
            for path in sorted(folder.glob(f"*{_SUFFIX}")):
                self._kept[path.name.removesuffix(_SUFFIX)] = _read(path)

    def files(self) -> set[str]:
        """Return the names of all bytes that any of the states needs."""
        return {name for kept in self._kept.values() for name in _files_in(orjson.loads(kept)["content"])}

    def save(self, name: str, time: float, content: Mapping[str, Mapping[str, Any]]) -> set[str]:
        """Keep a state, in place of one of the same name; return the names of the bytes that it needs.

        Raises:
            PveError: That is no name for one (400).
            FileError: It cannot be written.
        """
        if not _NAME.fullmatch(name):
            raise PveError(f"'{name}' is no name for a snapshot: use letters, digits and .-_", status=400)
        kept = orjson.dumps({"time": time, "content": content})
        if self._folder is not None:
            directories.ensure_private(self._folder)
            replace_file(self._folder / f"{name}{_SUFFIX}", kept)
        self._kept[name] = kept
        return _files_in(content)

    def load(self, name: str) -> Content:
        """Return the content of a state.

        Raises:
            PveError: There is none of that name (404).
        """
        content: Content = orjson.loads(self._require(name))["content"]
        return content

    def remove(self, name: str) -> None:
        """Forget a state.

        Raises:
            PveError: There is none of that name (404).
        """
        self._require(name)
        if self._folder is not None:
            (self._folder / f"{name}{_SUFFIX}").unlink(missing_ok=True)
        del self._kept[name]

    def all(self) -> list[SavedSnapshot]:
        """Return all states, by name."""
        found = []
        for name, kept in sorted(self._kept.items()):
            state = orjson.loads(kept)
            guests = len(state["content"].get("guests", {}))
            found.append(SavedSnapshot(name=name, time=state["time"], guests=guests, bytes=len(kept)))
        return found

    def _require(self, name: str) -> bytes:
        kept = self._kept.get(name)
        if kept is None:
            raise PveError(f"there is no snapshot '{name}'", status=404)
        return kept


def _files_in(content: Mapping[str, Mapping[str, Any]]) -> set[str]:
    return {name for volume in content.get("volumes", {}).values() for name in blobs_of(volume)}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err
