"""Smaller calls on a VM: what its storages can do, removing disks, sending keys."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu import drives
from pvelab.api.nodes.qemu.pending import disk_volumes
from pvelab.api.nodes.qemu.power import check_root_only
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.guests import snapshots
from pvelab.world.storage.volume_features import has_feature
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call

__all__ = ["read_feature", "send_key"]

# The names that QEMU knows keys by, single characters aside.
_KEYS = frozenset(
    (
        *("shift", "shift_r", "alt", "alt_r", "ctrl", "ctrl_r", "menu", "esc", "minus", "equal", "backspace"),
        *("tab", "bracket_left", "bracket_right", "ret", "semicolon", "apostrophe", "grave_accent"),
        *("backslash", "comma", "dot", "slash", "asterisk", "spc", "caps_lock", "num_lock", "scroll_lock"),
        *("sysrq", "print", "home", "pgup", "pgdn", "end", "left", "up", "down", "right", "insert", "delete"),
        *("pause", "help", "meta_l", "meta_r", "compose", "less", "power", "sleep", "wake"),
        *(f"f{number}" for number in range(1, 25)),
    )
)


@route("GET /nodes/{node}/qemu/{vmid}/feature")
def read_feature(call: Call) -> Any:
    """Return whether a VM's storages can make snapshots, clones or copies, and which nodes see its disks."""
    guest = call.world.guests.require("qemu", call.node, call.vmid)
    name = call.params.get("snapname")
    config = snapshots.require(guest, name)["config"] if name else guest["config"]
    able = True
    for volid in disk_volumes(call.world, config).values():
        volume = call.world.volumes.find(volid, call.node) if ":" in volid else None
        if volume is None or not has_feature(call.world, call.params["feature"], volume, snapshot=bool(name)):
            able = False
    return {"hasFeature": int(able), "nodes": _nodes_with_disks(call, config)}


@route("PUT /nodes/{node}/qemu/{vmid}/sendkey")
def send_key(call: Call) -> Any:
    """Press keys; Ctrl, Alt and Del together boot the guest again."""
    check_root_only(call)
    world, keys = call.world, str(call.params["key"]).split("-")
    guest = world.guests.require("qemu", call.node, call.vmid)
    if guest["status"] != "running":
        raise PveError(f"VM {call.vmid} not running")
    for key in keys:
        if key not in _KEYS and not re.fullmatch(r"[a-z0-9]|kp_\w+|0x[0-9a-f]+", key):
            raise PveError(f"invalid parameter: {key}")
    if set(keys) == {"ctrl", "alt", "delete"}:
        world.guests.update(guest, run={**guest["run"], "booting_since": world.clock.now()})


def _nodes_with_disks(call: Call, config: Mapping[str, Any]) -> list[str]:
    world = call.world
    nodes = list(world.cluster.nodes())
    for key in drives.drive_keys(config):
        volid = str(drives.parse_drive(world.facts, key, str(config[key]))["file"])
        if ":" not in volid or volid.startswith("/"):
            continue
        definition = world.storages.config(parse_volume_id(volid)[0])
        if definition.get("disable"):
            return []
        if definition.get("nodes"):
            nodes = [node for node in nodes if world.storages.is_on(definition, node)]
        elif not world.storages.is_shared(definition):
            nodes = [node for node in nodes if node == call.node]
    return nodes
