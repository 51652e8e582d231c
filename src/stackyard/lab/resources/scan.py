"""What a node finds when it looks for storage: `/nodes/{node}/scan`.

Its own volume groups and pools are those of its disks. Servers are not asked: the lab stays on this machine.
It answers for a server that a defined storage is on, with what that storage uses there, and refuses every
other as one that does not answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.lab.physical import Physical
from stackyard.lab.problems import PveError
from stackyard.lab.resources.disks.lvm import group_rows
from stackyard.lab.resources.disks.zfs import zpool_rows
from stackyard.lab.routing import route

if TYPE_CHECKING:
    from stackyard.lab.call import Call
    from stackyard.lab.store import Document

__all__ = [
    "index_scan",
    "scan_cifs",
    "scan_iscsi",
    "scan_lvm",
    "scan_lvmthin",
    "scan_nfs",
    "scan_pbs",
    "scan_zfs",
]


@route("GET /nodes/{node}/scan")
def index_scan(_call: Call) -> Any:
    """List what can be looked for."""
    return [{"method": name} for name in ("cifs", "iscsi", "lvm", "lvmthin", "nfs", "pbs", "zfs")]


@route("GET /nodes/{node}/scan/lvm")
def scan_lvm(call: Call) -> Any:
    """List the volume groups of the node."""
    return [{"vg": row["name"]} for row in group_rows(call.world, call.node)]


@route("GET /nodes/{node}/scan/lvmthin")
def scan_lvmthin(call: Call) -> Any:
    """List the thin pools of a volume group."""
    pools = Physical(call.store, call.node).pools("lvmthin")
    return [{"lv": name} for name, pool in sorted(pools.items()) if pool["vg"] == call.params["vg"]]


@route("GET /nodes/{node}/scan/zfs")
def scan_zfs(call: Call) -> Any:
    """List the ZFS pools of the node."""
    return [{"pool": row["name"]} for row in zpool_rows(call.world, call.node)]


@route("GET /nodes/{node}/scan/nfs")
def scan_nfs(call: Call) -> Any:
    """List the exports of a server."""
    server = str(call.params["server"])
    found = _on(call, "nfs", server)
    if not found:
        raise PveError(f"clnt_create: RPC: Unable to receive from {server}")
    return [{"path": export, "options": "(everyone)"} for export in _values(found, "export")]


@route("GET /nodes/{node}/scan/cifs")
def scan_cifs(call: Call) -> Any:
    """List the shares of a server."""
    server = str(call.params["server"])
    found = _on(call, "cifs", server)
    if not found:
        raise PveError(f"do_connect: Connection to {server} failed (Error NT_STATUS_HOST_UNREACHABLE)")
    return [{"share": share, "description": ""} for share in _values(found, "share")]


@route("GET /nodes/{node}/scan/iscsi")
def scan_iscsi(call: Call) -> Any:
    """List the targets of a portal."""
    portal = str(call.params["portal"])
    host = portal.partition(":")[0]
    found = [
        config
        for kind in ("iscsi", "iscsidirect", "zfs")
        for config in call.world.storages.all().values()
        if config["type"] == kind and str(config.get("portal", "")).partition(":")[0] == host
    ]
    if not found:
        raise PveError(f"iscsi_scan: no portal '{portal}' answers")
    address = portal if ":" in portal else f"{portal}:3260"
    return [{"target": target, "portal": f"{address},1"} for target in _values(found, "target")]


@route("GET /nodes/{node}/scan/pbs")
def scan_pbs(call: Call) -> Any:
    """List the datastores of a backup server; its user and password are those of a defined storage."""
    server = str(call.params["server"])
    found = _on(call, "pbs", server)
    if not found:
        raise PveError(f"error fetching datastores - 500 Can't connect to {server}:8007")
    for name, config in call.world.storages.all().items():
        secret = (call.store.get("storage_secrets", name) or {}).get("password")
        knows = config in found and config.get("username") == call.params["username"]
        if knows and secret in (None, call.params["password"]):
            return [{"store": store} for store in _values(found, "datastore")]
    raise PveError("error fetching datastores - 401 authentication failure")


def _on(call: Call, kind: str, server: str) -> list[Document]:
    return [
        config
        for config in call.world.storages.all().values()
        if config["type"] == kind and config.get("server") == server
    ]


def _values(found: list[Document], key: str) -> list[str]:
    return sorted({str(config[key]) for config in found if config.get(key)})
