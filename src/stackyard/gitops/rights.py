"""Who may do what in a repository; somebody or a team that the forge does not know has no right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients.forge.failures import ForgeNotFoundError
from stackyard.clients.forge.model import Permission

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackyard.clients.forge.protocol import Forge

__all__ = ["find_members", "find_right"]


async def find_right(forge: Forge, login: str) -> Permission:
    """Return what somebody may do; nothing where the user was removed.

    Raises:
        ForgeError: The forge cannot say.
    """
    try:
        return await forge.permission(login)
    except ForgeNotFoundError:
        return Permission.NONE


async def find_members(forge: Forge, team: str, logins: Iterable[str]) -> frozenset[str]:
    """Return who of some people is in a team; nobody where there is no such team.

    Raises:
        ForgeError: The forge cannot say.
    """
    try:
        return frozenset([login for login in logins if await forge.is_member(team, login)])
    except ForgeNotFoundError:
        return frozenset()
