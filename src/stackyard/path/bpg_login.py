"""How bpg's provider logs in to nodes: as OpenSSH's settings say, as far as its `ssh` block has words for it.

The built-in provider logs in as `ssh` does. bpg's has one user for all nodes, an address and a port for each,
and no machine in between: what else the settings say of a node is a warning, where a plan needs the login.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind, Severity
from stackyard.desired import Container, Snippet, Vm
from stackyard.guard import Finding
from stackyard.render.names import label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.clients.ssh.host import Host
    from stackyard.guard.implied import ImpliedCalls
    from stackyard.path.target import Resolved, SshAccess

__all__ = ["find_unlike_logins", "with_bpg_logins"]

UNLIKE = Kind(
    code="W-PROVIDER-SSH",
    summary="bpg's provider cannot log in to a node as OpenSSH's settings say",
    remedy="Use the built-in provider, which logs in as `ssh` does; or let the settings of OpenSSH lead to "
    "the node directly, with the same user for every node.",
    severity=Severity.WARNING,
)
_IMPORT = ":import/"


def with_bpg_logins(resolved: Resolved) -> Resolved:
    """Return a target with what OpenSSH's settings say of its nodes: the user, the addresses and ports.

    Raises:
        SshConfigError: They cannot be read.
    """
    if resolved.ssh is None:
        return resolved
    from stackyard.clients.ssh.openssh import resolve_login  # lazy: asyncssh, for bpg's provider alone

    logins = {node: resolve_login(host) for node, host in resolved.ssh.logins.items()}
    first = next(iter(logins.values()), None) or resolve_login(resolved.ssh.other)
    access = dataclasses.replace(
        resolved.ssh,
        user=first.username,
        nodes=tuple((node, login.address, login.port) for node, login in logins.items()),
        logins=logins,
        other=resolved.ssh.other if logins else first,
    )
    return dataclasses.replace(resolved, ssh=access)


def find_unlike_logins(implied: ImpliedCalls, access: SshAccess | None) -> Iterator[Finding]:
    """Report nodes to which a plan has to log in, and bpg's provider cannot as OpenSSH would.

    Args:
        implied: What the plan does.
        access: The logins as OpenSSH's settings say.
    """
    if access is None:
        return
    for node, (why, of) in sorted(_list_login_nodes(implied).items()):
        login = access.logins.get(node)
        for said in () if login is None else _list_unsupported(login, access.user):
            detail = f"{node} is logged in to for {why}, and {said}."
            yield Finding(kind=UNLIKE, detail=detail, label=of)


def _list_unsupported(login: Host, user: str) -> Iterator[str]:
    """Return what the settings say of a node and the block `ssh` has no word for."""
    if login.via is not None:
        yield f"`ProxyJump` leads through {login.via}: bpg's provider connects to {login.address} directly"
    if login.proxy_command is not None:
        yield f"`ProxyCommand` leads there: bpg's provider connects to {login.address} directly"
    if login.username != user:
        yield f"its user is {login.username}: bpg's provider has one for all nodes, {user}"


def _list_login_nodes(implied: ImpliedCalls) -> dict[str, tuple[str, str]]:
    """Return the nodes that bpg's provider logs in to, each with what for and the label of the guest.

    It writes snippets over SSH, id maps of containers, and disks from images that are not of the content
    `import`.
    """
    nodes: dict[str, tuple[str, str]] = {}
    for guest in implied.new_guests:
        if isinstance(guest, Container) and guest.id_maps:
            nodes.setdefault(guest.node, (f"the id maps of {guest.name}", label(guest.key)))
        if isinstance(guest, Vm) and not guest.imported:
            for disk in guest.disks:
                file = None if disk.file is None else implied.file(disk.file)
                volume = file.volume_id if file is not None else disk.file
                if isinstance(volume, str) and _IMPORT not in volume:
                    nodes.setdefault(guest.node, (f"the disk of {guest.name}", label(guest.key)))
    for file in implied.desired.files:
        if isinstance(file, Snippet) and file.key in implied.files:
            owner = file.key.partition("/")[0]
            nodes.setdefault(file.node, (f"the snippet {file.file_name}", label(owner)))
    return nodes
