"""Templates and images by name: `/nodes/{node}/aplinfo` and `.../storage/{storage}/oci-registry-pull`.

The lab asks no server for either: what it puts into the storage is a stand-in of a plausible size. A
container that is created from the stand-in of an image runs a shell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.storage import files
from pvelab.faults.latency import Work
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.storage.contents import put_stand_in, require_space
from pvelab.world.storage.download import stand_in_size
from pvelab.world.storage.storages import type_of
from pvelab.world.storage.volume_names import normal_filename

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.tasks import Task

__all__ = ["download_template", "list_tags", "list_templates", "pull_image"]

_FULL = "download failed: Cannot write to '{}' (No space left on device)."
_TAGS = ("latest", "stable", "1", "1.0", "1.1")
_IMAGE: Mapping[str, Any] = {
    "entrypoint": "/bin/sh",
    "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
}


def _template(package: str, version: str, system: str, ending: str, headline: str) -> Mapping[str, str]:
    return {
        "package": package,
        "version": version,
        "type": "lxc",
        "os": system,
        "section": "system",
        "architecture": "amd64",
        "headline": headline,
        "template": f"{package}_{version}_amd64.{ending}",
    }


_TEMPLATES = (
    _template("alpine-3.22-default", "20250617", "alpine", "tar.xz", "LXC default image for alpine 3.22"),
    _template(
        "almalinux-10-default", "20250930", "almalinux", "tar.xz", "LXC default image for almalinux 10"
    ),
    _template("debian-12-standard", "12.12-1", "debian-12", "tar.zst", "Debian 12 Bookworm (standard)"),
    _template("debian-13-standard", "13.1-2", "debian-13", "tar.zst", "Debian 13 Trixie (standard)"),
    _template("ubuntu-22.04-standard", "22.04-1", "ubuntu-22.04", "tar.zst", "Ubuntu 22.04 Jammy (standard)"),
    _template("ubuntu-24.04-standard", "24.04-2", "ubuntu-24.04", "tar.zst", "Ubuntu 24.04 Noble (standard)"),
)


@route("GET /nodes/{node}/aplinfo")
def list_templates(_call: Call) -> Any:
    """List the templates that can be had."""
    return [dict(template) for template in _TEMPLATES]


@route("POST /nodes/{node}/aplinfo")
def download_template(call: Call) -> Any:
    """Put a template of the list into a storage, in a task."""
    storage, template, world, node = call.params["storage"], call.params["template"], call.world, call.node
    if template not in {one["template"] for one in _TEMPLATES}:
        raise bad_parameter("template", "no such template")
    config = world.storages.require(storage, node)
    if "vztmpl" not in world.storages.content_types(config):
        raise PveError(f"storage '{storage}' does not support templates")
    path, volid = files.destination(config, "vztmpl", template), f"{storage}:vztmpl/{template}"

    async def work(task: Task) -> None:
        if world.volumes.find(volid, node) is not None:
            text = "calculating checksum of existing file...OK, got correct file already, no need to download"
            task.log(text)
            return
        task.log(f"downloading {template} to {path}")
        await task.spend(Work.DOWNLOAD)
        size = stand_in_size(template)
        with task.step():
            require_space(world, volid, node, size, _FULL)
            put_stand_in(world, volid, node, size)
        task.log(f"download of '{template}' to '{path}' finished")

    return call.start_task("download", template, work)


@route("GET /nodes/{node}/query-oci-repo-tags")
def list_tags(_call: Call) -> Any:
    """List the tags of a repository of images, the same for each."""
    return list(_TAGS)


@route("POST /nodes/{node}/storage/{storage}/oci-registry-pull")
def pull_image(call: Call) -> Any:
    """Put an image of a registry into a storage, in a task."""
    params, world, node = call.params, call.world, call.node
    storage, reference = str(params["storage"]), str(params["reference"])
    config = world.storages.require(storage, node)
    if not type_of(config).files:
        raise PveError(f"can't upload to storage type '{config['type']}', not a file based storage!")
    if "vztmpl" not in world.storages.content_types(config):
        raise PveError(f"storage '{storage}' is not configured for content-type 'vztmpl'")
    name = f"{normal_filename(str(params.get('filename', reference)))}.tar"
    volid = f"{storage}:vztmpl/{name}"
    if world.volumes.find(volid, node) is not None:
        raise PveError(f"refusing to override existing file '{name}'")

    async def work(task: Task) -> None:
        task.log("Getting image source signatures")
        await task.spend(Work.DOWNLOAD)
        size = stand_in_size(f"{reference}.tar")
        with task.step():
            require_space(world, volid, node, size, "writing blob: write {}: no space left on device")
            put_stand_in(world, volid, node, size, oci={**_IMAGE, "reference": reference})
        task.log("Writing manifest to image destination")

    return call.start_task("ociregistrypull", name, work)
