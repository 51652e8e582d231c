"""What firewalls consist of, what rules can refer to, the macros, and the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.firewall.config import CLUSTER, FirewallConfig, load, scope_of
from pvelab.api.firewall.macros import MACROS
from pvelab.api.firewall.paths import with_sets
from pvelab.api.firewall.sdn_sets import visible_sets
from pvelab.server.routing import route

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = [
    "list_macros",
    "list_references",
    "read_log",
    "show_cluster",
    "show_guest",
    "show_node",
    "show_vnet",
]


@route("GET /cluster/firewall")
def show_cluster(_call: Call) -> Any:
    """List what the firewall of the cluster has."""
    return _make_index("aliases", "rules", "options", "groups", "ipset", "macros", "refs")


@route("GET /nodes/{node}/firewall")
def show_node(_call: Call) -> Any:
    """List what the firewall of a node has."""
    return _make_index("rules", "options", "log")


@route("GET /nodes/{node}/qemu/{vmid}/firewall", "GET /nodes/{node}/lxc/{vmid}/firewall")
def show_guest(_call: Call) -> Any:
    """List what the firewall of a guest has."""
    return _make_index("rules", "aliases", "ipset", "refs", "options")


@route("GET /cluster/sdn/vnets/{vnet}/firewall")
def show_vnet(_call: Call) -> Any:
    """List what the firewall of a virtual network has."""
    return _make_index("rules", "options")


@route("GET /cluster/firewall/macros")
def list_macros(_call: Call) -> Any:
    """List the macros."""
    return [{"macro": name, "descr": macro.description} for name, macro in MACROS.items()]


@route(*with_sets("GET refs"))
def list_references(call: Call) -> Any:
    """List the aliases and IP sets that rules can name as source and destination."""
    wanted = call.params.get("type")
    rows = _references(load(call.store, CLUSTER.key), "dc") + _references(visible_sets(call), "sdn")
    scope = scope_of(call)
    if scope is not CLUSTER:
        rows += _references(load(call.store, scope.key), "guest")
    return [row for row in rows if wanted in (None, row["type"])]


@route(
    "GET /nodes/{node}/firewall/log",
    "GET /nodes/{node}/qemu/{vmid}/firewall/log",
    "GET /nodes/{node}/lxc/{vmid}/firewall/log",
)
def read_log(call: Call) -> Any:
    """Answer the log: no packets pass through the lab, and Proxmox shows an empty file as this one line."""
    call.total = 1
    return [{"n": 1, "t": "no content"}]


def _make_index(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


def _references(config: FirewallConfig, scope: str) -> list[dict[str, str]]:
    rows = [
        _reference("ipset", name, scope, config.ipset_comments.get(name)) for name in sorted(config.ipset)
    ]
    rows += [
        _reference("alias", name, scope, alias.get("comment"))
        for name, alias in sorted(config.aliases.items())
    ]
    return rows


def _reference(kind: str, name: str, scope: str, comment: str | None) -> dict[str, str]:
    row = {"type": kind, "name": name, "ref": f"+{name}" if kind == "ipset" else name, "scope": scope}
    return {**row, "comment": comment} if comment else row
