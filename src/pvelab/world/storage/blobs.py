"""The bytes of files in storages: uploads, downloads, snippets. Each content is kept once, under its SHA-256.

A volume document names its bytes by `sha256`; one without has none (a disk, or a stand-in for a download that
was not made). A disk that was created from an image needs the bytes of the image as long as it is there. The
file is there before the document says so, and goes when the last document that names it is gone. What a
killed lab left behind is removed at the next start.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pvelab.runtime.own_folder import OwnFolder
from stackyard.base.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pvelab.world.store import Document, Store

__all__ = ["Blob", "Blobs", "blobs_of", "file_hash"]

_CHUNK = 1024 * 1024
_COLLECTION = "volumes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """Bytes that are kept."""

    sha256: str
    size: int


class Blobs:
    """Keeps bytes in a folder.

    Args:
        folder: Where they outlive the lab; a folder of their own that goes with the lab if None.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._place = OwnFolder(folder, "stackyard-lab-")
        self._references: dict[str, int] = {}
        self._held: set[str] = set()
        self._pins: dict[str, int] = {}
        self._store: Store | None = None

    def follow(self, store: Store) -> None:
        """Remove bytes from now on when no volume names them any more."""
        self._store = store
        store.watch(_COLLECTION, self._count)

    def tidy(self) -> None:
        """Remove what nothing names: the rest of uploads that a killed lab did not finish."""
        self._place.tidy({*self._references, *self._held})

    def hold(self, names: Iterable[str]) -> None:
        """Keep bytes although no volume names them, for as long as the lab runs: a saved state does."""
        self._held.update(names)

    async def adopt(self, source: Path) -> Blob:
        """Take over a file, which is moved; it stays at least until `release`.

        Large files take time, so the work is done beside the event loop.
        """
        blob = await asyncio.to_thread(self._measure, source)
        # From here on no one else's removal of the same bytes takes these along.
        self._pins[blob.sha256] = self._pins.get(blob.sha256, 0) + 1
        with _map_os_errors("move", source):
            await asyncio.to_thread(shutil.move, source, self.path(blob.sha256))
        return blob

    def release(self, blob: Blob) -> None:
        """Let go of bytes that were taken over: a volume names them now, or they are not needed."""
        self._pins[blob.sha256] -= 1
        if not self._pins[blob.sha256]:
            del self._pins[blob.sha256]
        self._drop(blob.sha256)

    def put(self, content: bytes) -> Blob:
        """Keep some bytes."""
        blob = Blob(sha256=hashlib.sha256(content).hexdigest(), size=len(content))
        target = self.path(blob.sha256)
        if not target.exists():
            with _map_os_errors("write", target), self.scratch() as scratch:
                scratch.write_bytes(content)
                scratch.replace(target)
        return blob

    def read(self, sha256: str) -> bytes:
        """Return bytes that are kept.

        Raises:
            FileError: They are not there.
        """
        path = self.path(sha256)
        with _map_os_errors("read", path):
            return path.read_bytes()

    def path(self, sha256: str) -> Path:
        """Return the file that holds some bytes; no one may change it."""
        return self._place.path / sha256

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """Give the path of a file to write to; what is still there at the end of the block is removed."""
        handle, name = tempfile.mkstemp(prefix="new-", dir=self._place.path)
        os.close(handle)
        path = Path(name)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the folder, unless it is to outlive the lab."""
        self._place.close()

    def _measure(self, source: Path) -> Blob:
        with _map_os_errors("read", source):
            return Blob(sha256=file_hash(source, "sha256"), size=source.stat().st_size)

    def _count(self, _key: str, old: Document | None, new: Document | None) -> None:
        for volume, step in ((new, 1), (old, -1)):
            for name in blobs_of(volume or {}):
                self._references[name] = self._references.get(name, 0) + step
                if self._references[name] <= 0:
                    del self._references[name]
                    if self._store is not None:
                        self._store.after_commit(functools.partial(self._drop, name))

    def _drop(self, name: str) -> None:
        if not any(name in known for known in (self._references, self._held, self._pins)):
            self.path(name).unlink(missing_ok=True)


def blobs_of(volume: Mapping[str, Any]) -> list[str]:
    """Return the names of the bytes that a volume needs: its own, and those of the image it was made from."""
    return [str(found["sha256"]) for found in (volume, volume.get("image") or {}) if "sha256" in found]


def file_hash(path: Path, algorithm: str) -> str:
    """Return a checksum of a file in hexadecimal."""
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


@contextlib.contextmanager
def _map_os_errors(verb: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as err:
        raise FileError.from_os_error(err, verb, path) from err
