"""Downloading files: `.../storage/{storage}/download-url` and `/nodes/{node}/query-url-metadata`."""

from __future__ import annotations

import asyncio
import bz2
import gzip
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.storage import files
from pvelab.faults.latency import Work
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.talos.images import unpack_zst
from pvelab.world.storage.blobs import file_hash
from pvelab.world.storage.contents import put_file, put_stand_in, require_space
from pvelab.world.storage.download import stand_in_size
from pvelab.world.storage.storages import type_of

if TYPE_CHECKING:
    from pathlib import Path

    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["Download", "download", "download_url", "query_metadata"]

_COMPRESSIONS = frozenset(("gz", "lzo", "zst", "bz2"))
_FULL = "download failed: Cannot write to '{}' (No space left on device)."


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """A file to fetch, and what it is to become."""

    node: str
    url: str
    volid: str
    path: str
    content: str
    name: str
    algorithm: str | None = None
    checksum: str | None = None
    compression: str | None = None
    verify: bool = True


@route("POST /nodes/{node}/storage/{storage}/download-url")
def download_url(call: Call) -> Any:
    """Fetch a file into a storage, in a task."""
    params, world, node = call.params, call.world, call.node
    storage, content = str(params["storage"]), str(params["content"])
    config = world.storages.require(storage, node)
    if not type_of(config).files:
        raise PveError(f"can't upload to storage type '{config['type']}', not a file based storage!")
    if content not in world.storages.content_types(config):
        raise PveError(f"storage '{storage}' is not configured for content-type '{content}'")
    name = files.check_filename(content, str(params["filename"]))
    wanted = Download(
        node=node,
        url=str(params["url"]),
        volid=f"{storage}:{content}/{name}",
        path=files.destination(config, content, name),
        content=content,
        name=name,
        algorithm=params.get("checksum-algorithm"),
        checksum=params.get("checksum"),
        compression=params.get("compression"),
        verify=bool(params.get("verify-certificates", 1)),
    )

    async def work(task: Task) -> None:
        await download(world, task, wanted)

    return call.start_task("download", name, work)


@route("GET /nodes/{node}/query-url-metadata")
async def query_metadata(call: Call) -> Any:
    """Ask a server what it says of a file."""
    verify = bool(call.params.get("verify-certificates", 1))
    found = await call.world.fetcher.head(str(call.params["url"]), verify=verify)
    answer = {"filename": found.filename, "size": found.size, "mimetype": found.mimetype}
    return {key: value for key, value in answer.items() if value}


async def download(world: World, task: Task, wanted: Download) -> None:
    """Fetch a file as the work of a task.

    Raises:
        PveError: It cannot be had, is not what it should be, or is in the way of another.
    """
    if wanted.compression and wanted.content != "iso":
        raise PveError(f"decompression not supported for {wanted.content}")
    if wanted.compression and wanted.compression not in _COMPRESSIONS:
        raise PveError("no decompression method found")
    task.log(f"downloading {wanted.url} to {wanted.path}")
    present = world.volumes.find(wanted.volid, wanted.node)
    if present is not None:
        # Proxmox looks in the worker (PVE::Tools::download_file_from_url): the call has succeeded, and the
        # refusal is how its task ends. Only `oci-registry-pull` refuses at once.
        await _check_present(world, task, wanted, present)
        return
    await task.spend(Work.DOWNLOAD)
    if world.fetcher.is_real(wanted.url):
        await _fetch(world, task, wanted)
    else:
        _store_placeholder(world, task, wanted)
    task.log(f"download of '{wanted.url}' to '{wanted.path}' finished")


async def _check_present(world: World, task: Task, wanted: Download, present: Document) -> None:
    if not wanted.algorithm or not wanted.checksum:
        raise PveError(f"refusing to override existing file '{wanted.path}'")
    if "sha256" in present:
        got = await asyncio.to_thread(file_hash, world.blobs.path(present["sha256"]), wanted.algorithm)
    else:
        got = present.get("checksums", {}).get(wanted.algorithm, wanted.checksum)
    if got.lower() != wanted.checksum.lower():
        task.log("calculating checksum of existing file...")
        raise PveError(f"checksum mismatch: got '{got}' != expect '{wanted.checksum}', aborting")
    task.log("calculating checksum of existing file...OK, got correct file already, no need to download")


def _store_placeholder(world: World, task: Task, wanted: Download) -> None:
    """Put a file without bytes; the checksum that the caller gives is taken for its own."""
    task.log("the lab stays on this machine: a stand-in takes the place of the file")
    known = {wanted.algorithm: wanted.checksum} if wanted.algorithm else None
    size = stand_in_size(wanted.url)
    with task.step():
        require_space(world, wanted.volid, wanted.node, size, _FULL)
        put_stand_in(world, wanted.volid, wanted.node, size, url=wanted.url, checksums=known)


async def _fetch(world: World, task: Task, wanted: Download) -> None:
    with world.blobs.scratch() as fetched, world.blobs.scratch() as plain:
        await world.fetcher.get(wanted.url, fetched, verify=wanted.verify)
        await files.verify(task, fetched, wanted.algorithm, wanted.checksum)
        result = fetched
        if wanted.compression:
            task.log(f"decompressing {wanted.path}.tmp_dwnl to {wanted.path}.tmp_dcom")
            await asyncio.to_thread(_decompress, fetched, plain, wanted.compression)
            result = plain
        try:
            files.check_image_format(result, files.image_format(wanted.content, wanted.name))
        except PveError as err:
            raise PveError(f"failed to verify file: {err.text}") from err
        blob = await world.blobs.adopt(result)
    try:
        with task.step():
            require_space(world, wanted.volid, wanted.node, blob.size, _FULL)
            put_file(world, wanted.volid, wanted.node, blob, url=wanted.url)
    finally:
        world.blobs.release(blob)


def _decompress(source: Path, target: Path, kind: str) -> None:
    if kind == "zst" and (content := unpack_zst(source)) is not None:
        target.write_bytes(content)
        return
    if kind not in ("gz", "bz2"):
        raise PveError(f"the lab cannot decompress '{kind}'")
    packed = gzip.GzipFile(source) if kind == "gz" else bz2.BZ2File(source)
    try:
        with packed, target.open("wb") as plain:
            shutil.copyfileobj(packed, plain)
    except (OSError, EOFError) as err:
        program = "zcat" if kind == "gz" else "bzip2 -d -c"
        raise PveError(f"command '{program} {source.name}' failed: exit code 1") from err
