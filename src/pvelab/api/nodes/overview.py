"""A node as a whole: what there is under it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.routing import route

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["index_node"]

_CHILDREN = (
    *("aplinfo", "apt", "capabilities", "ceph", "certificates", "config", "disks", "dns", "firewall"),
    *("hardware", "hosts", "journal", "lxc", "migrateall", "netstat", "network", "qemu"),
    *("query-oci-repo-tags", "query-url-metadata", "replication", "report", "rrd", "rrddata", "scan", "sdn"),
    *("services", "spiceshell", "startall", "status", "stopall", "storage", "subscription", "suspendall"),
    *("syslog", "tasks", "termproxy", "time", "version", "vncshell", "vzdump", "wakeonlan"),
)


@route("GET /nodes/{node}")
def index_node(_call: Call) -> Any:
    """List what there is of a node."""
    return [{"name": name} for name in _CHILDREN]
