"""What is inside of a storage and its volumes: `identity`, `import-metadata`, and the tags of images."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from stackyard.lab.contents import disk_size
from stackyard.lab.problems import PveError, bad_parameter
from stackyard.lab.routing import route
from stackyard.lab.storages import type_of
from stackyard.lab.volume_access import check_volume_access
from stackyard.lab.volume_names import parse_name
from stackyard.lab.volumes import parse_volume_id

if TYPE_CHECKING:
    from stackyard.lab.call import Call

__all__ = ["list_tags", "read_identity", "read_import_metadata"]

_TAGS = ("latest", "stable", "1", "1.0", "1.1")


@route("GET /nodes/{node}/storage/{storage}/identity")
def read_identity(call: Call) -> Any:
    """Answer what tells a storage apart from all others, whatever it is called."""
    storage = str(call.params["storage"])
    config = call.world.storages.require(storage, call.node)
    scope = call.world.storages.scope(storage, call.node)
    where = "|".join(
        str(config.get(key, "")) for key in ("server", "export", "path", "vgname", "pool", "portal")
    )
    return {"type": config["type"], "id": hashlib.sha256(f"{scope}|{where}".encode()).hexdigest()[:32]}


@route("GET /nodes/{node}/storage/{storage}/import-metadata")
def read_import_metadata(call: Call) -> Any:
    """Answer the parameters with which a VM is made from an appliance or an image."""
    storage, volume = str(call.params["storage"]), str(call.params["volume"])
    volid = volume if ":" in volume else f"{storage}:{volume}"
    named, name = parse_volume_id(volid)
    if named != storage:
        raise bad_parameter("volume", f"storage ID mismatch ({named} != {storage})")
    check_volume_access(call, volid)
    config = call.world.storages.require(storage, call.node)
    if config["type"] != "esxi" and not type_of(config).files:
        raise PveError(f"storage type '{config['type']}' does not support import")
    parsed = parse_name(config, name)
    if parsed.content != "import":
        raise PveError(f"unable to use volume {volid} - content type needs to be 'import'")
    found = call.world.volumes.require(volid, call.node)
    if parsed.format not in ("ova", "ovf"):
        raise PveError(f"{volid} is not an OVA/OVF file")
    plain = parsed.name.rpartition(".")[0]
    disk = f"{volid}/{plain}-disk1.vmdk"
    return {
        "type": "vm",
        "source": "esxi",
        "create-args": {"name": plain.replace("_", "-"), "cores": 2, "memory": 2048, "ostype": "l26"},
        "disks": {"scsi0": {"volid": disk, "size": disk_size(found)}},
        "net": {"net0": {"model": "virtio"}},
        "warnings": [{"type": "ova-needs-extracting"}] if parsed.format == "ova" else [],
    }


@route("GET /nodes/{node}/query-oci-repo-tags")
def list_tags(call: Call) -> Any:
    """List the tags of a repository of images, the same for each: the lab asks no registry."""
    return list(_TAGS)
