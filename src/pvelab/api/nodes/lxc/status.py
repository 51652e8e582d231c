"""What containers there are and how they are: `/nodes/{node}/lxc`, their status, interfaces and features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc import mountpoints
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.guests.addresses import LOOPBACK, Interface, addresses_of
from pvelab.world.guests.rows import guest_status
from pvelab.world.ha.config import guest_status as ha_status
from pvelab.world.storage.volume_features import has_feature

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = [
    "all_have_feature",
    "index_container",
    "list_containers",
    "list_status",
    "read_current",
    "read_feature",
    "read_interfaces",
]

_SUBDIRECTORIES = (
    *("config", "pending", "status", "vncproxy", "termproxy", "vncwebsocket", "spiceproxy", "migrate"),
    *("clone", "rrd", "rrddata", "firewall", "snapshot", "resize", "interfaces"),
)
_MIB = 2**20
_FORMATS = frozenset(("raw", "subvol"))


@route("GET /nodes/{node}/lxc")
def list_containers(call: Call) -> Any:
    """List the containers of a node that the caller may see."""
    return [
        _status(call.world, guest)
        for guest in call.world.guests.on_node(call.node, "lxc")
        if call.may(f"/vms/{guest['vmid']}", "VM.Audit")
    ]


@route("GET /nodes/{node}/lxc/{vmid}")
def index_container(call: Call) -> Any:
    """List what there is of a container."""
    call.world.guests.require("lxc", call.node, call.vmid)
    return [{"subdir": name} for name in _SUBDIRECTORIES]


@route("GET /nodes/{node}/lxc/{vmid}/status")
def list_status(call: Call) -> Any:
    """List the commands on a container's state."""
    call.world.guests.require("lxc", call.node, call.vmid)
    return [{"subdir": name} for name in ("current", "start", "stop", "shutdown", "reboot", "migrate")]


@route("GET /nodes/{node}/lxc/{vmid}/status/current")
def read_current(call: Call) -> Any:
    """Answer the state of a container."""
    guest = call.world.guests.require("lxc", call.node, call.vmid)
    return {**_status(call.world, guest), "ha": ha_status(call.store, f"ct:{call.vmid}")}


@route("GET /nodes/{node}/lxc/{vmid}/interfaces")
def read_interfaces(call: Call) -> Any:
    """List the interfaces inside a container with their addresses; nothing while it is stopped."""
    guest = call.world.guests.require("lxc", call.node, call.vmid)
    if guest["status"] != "running":
        return None
    return [_interface(one) for one in (LOOPBACK, *addresses_of(call.world, guest))]


@route("GET /nodes/{node}/lxc/{vmid}/feature")
def read_feature(call: Call) -> Any:
    """Return whether a container can be cloned, copied or have snapshots."""
    guest = call.world.guests.require("lxc", call.node, call.vmid)
    config, snapshot = guest["config"], call.params.get("snapname")
    if snapshot is not None:
        if snapshot not in guest["snapshots"]:
            raise PveError(f"snapshot '{snapshot}' does not exist")
        config = guest["snapshots"][snapshot]["config"]
    found = all_have_feature(
        call.world, call.params["feature"], config, call.node, snapshot=snapshot is not None
    )
    return {"hasFeature": int(found)}


def all_have_feature(
    world: World, feature: str, config: Mapping[str, Any], node: str, *, snapshot: bool = False
) -> bool:
    """Tell whether something can be done with every volume of a configuration; bind mounts can do nothing."""
    formats = _FORMATS if feature in ("copy", "clone") else None
    for _, point in mountpoints.each_volume(world.facts, config):
        volid = str(point["volume"])
        volume = world.volumes.find(volid, node) if ":" in volid and not volid.startswith("/") else None
        if volume is None or not has_feature(world, feature, volume, snapshot=snapshot, formats=formats):
            return False
    return True


def _status(world: World, guest: Document) -> dict[str, Any]:
    status = guest_status(world, guest)
    del status["memhost"]
    swap = int(guest["config"].get("swap", 0)) * _MIB
    return {**status, "type": "lxc", "maxswap": swap, "swap": 0}


def _interface(interface: Interface) -> dict[str, Any]:
    row: dict[str, Any] = {"name": interface.name}
    listed = []
    for one in interface.addresses:
        row[one.family] = f"{one.address}/{one.prefix}"
        listed.append({"ip-address-type": one.family, "ip-address": one.address, "prefix": one.prefix})
    mac = interface.mac.lower()
    return {**row, "ip-addresses": listed, "hardware-address": mac, "hwaddr": mac}
