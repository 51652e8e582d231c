"""What is inside of a storage and its volumes: `identity`, `import-metadata`, and the tags of images."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from stackyard.lab.appliances import read_appliance
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
    if "sha256" not in found:
        # The lab knows of a stand-in no more than its name and size.
        raise PveError(f"unable to extract the manifest of '{volid}': the lab has no bytes of it")
    machine = read_appliance(call.world.blobs.path(str(found["sha256"])), packed=parsed.format == "ova")
    own = volid if parsed.format == "ova" else volid.rpartition("/")[0]
    disks = {
        f"scsi{number}": {"volid": f"{own}/{disk.file}", "size": disk.size}
        for number, disk in enumerate(machine.disks)
    }
    arguments: dict[str, Any] = {"name": machine.name, "cores": machine.cores, "memory": machine.memory_mib}
    return {
        "type": "vm",
        "source": "esxi",
        "create-args": {key: value for key, value in arguments.items() if value},
        "disks": disks,
        "net": {f"net{number}": {"model": model} for number, model in enumerate(machine.networks)},
        "warnings": [{"type": "ova-needs-extracting"}] if parsed.format == "ova" else [],
    }


@route("GET /nodes/{node}/query-oci-repo-tags")
def list_tags(call: Call) -> Any:
    """List the tags of a repository of images, the same for each: the lab asks no registry."""
    return list(_TAGS)
