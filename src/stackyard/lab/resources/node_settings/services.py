"""Services of a node: `/nodes/{node}/services`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.lab.latency import Work
from stackyard.lab.problems import PveError
from stackyard.lab.routing import route

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.lab.call import Call
    from stackyard.lab.tasks import Task

__all__ = [
    "index_service",
    "list_services",
    "read_service",
    "reload_service",
    "restart_service",
    "start_service",
    "stop_service",
]

_NAMES: Mapping[str, str] = {
    "chrony": "chrony, an NTP client/server",
    "corosync": "Corosync Cluster Engine",
    "cron": "Regular background program processing daemon",
    "ksmtuned": "Kernel Samepage Merging (KSM) Tuning Daemon",
    "lxcfs": "FUSE filesystem for LXC",
    "postfix": "Postfix Mail Transport Agent",
    "proxmox-firewall": "Proxmox nftables firewall",
    "pve-cluster": "The Proxmox VE cluster filesystem",
    "pve-firewall": "Proxmox VE firewall",
    "pve-ha-crm": "PVE Cluster HA Resource Manager Daemon",
    "pve-ha-lrm": "PVE Local HA Resource Manager Daemon",
    "pve-lxc-syscalld": "Proxmox VE LXC Syscall Daemon",
    "pvedaemon": "PVE API Daemon",
    "pvefw-logger": "Proxmox VE firewall logger",
    "pveproxy": "PVE API Proxy Server",
    "pvescheduler": "Proxmox VE scheduler",
    "pvestatd": "PVE Status Daemon",
    "qmeventd": "PVE Qemu Event Daemon",
    "spiceproxy": "PVE SPICE Proxy Server",
    "sshd": "OpenBSD Secure Shell server",
    "systemd-journald": "Journal Service",
}
# Named by the API, but not installed on a fresh node.
_ABSENT = ("syslog", "systemd-timesyncd")
_ESSENTIAL = frozenset(("pveproxy", "pvedaemon", "pve-cluster"))


@route("GET /nodes/{node}/services")
def list_services(call: Call) -> Any:
    """List the services with their states."""
    return [_row(call, name) for name in sorted((*_NAMES, *_ABSENT))]


@route("GET /nodes/{node}/services/{service}")
def index_service(_call: Call) -> Any:
    """List what can be done with a service."""
    return [{"subdir": name} for name in ("state", "start", "stop", "restart", "reload")]


@route("GET /nodes/{node}/services/{service}/state")
def read_service(call: Call) -> Any:
    """Answer the state of a service."""
    return _row(call, call.params["service"])


@route("POST /nodes/{node}/services/{service}/start")
def start_service(call: Call) -> Any:
    """Start a service in a task."""
    return _command(call, "start", runs=True)


@route("POST /nodes/{node}/services/{service}/stop")
def stop_service(call: Call) -> Any:
    """Stop a service in a task, unless the node would not answer without it."""
    return _command(call, "stop", runs=False)


@route("POST /nodes/{node}/services/{service}/restart")
def restart_service(call: Call) -> Any:
    """Restart a service in a task."""
    return _command(call, "restart", runs=True)


@route("POST /nodes/{node}/services/{service}/reload")
def reload_service(call: Call) -> Any:
    """Reload a service in a task; one that does not run stays as it is."""
    return _command(call, "reload", runs=None)


def _row(call: Call, name: str) -> dict[str, Any]:
    stopped = name in (call.store.get("services", call.node) or {}).get("stopped", ())
    running = name in _NAMES and not stopped
    return {
        "service": name,
        "name": name,
        "desc": _NAMES.get(name, f"{name}.service"),
        "state": "running" if running else "dead",
        "unit-state": "enabled" if name in _NAMES else "not-found",
        "active-state": "active" if running else "inactive",
    }


def _command(call: Call, command: str, *, runs: bool | None) -> str:
    store, node, name = call.store, call.node, call.params["service"]

    async def work(task: Task) -> None:
        if name in _ESSENTIAL and command == "stop":
            raise PveError(f"invalid service cmd '{name} stop': refusing to stop essential service!")
        if name not in _NAMES:
            systemctl = "try-reload-or-restart" if command == "reload" else command
            raise PveError(f"command 'systemctl {systemctl} {name}' failed: exit code 5")
        await task.spend(Work.RELOAD)
        if runs is not None:
            with task.step():
                stopped = set((store.get("services", node) or {}).get("stopped", ()))
                changed = stopped - {name} if runs else stopped | {name}
                store.put("services", node, {"stopped": sorted(changed)})

    return call.start_task(f"srv{command}", name, work)
