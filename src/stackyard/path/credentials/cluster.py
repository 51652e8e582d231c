"""What a cluster has of users, tokens and their roles, and whether it accepts the secrets of a site."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import StackyardError
from stackyard.clients import proxmox
from stackyard.clients.proxmox.access_calls import AccessEntry, TokenSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = [
    "CredentialsHiddenError",
    "PresentCredentials",
    "find_unaccepted",
    "is_accepted",
    "read_present",
    "read_token",
    "require_shown",
]

# What shows all users with their tokens, and all roles that they have.
_SHOWING = ("/access", "/access/groups")
_AUDIT = "Sys.Audit"


class CredentialsHiddenError(StackyardError):
    """The cluster does not show tokens or users that a target has made; they may be there all the same."""

    code = "E-TOKEN-HIDDEN"
    summary = "Tokens and users of the cluster cannot be seen"
    default_remedy = "Give the token in use Sys.Audit on /access, and run the command again."


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentCredentials:
    """What there is.

    Attributes:
        users: The users that can be seen, and whether each is enabled.
        tokens: Their tokens by `USER@REALM!NAME`.
        entries: The roles of tokens.
        unaccepted: Tokens whose secret in the site is not accepted.
    """

    users: Mapping[str, bool] = field(default_factory=dict)
    tokens: Mapping[str, TokenSettings] = field(default_factory=dict)
    entries: frozenset[AccessEntry] = frozenset()
    unaccepted: frozenset[str] = frozenset()


async def read_present(client: proxmox.Client) -> PresentCredentials:
    """Read what there is.

    Raises:
        ProxmoxError: It cannot be read.
    """
    users, entries = await asyncio.gather(client.get("/access/users", {"full": 1}), client.get("/access/acl"))
    tokens = [read_token(row, token) for row in users for token in row.get("tokens") or ()]
    return PresentCredentials(
        users={str(row["userid"]): bool(int(row.get("enable", 1))) for row in users},
        tokens={token.id: token for token in tokens},
        entries=frozenset(
            AccessEntry(
                path=str(row["path"]),
                owner=str(row["ugid"]),
                role=str(row["roleid"]),
                propagate=bool(int(row.get("propagate", 1))),
            )
            for row in entries
            if row.get("type") == "token"
        ),
    )


async def require_shown(client: proxmox.Client, names: Collection[str]) -> None:
    """Refuse to take tokens or users for gone that the caller may not be allowed to see.

    Args:
        client: Speaks to the cluster.
        names: What the cluster did not list.

    Raises:
        CredentialsHiddenError: The caller does not see everything.
        ProxmoxError: It cannot be asked.
    """
    if not names:
        return
    for path in _SHOWING:
        held = await client.get("/access/permissions", {"path": path})
        if _AUDIT not in (held or {}).get(path, {}):
            hidden = ", ".join(sorted(names))
            raise CredentialsHiddenError(
                f"{hidden} are not listed, and the caller does not have {_AUDIT} on {path}, which shows all."
            )


def read_token(user: Mapping[str, Any], row: Mapping[str, Any]) -> TokenSettings:
    """Return a token of a user.

    Args:
        user: What Proxmox lists of the user.
        row: What it lists of the token.
    """
    return TokenSettings(
        id=f"{user['userid']}!{row['tokenid']}",
        separates=bool(int(row.get("privsep", 1))),
        comment=str(row.get("comment") or ""),
        expires=int(row.get("expire") or 0),
    )


async def find_unaccepted(
    connection: proxmox.Connection, kept: Mapping[str, str], present: PresentCredentials
) -> frozenset[str]:
    """Return the tokens whose secrets the cluster refuses; one that ended or is disabled proves nothing.

    Args:
        connection: The way to the cluster.
        kept: The tokens with their secrets, by `USER@REALM!NAME`.
        present: What the cluster has.

    Raises:
        ProxmoxError: It does not answer.
    """
    asked = [name for name in kept if _is_usable(name, present) and not _is_own(connection, kept[name])]
    answers = await asyncio.gather(*(is_accepted(connection, kept[name]) for name in asked))
    return frozenset(name for name, accepted in zip(asked, answers, strict=True) if not accepted)


def _is_usable(token_id: str, present: PresentCredentials) -> bool:
    token = present.tokens.get(token_id)
    if token is None or not present.users.get(token.user):
        return False
    return not token.expires or token.expires > time.time()


def _is_own(connection: proxmox.Connection, text: str) -> bool:
    credentials = connection.credentials
    return isinstance(credentials, proxmox.Token) and credentials.text == text


async def is_accepted(connection: proxmox.Connection, token: str) -> bool:
    """Return whether a cluster accepts a token.

    Raises:
        ProxmoxError: It does not answer.
    """
    other = dataclasses.replace(connection, credentials=proxmox.Token(text=token))
    try:
        async with proxmox.Client(other) as client:
            await client.get("/version")
    except proxmox.LoginRefusedError:
        return False
    return True
