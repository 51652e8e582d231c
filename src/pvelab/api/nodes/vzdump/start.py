"""Starting backups: `POST /nodes/{node}/vzdump`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.backup import check_parameters_allowed
from pvelab.api.nodes.vzdump.job import BackupJob, check_notes_template
from pvelab.server.params import properties
from pvelab.server.params.property_formats import PROPERTY_FORMATS
from pvelab.server.params.texts import FormatError, split_list
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.guests.backup_scope import list_included_guests

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.world import World

__all__ = ["command_line", "start_backup"]

_TEXTS = {
    "fleecing": "backup-fleecing",
    "performance": "backup-performance",
    "prune-backups": "prune-backups",
}
_NOT_IN_COMMAND = frozenset(("id", "vmid", "starttime", "dow", "stdout", "enabled", "job-id", "type", "node"))


@route("POST /nodes/{node}/vzdump")
def start_backup(call: Call) -> Any:
    """Back up guests of a node, in a task."""
    options, world, node = _options(call), call.world, call.node
    by_node = list_included_guests(world, options)
    local = [*by_node.pop(node, []), *by_node.pop("", [])]
    skipped = [vmid for vmids in by_node.values() for vmid in vmids]
    if options.get("stop"):
        call.check(f"/nodes/{node}", "Sys.Modify")
        _stop_running(world, node)
        if not local:
            return "OK"
    if not local and not options.get("all"):
        return "OK"
    call.check(f"/storage/{options.get('storage') or 'local'}", "Datastore.AllocateSpace")
    job = BackupJob(
        world=world,
        node=node,
        vmids=_select_permitted(call, local, everything=bool(options.get("all"))),
        options=options,
        command=command_line(call.params),
        skipped=skipped,
    )
    return call.start_task("vzdump", local[0] if len(local) == 1 else "", job.run)


def command_line(params: Mapping[str, Any]) -> str:
    """Return the options of a backup as the command that would make it."""
    words = ["vzdump", *split_list(str(params.get("vmid", "")))]
    for key, value in params.items():
        if key in _NOT_IN_COMMAND or value in ("", None):
            continue
        if isinstance(value, list):
            words += [f"--{key} {shlex.quote(str(one))}" for one in value]
            continue
        text = (
            ",".join(f"{name}={one}" for name, one in value.items())
            if isinstance(value, dict)
            else str(value)
        )
        words.append(f"--{key} {shlex.quote(text)}")
    return " ".join(words)


def _options(call: Call) -> dict[str, Any]:
    params = {key: value for key, value in call.params.items() if key != "node"}
    if params.get("stdout"):
        raise bad_parameter("stdout", "option is only allowed on the command line interface.")
    check_parameters_allowed(call, params)
    if "prune-backups" in params and not call.is_root and not params.get("dumpdir"):
        call.check(f"/storage/{params.get('storage') or 'local'}", "Datastore.Allocate")
    for key in ("all", "exclude", "pool"):
        if params.get(key) and params.get("vmid"):
            raise bad_parameter(key, "option conflicts with option 'vmid'")
    for key, name in _TEXTS.items():
        if key in params:
            params[key] = _parse_properties(name, str(params[key]))
    wrong = check_notes_template(str(params.get("notes-template", "")))
    if wrong is not None:
        raise bad_parameter("notes-template", wrong)
    if "exclude" in params and not params.get("pool"):
        params["all"] = 1
    if not any(params.get(key) for key in ("all", "stop", "pool", "vmid")):
        raise bad_parameter("vmid", "property is missing")
    if params.get("dumpdir"):
        # Outside of storages there are no folders that an archive could be put into.
        raise PveError(f"dumpdir '{params['dumpdir']}' does not exist")
    return params


def _parse_properties(name: str, text: str) -> dict[str, Any]:
    try:
        return properties.parse(PROPERTY_FORMATS[name], text)
    except FormatError as err:
        raise PveError(str(err)) from err


def _select_permitted(call: Call, vmids: list[int], *, everything: bool) -> list[int]:
    """Return the guests that the caller may back up; without `all`, one that he may not is refused."""
    if not everything:
        for vmid in vmids:
            if call.world.guests.get(vmid) is not None:
                call.check(f"/vms/{vmid}", "VM.Backup")
        return vmids
    return [vmid for vmid in vmids if call.may(f"/vms/{vmid}", "VM.Backup")]


def _stop_running(world: World, node: str) -> None:
    for task in world.tasks.newest_first():
        if task["type"] == "vzdump" and task["node"] == node and world.tasks.is_running(task["upid"]):
            world.tasks.stop(task["upid"])
