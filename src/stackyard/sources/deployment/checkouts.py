"""Which version a file of the user was made from, so that an old copy never takes back what others wrote."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import orjson

from stackyard.base import directories, files, locks
from stackyard.base.documents.jsontext import JsonError, parse_json

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.sources.deployment.settings import ObjectLocation
    from stackyard.sources.deployment.store import Version

__all__ = ["base_of", "remember"]

_FILE = "deployment-checkouts.json"
_MOST = 100


def _read(place: ObjectLocation) -> dict[str, dict[str, str]]:
    path = place.base / _FILE
    if not path.exists():
        return {}
    try:
        found = parse_json(path.read_bytes())
    except (OSError, JsonError):
        # It only saves the user from naming a version; without it, the user is asked to.
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: known for name, known in found.items() if isinstance(known, dict)}


def _name(path: Path) -> str:
    return os.path.realpath(path)


def base_of(place: ObjectLocation, path: Path) -> str | None:
    """Return the id of the version that a file was created from, where that is known for this store."""
    known = _read(place).get(_name(path))
    return None if known is None or known.get("store") != place.label else known.get("version")


def remember(place: ObjectLocation, path: Path, version: Version) -> None:
    """Remember that a file is a version now.

    Raises:
        FileError: It cannot be written down.
    """
    name = _name(path)
    directories.ensure_private(place.base)
    # Others remember theirs at the same moment: what they wrote since must not be lost.
    with locks.hold_folder(place.base):
        others = {other: known for other, known in _read(place).items() if other != name}
        known = {**others, name: {"store": place.label, "version": version.id}}
        kept = dict(list(known.items())[-_MOST:])
        files.replace_file(place.base / _FILE, orjson.dumps(kept, option=orjson.OPT_INDENT_2))
