"""The one archive that is sent to inner hosts: packed once, kept in the user's cache, named by its content.

An inner host passes on the file that it was sent: anyone who runs from an unpacked archive finds it beside.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import directories, events
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.errors import FileError
from stackyard.base.files import replace_file
from stackyard.base.locks import exclusive
from stackyard.engine.tools.find import find_engine
from stackyard.operator.delegation.environment import Layer, own_layer, with_libraries, world_layer
from stackyard.operator.delegation.pack import END, write_piece

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["ARCHIVES", "RUNTIMES", "Archive", "find_archive"]

# Where an inner host has the archive, and where it is unpacked, below the folder of stackyard there.
ARCHIVES, RUNTIMES = "archives", "runtimes"
_SUFFIX = ".tar.gz"
# Changes whenever the same parts are packed in another way.
_FORMAT = "2"
_KEPT_FILES = 4
_CHUNK_BYTES = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """An archive that is ready to be sent.

    Attributes:
        path: The file.
        digest: The SHA-256 of its content, which is its name.
        size_bytes: How large it is.
        took_s: How long packing took; nothing where it was there already.
    """

    path: Path
    digest: str
    size_bytes: int
    took_s: float = 0.0


async def find_archive(emit: events.Emit = events.ignore, *, cache: Path | None = None) -> Archive:
    """Return the archive of this stackyard, packed now if need be.

    Args:
        emit: Takes the events.
        cache: Where archives are kept; the cache of the user when absent.

    Raises:
        RuntimePartsError: A part cannot be found on this machine.
        EngineMissingError: There is no engine to put into it.
        FileError: The cache cannot be written.
    """
    received = _find_received_archive()
    if received is not None:
        return received
    folder = directories.ensure_private(cache or directories.cache_folder() / "delegation")
    engine = (await find_engine()).engine
    layers = await asyncio.to_thread(lambda: (world_layer(engine), own_layer()))
    try:
        name = _stamp(line for layer in layers for line in _lines(layer))
        known = _find_cached_archive(folder, name)
        if known is not None:
            return known
        async with exclusive(folder / "lock", f"process {os.getpid()}", lambda holder: None):
            # Anyone who held the lock may have packed the same.
            return _find_cached_archive(folder, name) or await _pack(folder, name, layers, emit)
    except OSError as err:
        raise FileError.from_os_error(err, "pack the archive for inner hosts in", folder) from err


def _find_received_archive() -> Archive | None:
    """Return the archive that this stackyard was unpacked from, where it was."""
    root = Path(sys.executable).parent.parent
    if root.parent.name != RUNTIMES:
        return None
    path = root.parent.parent / ARCHIVES / f"{root.name}{_SUFFIX}"
    with contextlib.suppress(OSError):
        return Archive(path=path, digest=root.name, size_bytes=path.stat().st_size)
    return None


def _lines(layer: Layer) -> Iterable[str]:
    return [f"{_FORMAT} {layer.name}", *(part.stamp() for part in layer.parts)]


def _stamp(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _find_cached_archive(folder: Path, name: str) -> Archive | None:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        found = parse_json((folder / f"{name}.json").read_bytes())
        path = folder / f"{found['digest']}{_SUFFIX}"
        if path.stat().st_size == found["size"] and _libraries_stand(found["libraries"]):
            os.utime(path)
            return Archive(path=path, digest=str(found["digest"]), size_bytes=int(found["size"]))
    return None


def _libraries_stand(seen: dict[str, int]) -> bool:
    """Return whether the shared libraries, which no package of Python's names, are still the same files."""
    return all(os.stat(path).st_mtime_ns == changed for path, changed in seen.items())


async def _pack(folder: Path, name: str, layers: tuple[Layer, ...], emit: events.Emit) -> Archive:
    began = time.monotonic()
    with events.step(emit, "archive", "Packing stackyard for inner hosts") as step:
        world, own = layers
        world = await with_libraries(world)
        pieces = [await asyncio.to_thread(_piece, folder, layer) for layer in (world, own)]
        digest, size = await asyncio.to_thread(_join, folder, pieces)
        libraries = {
            str(part.source): os.stat(part.source).st_mtime_ns
            for part in world.parts
            if part.path.parts[0] == "lib" and isinstance(part.source, Path)
        }
        document = {"digest": digest, "size": size, "libraries": libraries}
        replace_file(folder / f"{name}.json", json.dumps(document).encode())
        _tidy(folder)
        took = time.monotonic() - began
        step.log(f"{size / 2**20:.0f} MiB, {sum(len(layer.parts) for layer in layers)} files, {took:.1f} s")
    return Archive(path=folder / f"{digest}{_SUFFIX}", digest=digest, size_bytes=size, took_s=took)


def _piece(folder: Path, layer: Layer) -> Path:
    """Return a layer as a piece of an archive; the one of an earlier archive where nothing changed."""
    path = folder / f"{layer.name}-{_stamp(_lines(layer))}.gz"
    if path.exists():
        os.utime(path)
        return path
    with _open_scratch_file(folder) as scratch:
        write_piece(layer.parts, scratch)
        os.replace(scratch, path)
    return path


def _join(folder: Path, pieces: list[Path]) -> tuple[str, int]:
    """Write the pieces one after the other, and return the digest and the size of the whole."""
    digest, size = hashlib.sha256(), 0
    with _open_scratch_file(folder) as scratch:
        with scratch.open("wb") as whole:
            for piece in pieces:
                with piece.open("rb") as stream:
                    while chunk := stream.read(_CHUNK_BYTES):
                        digest.update(chunk)
                        size += whole.write(chunk)
            digest.update(END)
            size += whole.write(END)
        os.replace(scratch, folder / f"{digest.hexdigest()}{_SUFFIX}")
    return digest.hexdigest(), size


@contextlib.contextmanager
def _open_scratch_file(folder: Path) -> Iterator[Path]:
    """Give a private file under a name that no one reads; it is gone afterwards, unless it was renamed."""
    descriptor, name = tempfile.mkstemp(dir=folder, prefix=".packing.")
    os.close(descriptor)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _tidy(folder: Path) -> None:
    """Remove all but the newest of each kind of file."""
    for pattern in (f"*{_SUFFIX}", "world-*.gz", "own-*.gz", "*.json"):
        found = sorted(folder.glob(pattern), key=lambda path: path.stat().st_mtime_ns)
        for path in found[:-_KEPT_FILES]:
            path.unlink(missing_ok=True)
