"""The way onto a node itself, for the few things that the API of Proxmox does not do."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

from stackyard.base.addresses import usable_address
from stackyard.clients.proxmox import quote
from stackyard.clients.ssh.host import Host
from stackyard.provider.problems import ProviderSettingsError
from stackyard.provider.settings import SSH_PORT, SshNode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.clients import ssh
    from stackyard.provider.kinds import Work
    from stackyard.provider.session import Session

__all__ = ["find_login", "open_shell", "sudo"]


@contextlib.asynccontextmanager
async def open_shell(work: Work, node: str) -> AsyncIterator[ssh.Shell]:
    """Log in to a node for the length of the block.

    Raises:
        ProviderSettingsError: No one says where its SSH server is.
        SshUnreachableError: It does not answer or does not accept the login.
    """
    from stackyard.clients import ssh  # lazy: asyncssh costs half a second, and few resources need it

    async with ssh.connect(await find_login(work.session, node)) as shell:
        yield shell


async def find_login(session: Session, node: str) -> Host:
    """Return the login that the caller has for a node, else what the provider block says.

    Raises:
        ProviderSettingsError: No one says where its SSH server is.
        ProxmoxError: The API cannot say it.
    """
    if node in session.logins:
        return session.logins[node]
    settings = session.settings.ssh
    known = settings.nodes.get(node) or SshNode(address=await _address(session, node), port=SSH_PORT)
    if session.other_login is not None:
        return dataclasses.replace(session.other_login, address=known.address, port=known.port)
    return Host(
        address=known.address,
        port=known.port,
        username=settings.username,
        password=settings.password,
        private_key=settings.private_key,
        agent_socket=settings.agent_socket if settings.use_agent else None,
        forwarded_agent=settings.agent_socket if settings.forwards_agent else None,
        socks5=settings.socks5,
    )


def sudo(shell: ssh.Shell) -> str:
    """Return what to put before a command that needs root."""
    return "" if shell.host.username == "root" else "sudo -n "


async def _address(session: Session, node: str) -> str:
    """Return the address of a node as its network has it: the one with a gateway before any other."""
    if session.settings.ssh.by_name:
        return node
    interfaces: list[dict[str, Any]] = await session.client.get(
        f"/nodes/{quote(node)}/network", max_age_s=60.0
    )
    for wanted in (("address", "gateway"), ("address6", "gateway6"), ("address",), ("address6",)):
        for interface in interfaces:
            address = usable_address(interface.get(wanted[0]))
            if address is not None and all(interface.get(name) for name in wanted):
                return address
    raise ProviderSettingsError(
        f"No interface of node {node} has an address, so that it cannot be reached over SSH.",
        remedy=f'Add `ssh {{ node {{ name = "{node}" address = "..." }} }}` to the provider block.',
    )
