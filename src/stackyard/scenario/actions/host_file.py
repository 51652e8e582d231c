"""The file of a machine in the site, made from what the machine says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.scenario.actions.node_file import format_merge_message, read_machine_name
from stackyard.scenario.actions.setup import read_json
from stackyard.scenario.machines import Remote
from stackyard.scenario.model import ActionResult
from stackyard.sources.site.edit import merge_host

if TYPE_CHECKING:
    from stackyard.scenario.context import Context

__all__ = ["GenerateHostConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateHostConfig:
    """Writes hosts/NAME.yaml. What it says already stays, unless the user wants it overwritten."""

    async def run(self, context: Context) -> ActionResult:
        """Ask the machine and write the file."""
        name = await read_machine_name(context)
        links = await read_json(context, "ip -j address show", as_root=False)
        routes = await read_json(context, "ip -j route show default", as_root=False)
        fields: dict[str, Any] = {
            "host": name,
            "domain": (await context.sh("hostname -d 2>/dev/null; true", as_root=False)).strip() or None,
            "ip": _own_address(links, routes),
            "network": {"interfaces": await _interfaces(context, links, routes)},
            "storage": {"zfs_pools": await _pools(context)},
            "hardware": await _hardware(context),
            "access": _access(context),
        }
        merged = merge_host(context.root, name, _drop_empty(fields), overwrites=context.options.force)
        updates = {"host_name": name, "host_file": str(merged.path)}
        return ActionResult(success=True, message=format_merge_message(merged), context_updates=updates)


def _drop_empty(fields: dict[str, Any]) -> dict[str, Any]:
    """Return what there is something to say about."""
    return {
        key: value
        for key, value in fields.items()
        if value and (not isinstance(value, dict) or any(value.values()))
    }


def _global_address(link: dict[str, Any]) -> str | None:
    found = (
        one for one in link.get("addr_info", ()) if one.get("scope") == "global" and one["family"] == "inet"
    )
    return next((f"{one['local']}/{one['prefixlen']}" for one in found), None)


def _own_address(links: list[dict[str, Any]], routes: list[dict[str, Any]]) -> str | None:
    device = routes[0].get("dev") if routes else None
    ordered = sorted(links, key=lambda link: link.get("ifname") != device)
    found = (address for link in ordered if (address := _global_address(link)) is not None)
    return next((address.partition("/")[0] for address in found), None)


async def _interfaces(
    context: Context, links: list[dict[str, Any]], routes: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the interfaces that have an address, and what is below those that are bridges."""
    gateways = {route.get("dev"): route.get("gateway") for route in routes}
    listed = await context.sh('for port in /sys/class/net/*/brif/*; do echo "$port"; done', as_root=False)
    ports: dict[str, list[str]] = {}
    for line in listed.splitlines():
        parts = line.split("/")
        if len(parts) == 7 and parts[6] != "*":
            ports.setdefault(parts[4], []).append(parts[6])
    found: dict[str, Any] = {}
    for link in links:
        name, address = str(link["ifname"]), _global_address(link)
        if address is None or name == "lo":
            continue
        is_bridge = name in ports or name.startswith("vmbr")
        entry = {
            "type": "bridge" if is_bridge else "ethernet",
            "ports": ports.get(name),
            "address": address,
            "gateway": gateways.get(name),
        }
        found[name] = {key: value for key, value in entry.items() if value}
    return found


async def _pools(context: Context) -> list[dict[str, Any]]:
    listed = await context.sh("command -v zpool >/dev/null && zpool list -H -o name; true", as_root=False)
    return [{"name": line.strip()} for line in listed.splitlines() if line.strip()]


async def _hardware(context: Context) -> dict[str, Any]:
    cores = int((await context.sh("nproc", as_root=False)).strip())
    memory = (await context.sh("grep MemTotal: /proc/meminfo", as_root=False)).split()
    return {"cpu_cores": cores, "memory_gb": round(int(memory[1]) / 1024**2, 1)}


def _access(context: Context) -> dict[str, Any]:
    if not isinstance(context.machine, Remote):
        return {}
    host = context.machine.host
    return {"ssh_user": host.username} | ({"ssh_port": host.port} if host.port != 22 else {})
