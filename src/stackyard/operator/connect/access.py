"""Who may do what: whether the caller may create a token, what it gets, and what a given token lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients.proxmox.access import AccessRequest
from stackyard.guard.rights import Grant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackyard.clients import proxmox
    from stackyard.guard.features import NeededPrivilege

__all__ = [
    "find_missing_grants",
    "find_missing_privileges",
    "make_access_request",
    "read_held_privileges",
    "read_known_privileges",
]

ROLE, USER = "StackyardConnect", "stackyard@pve"


def make_access_request(token: str, privileges: tuple[str, ...]) -> AccessRequest:
    """Return the role, the user and the token of a site.

    Args:
        token: The name of the token.
        privileges: What it may do.
    """
    return AccessRequest(role=ROLE, user=USER, token=token, privileges=privileges, comment="Runs stackyard")


async def find_missing_grants(client: proxmox.Client) -> tuple[tuple[Grant, str], ...]:
    """Return what the caller lacks to create a role, a user and a token, each with its reason.

    Raises:
        ProxmoxError: It cannot be asked.
    """
    needed = (
        (Grant("/access", "Sys.Modify"), f"create the role {ROLE}"),
        (Grant("/access/realm/pve", "Realm.AllocateUser"), f"create the user {USER}"),
        (Grant("/access/groups", "User.Modify"), f"create the user {USER} and its token"),
        (Grant("/", "Permissions.Modify"), f"give the user and the token the role {ROLE}"),
    )
    missing = []
    for grant, why in needed:
        held = await client.get("/access/permissions", {"path": grant.path})
        if grant.privilege not in (held or {}).get(grant.path, {}):
            missing.append((grant, why))
    return tuple(missing)


async def read_known_privileges(client: proxmox.Client) -> frozenset[str]:
    """Return the privileges that this version of Proxmox knows: its Administrator has them all.

    Raises:
        ProxmoxError: They cannot be read.
    """
    rows = await client.get("/access/roles")
    return frozenset(word for row in rows for word in str(row.get("privs") or "").split(",") if word)


async def read_held_privileges(client: proxmox.Client) -> frozenset[str]:
    """Return the privileges that the caller has on any path.

    Raises:
        ProxmoxError: They cannot be read.
    """
    held = await client.get("/access/permissions")
    return frozenset(name for granted in (held or {}).values() for name in granted)


def find_missing_privileges(
    privileges: Iterable[NeededPrivilege], held: frozenset[str]
) -> tuple[NeededPrivilege, ...]:
    """Return what of some privileges someone does not have."""
    return tuple(one for one in privileges if one.privilege not in held)
