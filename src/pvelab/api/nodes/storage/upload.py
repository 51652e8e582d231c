"""Uploading files: `POST /nodes/{node}/storage/{storage}/upload`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.storage import files
from pvelab.faults.latency import Work
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.storage.contents import put_file, require_space
from pvelab.world.storage.storages import type_of

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.storage.blobs import Blob
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["upload"]

_FULL = "import failed: cp: error writing '{}': No space left on device"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Upload:
    """A file that came, and what it is to become."""

    node: str
    volid: str
    path: str
    source: str
    kind: str | None
    blob: Blob
    algorithm: str | None
    checksum: str | None


@route("POST /nodes/{node}/storage/{storage}/upload")
async def upload(call: Call) -> Any:
    """Take over a file, and check and place it in a task; one of the same name is replaced."""
    params, world, node = call.params, call.world, call.node
    storage, content = str(params["storage"]), str(params["content"])
    config = world.storages.require(storage, node)
    if not type_of(config).files:
        raise PveError(f"can't upload to storage type '{config['type']}'")
    source = str(params.get("tmpfilename", ""))
    if not source:
        raise PveError("missing temporary file name")
    if call.upload is None:
        raise PveError(f"temporary file '{source}' does not exist")
    name = files.check_filename(content, str(params["filename"]))
    if content not in world.storages.content_types(config):
        raise PveError(f"storage '{storage}' does not support '{content}' content")
    arrived = _Upload(
        node=node,
        volid=f"{storage}:{content}/{name}",
        path=files.destination(config, content, name),
        source=source,
        kind=files.image_format(content, name),
        blob=await world.blobs.adopt(call.upload.path),
        algorithm=params.get("checksum-algorithm"),
        checksum=params.get("checksum"),
    )

    async def work(task: Task) -> None:
        try:
            await _place(world, task, arrived)
        finally:
            world.blobs.release(arrived.blob)

    return call.start_task("imgcopy", "", work)


async def _place(world: World, task: Task, arrived: _Upload) -> None:
    blob = arrived.blob
    task.log(f"starting file import from: {arrived.source}")
    kept = world.blobs.path(blob.sha256)
    await files.verify(task, kept, arrived.algorithm, arrived.checksum)
    files.check_image_format(kept, arrived.kind)
    task.log(f"target node: {arrived.node}\ntarget file: {arrived.path}\nfile size is: {blob.size}")
    task.log(f"command: cp -- {arrived.source} {arrived.path}")
    await task.spend(Work.UPLOAD)
    with task.step():
        require_space(world, arrived.volid, arrived.node, blob.size, _FULL)
        put_file(world, arrived.volid, arrived.node, blob)
    task.log("finished file import successfully")
