"""Reading of backups: what is the default, what is inside an archive, which guests have none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.vzdump.archives import config_in, guest_volumes
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.cluster.jobs import BACKUP
from pvelab.world.guests.backup_scope import list_included_guests
from pvelab.world.storage.storages import type_of
from pvelab.world.storage.volume_access import check_volume_access
from pvelab.world.storage.volume_names import file_folder, parse_name
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["extract_config", "index_info", "list_not_backed_up", "list_volumes", "read_defaults"]

_HIDDEN = ("mailto", "tmpdir", "dumpdir", "script", "ionice")


@route("GET /nodes/{node}/vzdump/defaults")
def read_defaults(call: Call) -> Any:
    """Answer the options that a backup has when nothing is said."""
    storage = str(call.params.get("storage") or "local")
    call.check(f"/storage/{storage}", "Datastore.Audit", "Datastore.AllocateSpace", any_of=True)
    config = call.world.storages.config(storage)
    if "backup" not in call.world.storages.content_types(config):
        raise PveError(f"can't use storage '{storage}' for backups - wrong content type")
    answer: dict[str, Any] = {
        "all": 0,
        "bwlimit": 0,
        "compress": "0",
        "ionice": 7,
        "lockwait": 180,
        "mailnotification": "always",
        "mode": "snapshot",
        "notification-mode": "auto",
        "pigz": 0,
        "prune-backups": str(config.get("prune-backups") or "keep-all=1"),
        "quiet": 0,
        "remove": 1,
        "stdexcludes": 1,
        "stop": 0,
        "stopwait": 10,
        "storage": storage,
        "zstd": 1,
    }
    if type_of(config).files:
        answer["dumpdir"] = file_folder(config, "backup")
    if not call.may(f"/nodes/{call.node}", "Sys.Audit"):
        answer = {key: value for key, value in answer.items() if key not in _HIDDEN}
    return answer


@route("GET /nodes/{node}/vzdump/extractconfig")
def extract_config(call: Call) -> Any:
    """Answer the configuration in an archive as the text of its file."""
    volid = str(call.params["volume"])
    check_volume_access(call, volid, "backup")
    if ":" not in volid:
        raise PveError(f"ERROR: file '{volid}' does not exist")
    storage, name = parse_volume_id(volid)
    owner = parse_name(call.world.storages.config(storage), name).vmid
    if owner is not None:
        call.check(f"/vms/{owner}", "VM.Backup")
    return config_in(call.world, volid, call.node)


@route("GET /cluster/backup-info")
def index_info(_call: Call) -> Any:
    """List what there is to know about backup jobs together."""
    return [{"subdir": "not-backed-up"}]


@route("GET /cluster/backup-info/not-backed-up")
def list_not_backed_up(call: Call) -> Any:
    """List the guests that no backup job is for."""
    covered: set[int] = set()
    for job in call.store.items(BACKUP).values():
        for vmids in list_included_guests(call.world, job).values():
            covered.update(vmids)
    rows = []
    for guest in call.world.guests.all().values():
        vmid = int(guest["vmid"])
        if vmid in covered or not call.may(f"/vms/{vmid}", "VM.Audit"):
            continue
        name = guest["config"].get("name" if guest["type"] == "qemu" else "hostname")
        rows.append({"vmid": vmid, "type": guest["type"], **({"name": name} if name else {})})
    return rows


@route("GET /cluster/backup/{id}/included_volumes")
def list_volumes(call: Call) -> Any:
    """List the guests of a job, and which of their volumes its archives have."""
    ident, world = call.params["id"], call.world
    job = call.store.get(BACKUP, ident)
    if job is None:
        raise bad_parameter("id", f"No such job '{ident}'")
    children: list[dict[str, Any]] = []
    for vmid in sorted(vmid for vmids in list_included_guests(world, job).values() for vmid in vmids):
        if not call.may(f"/vms/{vmid}", "VM.Audit"):
            continue
        guest = world.guests.get(vmid)
        if guest is None:
            children.append({"id": vmid, "type": "unknown", "leaf": 1})
            continue
        key = "name" if guest["type"] == "qemu" else "hostname"
        volumes = [
            {
                "id": volume.key,
                "name": volume.volume,
                "included": int(volume.included),
                "reason": volume.reason,
                "leaf": 1,
            }
            for volume in guest_volumes(world, guest)
        ]
        row = {"id": vmid, "type": guest["type"], "children": volumes, "leaf": 0}
        children.append(row | ({"name": guest["config"][key]} if guest["config"].get(key) else {}))
    return {"children": children}
