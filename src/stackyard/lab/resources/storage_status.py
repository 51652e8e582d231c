"""Storages as a node sees them: `/nodes/{node}/storage`, their status and the list of their content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.lab.params.texts import split_list
from stackyard.lab.problems import bad_parameter
from stackyard.lab.routing import route
from stackyard.lab.storages import type_of

if TYPE_CHECKING:
    from stackyard.lab.call import Call
    from stackyard.lab.store import Document

__all__ = ["list_content", "list_storages", "read_status"]

_SEEN_BY = ("Datastore.Audit", "Datastore.AllocateSpace")


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
            status["formats"] = {"supported": sorted(kind.formats), "default": kind.default_format}
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
    wanted = split_list(params["content"]) if "content" in params else storages.content_types(config)
    rows = []
    for volume in storages.volumes(storage, call.node):
        if volume["content"] not in wanted or params.get("vmid", volume.get("vmid")) != volume.get("vmid"):
            continue
        if _may_see(call, storage, volume):
            rows.append(volume_row(volume))
    return rows


def volume_row(volume: Document) -> dict[str, Any]:
    """Return what lists tell of a volume."""
    hidden = ("storage", "scope", "place", "sha256", "url")
    return {key: value for key, value in volume.items() if key not in hidden}


def _takes(config: Document, content: str | None) -> bool:
    offered = split_list(str(config.get("content", "")))
    return content is None or any(kind in offered for kind in split_list(content))


def _may_see(call: Call, storage: str, volume: Document) -> bool:
    if call.may(f"/storage/{storage}", "Datastore.Allocate"):
        return True
    if volume["content"] in ("iso", "vztmpl", "import"):
        return call.may(f"/storage/{storage}", *_SEEN_BY, any_of=True)
    owner = volume.get("vmid")
    if owner is None:
        return False
    if volume["content"] == "backup":
        return call.may(f"/vms/{owner}", "VM.Backup")
    return call.may(f"/storage/{storage}", "Datastore.Audit") and call.may(f"/vms/{owner}", "VM.Config.Disk")
