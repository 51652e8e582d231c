"""The images of a cluster by their SHA-256, as a file that git holds: `infrastructure/images.lock.json`.

A download is trusted once. From then on every Proxmox node, plain OpenTofu and `cluster images --pin` hold
what they download against it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base import files, locks
from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.errors import FileError, InvalidInputError, Location
from stackyard.sources.cluster.image_names import name_image_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from stackyard.sources.cluster.model import Cluster

__all__ = [
    "LOCK_NAME",
    "ImageLock",
    "ImageLockError",
    "PinnedImage",
    "add_pin",
    "list_unpinned",
    "read_image_lock",
    "warn_of_unpinned",
]

LOCK_NAME = "images.lock.json"
_NOTE = "SHA-256 of images, written by `stackyard cluster images --pin`. Commit this file; do not edit it."
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MODE = 0o644


class ImageLockError(InvalidInputError):
    """The file with the SHA-256 of images cannot be read: it was edited, or has marks of a merge conflict."""

    code = "E-CLUSTER-IMAGE-LOCK"
    summary = "The file of pinned images is not valid"
    default_remedy = "Restore it from git. After a merge conflict, keep the entries of both sides."


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedImage:
    """An image that was downloaded once.

    Attributes:
        sha256: Its SHA-256.
        size: Its size in bytes.
        url: Where it came from.
    """

    sha256: str
    size: int
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageLock:
    """The pinned images of a cluster.

    Attributes:
        images: By the file name that they have on a storage.
    """

    images: Mapping[str, PinnedImage] = field(default_factory=dict)

    @property
    def checksums(self) -> dict[str, str]:
        """The SHA-256 by file name."""
        return {name: image.sha256 for name, image in self.images.items()}

    def dump(self) -> bytes:
        """Return the file."""
        images = {
            name: {"sha256": one.sha256, "size": one.size, "url": one.url}
            for name, one in sorted(self.images.items())
        }
        document = {"note": _NOTE, "images": images}
        return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def read_image_lock(cluster: Cluster) -> ImageLock:
    """Read the pinned images of a cluster; without a file there are none.

    Raises:
        ImageLockError: The file is not valid.
        FileError: It cannot be read.
    """
    path = cluster.infrastructure / LOCK_NAME
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return ImageLock()
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err
    try:
        found = parse_json(data)
    except JsonError as err:
        raise ImageLockError(f"{path} is not valid JSON.", where=Location(str(path))) from err
    images = found.get("images") if isinstance(found, dict) else None
    if not isinstance(images, dict):
        raise ImageLockError(f"{path} has no map `images`.", where=Location(str(path)))
    return ImageLock(images={name: _read_pin(path, name, one) for name, one in images.items()})


def _read_pin(path: Path, name: str, entry: Any) -> PinnedImage:
    values = entry if isinstance(entry, dict) else {}
    sha256, size, url = values.get("sha256"), values.get("size"), values.get("url")
    if (
        not isinstance(sha256, str)
        or not _SHA256.fullmatch(sha256)
        or not isinstance(size, int)
        or not isinstance(url, str)
    ):
        raise ImageLockError(
            f"{path}: {name} needs `sha256` with 64 hexadecimal digits, `size` and `url`.",
            where=Location(str(path)),
        )
    return PinnedImage(sha256=sha256, size=size, url=url)


def list_unpinned(cluster: Cluster, lock: ImageLock) -> tuple[str, ...]:
    """Return the files of the images that Proxmox nodes download, and that nothing is compared with."""
    names = {name_image_file(cluster, node.image) for node in cluster.nodes if node.vm is not None}
    return tuple(sorted(names - lock.images.keys()))


def warn_of_unpinned(names: Sequence[str]) -> str:
    """Return the warning about images that nothing is compared with."""
    verb = "has" if len(names) == 1 else "have"
    return (
        f"{', '.join(names)} {verb} no recorded SHA-256: Proxmox VE takes whatever the image factory sends. "
        "`stackyard cluster images --pin` downloads once and records it, for every later download."
    )


def add_pin(cluster: Cluster, name: str, pin: PinnedImage) -> None:
    """Record an image; the others stay as they are.

    Raises:
        ImageLockError: The file is not valid.
        FileError: It cannot be read or written.
    """
    path = cluster.infrastructure / LOCK_NAME
    with locks.hold_folder(cluster.folder):
        lock = read_image_lock(cluster)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as err:
            raise FileError.from_os_error(err, "write", path) from err
        files.replace_file(path, ImageLock(images={**lock.images, name: pin}).dump(), mode=_MODE)
