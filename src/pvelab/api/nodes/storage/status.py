"""Storages as a node sees them: `/nodes/{node}/storage`, their status and the list of their content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.storage.storages import type_of
from pvelab.world.storage.volume_access import check_volume_access

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["list_content", "list_storages", "read_status", "volume_row"]

_SEEN_BY = ("Datastore.Audit", "Datastore.AllocateSpace")
_SHOWN = ("volid", "content", "format", "size", "ctime", "vmid", "parent", "notes", "protected")


@route("GET /nodes/{node}/storage")
def list_storages(call: Call) -> Any:
    """List the storages of a node with how full they are."""
    params, storages = call.params, call.world.storages
    if "storage" in params and params["storage"] not in storages.all():
        raise bad_parameter("storage", "No such storage.")
    target = params.get("target", call.node)
    rows = []
    for storage, config in storages.all().items():
        status = storages.status(storage, call.node)
        if params.get("storage", storage) != storage or not call.may(
            f"/storage/{storage}", *_SEEN_BY, any_of=True
        ):
            continue
        if params.get("enabled") and config.get("disable"):
            continue
        if not _takes(config, params.get("content")) or ("content" in params and not status["enabled"]):
            continue
        if target != call.node and not (status["shared"] and storages.is_on(config, target)):
            continue
        if status["total"]:
            status["used_fraction"] = status["used"] / status["total"]
        if params.get("format"):
            kind = type_of(config)
            default = config.get("format", kind.default_format)
            status["formats"] = {"supported": sorted(kind.formats), "default": default}
        rows.append({"storage": storage, **status})
    return rows


@route("GET /nodes/{node}/storage/{storage}/status")
def read_status(call: Call) -> Any:
    """Answer how full a storage is."""
    if call.params["storage"] not in call.world.storages.all():
        raise bad_parameter("storage", "No such storage.")
    return call.world.storages.status(call.params["storage"], call.node)


@route("GET /nodes/{node}/storage/{storage}/content")
def list_content(call: Call) -> Any:
    """List the volumes of a storage, of one kind of content or of one guest."""
    params, storages = call.params, call.world.storages
    storage = params["storage"]
    config = storages.require(storage, call.node)
    offered = storages.content_types(config)
    wanted = [params["content"]] if "content" in params else offered
    rows = []
    for volume in storages.volumes(storage, call.node):
        row = volume_row(call.world, volume)
        if row["content"] not in wanted or row["content"] not in offered or not _fits(volume, params):
            continue
        if _may_see(call, str(volume["volid"])):
            rows.append(row)
    return sorted(rows, key=lambda row: str(row["volid"]).lower())


def volume_row(world: World, volume: Document) -> dict[str, Any]:
    """Return what lists tell of a volume."""
    row = {key: volume[key] for key in _SHOWN if key in volume}
    if row["content"] in ("images", "rootdir"):
        # Disks of containers are distinguished by their guest alone.
        guest = world.guests.get(int(row["vmid"])) if "vmid" in row else None
        row["content"] = "rootdir" if guest is not None and guest["type"] == "lxc" else "images"
    if "notes" in row:
        row["notes"] = str(row["notes"]).partition("\n")[0]
    if not row.get("protected"):
        row.pop("protected", None)
    if row["content"] == "backup":
        container = "vzdump-lxc-" in str(row["volid"]) or row.get("format") == "pbs-ct"
        row["subtype"] = "lxc" if container else "qemu"
    return row


def _fits(volume: Document, params: Mapping[str, Any]) -> bool:
    """Return whether a volume belongs to the guest that was asked for; snippets and images always do."""
    if "vmid" not in params or volume["content"] in ("snippets", "import"):
        return True
    return bool(volume.get("vmid") == params["vmid"])


def _takes(config: Document, content: str | None) -> bool:
    offered = split_list(str(config.get("content", "")))
    return content is None or any(kind in offered for kind in split_list(content))


def _may_see(call: Call, volid: str) -> bool:
    if call.sees_all:
        return True
    try:
        check_volume_access(call, volid)
    except PveError:
        return False
    return True
