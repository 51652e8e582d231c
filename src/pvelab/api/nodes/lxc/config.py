"""The configuration of a container: `/nodes/{node}/lxc/{vmid}/{config,pending}`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc.disks import VolumeMaker
from pvelab.api.nodes.lxc.options import OptionCheck
from pvelab.api.nodes.lxc.pending import Changes, effective
from pvelab.api.nodes.lxc.settings import is_known, normalize
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError, bad_parameter, bad_parameters
from pvelab.server.routing import route
from pvelab.world.storage.allocation import Inline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Document

__all__ = ["read_config", "read_pending", "update_config"]

_NOT_CONFIG = frozenset(("node", "vmid", "digest", "delete", "revert"))
_BOTH = "cannot use 'snapshot' parameter with 'current'"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Update:
    """What one call wants to change."""

    values: Mapping[str, Any]
    delete: tuple[str, ...]
    revert: tuple[str, ...]

    @property
    def touched(self) -> frozenset[str]:
        """All options that it names."""
        return frozenset((*self.values, *self.delete, *self.revert))


@route("GET /nodes/{node}/lxc/{vmid}/config")
def read_config(call: Call) -> Any:
    """Answer the configuration, pending changes applied unless `current` asks for the present one."""
    params = call.params
    guest = call.world.guests.require("lxc", call.node, call.vmid)
    if "snapshot" in params and params.get("current"):
        raise bad_parameters({"snapshot": _BOTH, "current": _BOTH})
    if "snapshot" in params:
        found = guest["snapshots"].get(params["snapshot"])
        if found is None:
            raise PveError(f"snapshot '{params['snapshot']}' does not exist")
        config = dict(found["config"])
    else:
        config = dict(guest["config"]) if params.get("current") else effective(guest)
    return {**_readable(call, config), "digest": guest["digest"]}


@route("GET /nodes/{node}/lxc/{vmid}/pending")
def read_pending(call: Call) -> Any:
    """List every option with its present and its pending value."""
    guest = call.world.guests.require("lxc", call.node, call.vmid)
    config = _readable(call, guest["config"])
    pending, deleted = _readable(call, guest["pending"]), guest["pending_delete"]
    rows: list[dict[str, Any]] = [{"key": "digest", "value": guest["digest"]}]
    for key in sorted({*config, *pending}):
        if isinstance(config.get(key), list):
            continue
        row: dict[str, Any] = {"key": key}
        if key in config:
            row["value"] = config[key]
        if key in pending:
            row["pending"] = pending[key]
        if key in deleted:
            row["delete"] = 1
        rows.append(row)
    return rows


@route("PUT /nodes/{node}/lxc/{vmid}/config")
async def update_config(call: Call) -> Any:
    """Change options and answer when it is done."""
    params, world, node, vmid = call.params, call.world, call.node, call.vmid
    given = {key: value for key, value in params.items() if key not in _NOT_CONFIG}
    delete, revert = (tuple(split_list(params.get(name, ""))) for name in ("delete", "revert"))
    if not given and "delete" not in params and "revert" not in params:
        raise PveError("no options specified")
    async with call.guest_lock("lxc", vmid):
        guest = world.guests.require("lxc", node, vmid)
        world.guests.check_unlocked(guest)
        world.guests.check_digest(guest, params.get("digest"))
        _check(call, guest, _Update(values=given, delete=delete, revert=revert))
        update = _Update(values=normalize(world, node, given), delete=delete, revert=revert)
        worker = Inline(world)
        maker = VolumeMaker(world=world, worker=worker, node=node, vmid=vmid)
        made = await maker.create(
            _stage_changes(Changes(world, guest, worker), update).list_mounts(update.touched)
        )
        try:
            with call.transaction():
                changes = _stage_changes(Changes(world, guest, worker), update)
                changes.pending.update(made)
                changes.apply(update.touched)
        except PveError:
            maker.undo()
            raise
    return None


def _stage_changes(changes: Changes, update: _Update) -> Changes:
    changes.revert(update.revert)
    changes.delete(update.delete)
    changes.set(update.values)
    return changes


def _check(call: Call, guest: Document, update: _Update) -> None:
    """Refuse names that do not exist or are in two places, and what the caller may not change."""
    checks = OptionCheck(call, unprivileged=bool(guest["config"].get("unprivileged")), old=guest["config"])
    checks.check_delete(update.delete)
    checks.check_delete(update.revert)
    for name in update.revert:
        if not is_known(call.world, name):
            raise bad_parameter("revert", f"unknown option '{name}'")
        if name in update.values:
            raise bad_parameter("revert", f"you can't use '-{name}' and '-revert {name}' at the same time")
    for name in update.delete:
        if not is_known(call.world, name):
            raise bad_parameter("delete", f"unknown option '{name}'")
        if name in update.values:
            raise bad_parameter("delete", f"you can't use '-{name}' and -delete {name}' at the same time")
        if name in update.revert:
            text = f"you can't use '-delete {name}' and '-revert {name}' at the same time"
            raise bad_parameter("delete", text)
    checks.check_set(update.values)


def _readable(call: Call, config: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what only those see who may change options: environments tend to hold secrets."""
    hidden = () if call.may(f"/vms/{call.vmid}", "VM.Config.Options") else ("env",)
    return {key: value for key, value in config.items() if key not in hidden}
