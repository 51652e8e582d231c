"""Roles, users and API tokens of Proxmox: what there is, what has to change, and the changes themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from stackyard.clients.proxmox.access_calls import (
    AccessCall,
    AccessEntry,
    TokenAnswerError,
    TokenSettings,
    make_entry_call,
    make_role_call,
    make_token_call,
    make_token_removal_call,
    make_user_call,
    read_token_secret,
)
from stackyard.clients.proxmox.encoding import quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.clients.proxmox.client import Client

__all__ = [
    "AccessBackend",
    "AccessCall",
    "AccessRequest",
    "ApiAccess",
    "PresentAccess",
    "TokenAnswerError",
    "make_access",
    "plan_access",
    "plan_token_removal",
    "read_access",
]


class AccessBackend(Protocol):
    """Performs calls: through the API, or through `pveum` in a shell of a node."""

    async def perform(self, call: AccessCall) -> Any:
        """Perform a call and return its answer: a list for a read, the token for a new token."""


@dataclass(frozen=True, slots=True)
class ApiAccess:
    """Performs calls through the API."""

    client: Client

    async def perform(self, call: AccessCall) -> Any:
        """Perform a call.

        Raises:
            ProxmoxError: Proxmox refused it, or its answer was lost.
        """
        if call.method == "GET":
            return await self.client.get(call.path, call.params)
        send = {"POST": self.client.post, "PUT": self.client.put, "DELETE": self.client.delete}[call.method]
        return await send(call.path, call.params)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRequest:
    """A role, a user that has it, and a token with privileges of its own that has it, too.

    Attributes:
        role: The name of the role.
        user: The user: `stackyard@pve`.
        token: The name of the token.
        privileges: What the role has; those that this version of Proxmox does not know are left out.
        comment: Says at the user what it is for.
        path: Where the role holds.
    """

    role: str
    user: str
    token: str
    privileges: tuple[str, ...]
    comment: str
    path: str = "/"

    @property
    def token_id(self) -> str:
        """The full name of the token."""
        return f"{self.user}!{self.token}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentAccess:
    """What there is.

    Attributes:
        roles: The privileges of each role.
        users: The names of the users that can be seen.
        disabled: Those of them that are disabled: their tokens do not work.
        tokens: The tokens of the user that is asked for: whether each has privileges of its own.
        entries: Who (a user or a token) has which role on which path.
    """

    roles: Mapping[str, frozenset[str]] = field(default_factory=dict)
    users: frozenset[str] = frozenset()
    disabled: frozenset[str] = frozenset()
    tokens: Mapping[str, bool] = field(default_factory=dict)
    entries: frozenset[tuple[str, str, str]] = frozenset()

    @property
    def privileges(self) -> frozenset[str]:
        """Every privilege that this version of Proxmox knows: its Administrator has them all."""
        return frozenset[str]().union(*self.roles.values())


async def read_access(backend: AccessBackend, request: AccessRequest) -> PresentAccess:
    """Read what there is of a request.

    Raises:
        StackyardError: It cannot be read.
    """
    roles = await backend.perform(AccessCall(method="GET", path="/access/roles", words=("role", "list")))
    users = await backend.perform(AccessCall(method="GET", path="/access/users", words=("user", "list")))
    names = frozenset(str(row["userid"]) for row in users)
    tokens = await _read_tokens(backend, request) if request.user in names else []
    entries = await backend.perform(AccessCall(method="GET", path="/access/acl", words=("acl", "list")))
    return PresentAccess(
        roles={str(row["roleid"]): _split(row.get("privs")) for row in roles},
        users=names,
        disabled=frozenset(str(row["userid"]) for row in users if not int(row.get("enable", 1))),
        tokens={str(row["tokenid"]): bool(int(row.get("privsep", 1))) for row in tokens},
        entries=frozenset(
            (str(row["path"]), str(row["ugid"]), str(row["roleid"]))
            for row in entries
            if int(row.get("propagate", 1))
        ),
    )


async def _read_tokens(backend: AccessBackend, request: AccessRequest) -> Sequence[Mapping[str, Any]]:
    path, words = f"/access/users/{quote(request.user)}/token", ("user", "token", "list", request.user)
    rows: Sequence[Mapping[str, Any]] = await backend.perform(
        AccessCall(method="GET", path=path, words=words)
    )
    return rows


def plan_access(
    request: AccessRequest, present: PresentAccess, *, renews: bool = False
) -> tuple[AccessCall, ...]:
    """Return what has to be done so that the role, the user and the token are as requested.

    Args:
        request: What is wanted.
        present: What there is; nothing known of it plans everything.
        renews: Whether a token that is there is replaced, because its secret is lost or no longer trusted.
    """
    known = present.privileges
    wanted = frozenset(request.privileges) & (known or frozenset(request.privileges))
    calls: list[AccessCall] = []
    if present.roles.get(request.role) != wanted:
        calls.append(make_role_call(request.role, wanted, present.roles.get(request.role)))
    if request.user not in present.users:
        calls.append(make_user_call(request.user, request.comment))
    calls.extend(_plan_entry(request, present, request.user))
    is_there = request.token in present.tokens
    if is_there and renews:
        calls.append(plan_token_removal(request))
    if renews or not is_there:
        calls.append(make_token_call(TokenSettings(id=request.token_id)))
        # Whoever removes a token removes what it was given.
        present = PresentAccess()
    elif not present.tokens[request.token]:
        calls.append(_make_separation_call(request))
    calls.extend(_plan_entry(request, present, request.token_id))
    return tuple(calls)


def plan_token_removal(request: AccessRequest) -> AccessCall:
    """Return the call that removes the token, with everything that it was given."""
    return make_token_removal_call(request.token_id)


async def make_access(
    backend: AccessBackend, request: AccessRequest, calls: Sequence[AccessCall]
) -> str | None:
    """Perform a plan and return the token with its secret, None if the plan creates no token.

    Raises:
        TokenAnswerError: The token was made, and its secret is not in the answer.
        StackyardError: A call was refused; those before it are done, and the next plan goes on from there.
    """
    made = None
    for call in calls:
        answer = await backend.perform(call)
        if call.is_secret:
            made = read_token_secret(request.token_id, answer)
    return made


def _plan_entry(request: AccessRequest, present: PresentAccess, who: str) -> tuple[AccessCall, ...]:
    if (request.path, who, request.role) in present.entries:
        return ()
    return (make_entry_call(AccessEntry(path=request.path, owner=who, role=request.role)),)


def _make_separation_call(request: AccessRequest) -> AccessCall:
    return AccessCall(
        method="PUT",
        path=f"/access/users/{quote(request.user)}/token/{quote(request.token)}",
        params={"privsep": 1},
        words=("user", "token", "modify", request.user, request.token, "--privsep", "1"),
        what=f"give the token {request.token_id} privileges of its own",
    )


def _split(text: object) -> frozenset[str]:
    return frozenset(word for word in str(text or "").split(",") if word)
