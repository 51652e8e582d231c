"""What uploads and downloads have in common: the checks of storage and name, and of what came."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from pvelab.server.problems import PveError, bad_parameter
from pvelab.world.storage.blobs import file_hash
from pvelab.world.storage.contents import is_disk_image
from pvelab.world.storage.volume_names import file_folder, normal_filename

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

    from pvelab.world.storage.allocation import Worker

__all__ = ["check_filename", "check_image_format", "destination", "image_format", "verify"]

_EXTENSIONS: Mapping[str, re.Pattern[str]] = {
    "iso": re.compile(r".+\.(?:iso|img)", re.IGNORECASE),
    "vztmpl": re.compile(r".+\.(?:tar|tar\.(?:gz|xz|zst|bz2))", re.IGNORECASE),
    "import": re.compile(r"[a-zA-Z0-9\-.+=_]+\.(ova|qcow2|raw|vmdk)"),
}


def check_filename(content: str, filename: str) -> str:
    """Return the name that a file gets.

    Raises:
        PveError: 400, the name does not go with the content.
    """
    name = normal_filename(filename)
    if not _EXTENSIONS[content].fullmatch(name):
        wrong = "invalid filename or wrong extension" if content == "import" else "wrong file extension"
        raise bad_parameter("filename", wrong)
    return name


def destination(config: Mapping[str, Any], content: str, name: str) -> str:
    """Return where a node keeps a file."""
    return f"{file_folder(config, content)}/{name}"


def image_format(content: str, name: str) -> str | None:
    """Return which image a file has to be, None where it may be anything."""
    found = _EXTENSIONS["import"].fullmatch(name) if content == "import" else None
    return found[1] if found else None


async def verify(worker: Worker, path: Path, algorithm: str | None, expected: str | None) -> None:
    """Compare the checksum of a file with the one that it should have, if one is given.

    Raises:
        PveError: They differ.
    """
    if not algorithm or not expected:
        return
    got = await asyncio.to_thread(file_hash, path, algorithm)
    if got.lower() != expected.lower():
        worker.log("calculating checksum...")
        raise PveError(f"checksum mismatch: got '{got}' != expect '{expected}'")
    worker.log("calculating checksum...OK, checksum verified")


def check_image_format(path: Path, kind: str | None) -> None:
    """Refuse a file that is not the image that its name says.

    Raises:
        PveError: It is something else.
    """
    if kind is None or is_disk_image(path, kind):
        return
    if kind == "ova":
        raise PveError("command 'tar -x -O --force-local' failed: exit code 2")
    raise PveError("failed to query file information with qemu-img")
