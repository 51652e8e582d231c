"""The address that this machine has on its way to a cluster: what a firewall there sees of it."""

from __future__ import annotations

import asyncio
import socket
import urllib.parse
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.addresses import is_loopback
from stackyard.guard.facts import Operator

if TYPE_CHECKING:
    from stackyard.clients import proxmox
    from stackyard.path.target import Resolved

__all__ = ["find_endpoint", "find_operator"]

_API, _SSH = 8006, 22
# Where a node has the files of its cluster.
_CLUSTER_FILES = Path("/etc/pve/nodes")


async def find_endpoint(connection: proxmox.Connection) -> Operator:
    """Return the address of the node whose API is called."""
    url = urllib.parse.urlsplit(connection.base_url())
    _, endpoint = await asyncio.to_thread(_look, url.hostname or "", url.port or _API)
    return Operator(endpoint=endpoint)


async def find_operator(resolved: Resolved) -> Operator:
    """Return where this machine reaches a cluster from; what cannot be told is empty."""
    url = urllib.parse.urlsplit(resolved.connection.base_url())
    login = None if resolved.ssh is None else resolved.ssh.other
    ssh = (login.address, login.port) if login is not None else (url.hostname or "", _SSH)
    # Through other machines, a node sees their address.
    is_direct = login is None or (login.via is None and login.socks5 is None and login.proxy_command is None)
    (api, endpoint), (shell, _) = await asyncio.gather(
        asyncio.to_thread(_look, url.hostname or "", url.port or _API), asyncio.to_thread(_look, *ssh)
    )
    is_proxied = "https" in urllib.request.getproxies() and not urllib.request.proxy_bypass(
        url.hostname or ""
    )
    return Operator(
        api="" if is_proxied else _as_seen(api), ssh=_as_seen(shell) if is_direct else "", endpoint=endpoint
    )


def _as_seen(address: str) -> str:
    """Return our address as a node sees it: through a tunnel that begins on this machine, it has another."""
    return address if not is_loopback(address) or _CLUSTER_FILES.is_dir() else ""


def _look(host: str, port: int) -> tuple[str, str]:
    """Return our address and theirs, without sending anything."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0]), str(address[0])
    except OSError:
        return "", ""
