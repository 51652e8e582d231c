"""Roles, users and API tokens of Proxmox: what there is, what has to change, and the changes themselves.

Each change is one value that knows its call of the API and its command of `pveum`, so that the same plan can
be sent to the API, run in a shell of a node, or printed for someone else to run.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from stackyard.base.errors import StackyardError
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


class TokenAnswerError(StackyardError):
    """Proxmox made a token and did not answer with its secret, or answered with something else."""

    code = "E-PROXMOX-TOKEN-ANSWER"
    summary = "Proxmox did not answer with a token"
    default_remedy = "Remove the token (`pveum user token delete USER NAME`) and run the command again."


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessCall:
    """One call about roles, users or tokens.

    Attributes:
        method: The method of the API.
        path: Its path.
        params: Its parameters; none of them is secret.
        words: The same as words for `pveum`.
        what: What it does, in a few words.
        is_secret: Whether the answer holds a secret.
    """

    method: str
    path: str
    words: tuple[str, ...]
    params: Mapping[str, str | int] = field(default_factory=dict)
    what: str = ""
    is_secret: bool = False

    @property
    def command(self) -> str:
        """The same for a shell on a node."""
        return shlex.join(("pveum", *self.words))


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
        calls.append(_make_role_call(request, wanted, present.roles.get(request.role)))
    if request.user not in present.users:
        words = ("user", "add", request.user, "--comment", request.comment)
        params = {"userid": request.user, "comment": request.comment}
        what = f"create the user {request.user}"
        calls.append(AccessCall(method="POST", path="/access/users", params=params, words=words, what=what))
    calls.extend(_plan_entry(request, present, "users", request.user))
    is_there = request.token in present.tokens
    if is_there and renews:
        calls.append(plan_token_removal(request))
    if renews or not is_there:
        calls.append(_make_token_call(request))
        # Whoever removes a token removes what it was given.
        present = PresentAccess()
    elif not present.tokens[request.token]:
        calls.append(_make_separation_call(request))
    calls.extend(_plan_entry(request, present, "tokens", request.token_id))
    return tuple(calls)


def plan_token_removal(request: AccessRequest) -> AccessCall:
    """Return the call that removes the token, with everything that it was given."""
    return AccessCall(
        method="DELETE",
        path=_token_path(request),
        words=("user", "token", "delete", request.user, request.token),
        what=f"remove the token {request.token_id}",
    )


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
            made = f"{request.token_id}={_read_secret(request, answer)}"
    return made


def _make_role_call(request: AccessRequest, wanted: frozenset[str], has: frozenset[str] | None) -> AccessCall:
    privileges = ",".join(sorted(wanted))
    role, count = request.role, len(wanted)
    if has is None:
        return AccessCall(
            method="POST",
            path="/access/roles",
            params={"roleid": role, "privs": privileges},
            words=("role", "add", role, "--privs", privileges),
            what=f"create the role {role} with {count} privileges",
        )
    return AccessCall(
        method="PUT",
        path=f"/access/roles/{quote(role)}",
        params={"privs": privileges},
        words=("role", "modify", role, "--privs", privileges),
        what=f"change the role {role}: {'; '.join(_describe_change(has, wanted))}",
    )


def _describe_change(has: frozenset[str], wanted: frozenset[str]) -> list[str]:
    changes = (("add", wanted - has), ("take away", has - wanted))
    return [f"{verb} {', '.join(sorted(names))}" for verb, names in changes if names]


def _plan_entry(
    request: AccessRequest, present: PresentAccess, kind: str, who: str
) -> tuple[AccessCall, ...]:
    if (request.path, who, request.role) in present.entries:
        return ()
    return (
        AccessCall(
            method="PUT",
            path="/access/acl",
            params={"path": request.path, kind: who, "roles": request.role},
            words=("acl", "modify", request.path, f"--{kind}", who, "--roles", request.role),
            what=f"give {who} the role {request.role} on {request.path}",
        ),
    )


def _make_token_call(request: AccessRequest) -> AccessCall:
    return AccessCall(
        method="POST",
        path=_token_path(request),
        params={"privsep": 1},
        words=("user", "token", "add", request.user, request.token, "--privsep", "1"),
        what=f"create the token {request.token_id} with privileges of its own",
        is_secret=True,
    )


def _make_separation_call(request: AccessRequest) -> AccessCall:
    return AccessCall(
        method="PUT",
        path=_token_path(request),
        params={"privsep": 1},
        words=("user", "token", "modify", request.user, request.token, "--privsep", "1"),
        what=f"give the token {request.token_id} privileges of its own",
    )


def _token_path(request: AccessRequest) -> str:
    return f"/access/users/{quote(request.user)}/token/{quote(request.token)}"


def _read_secret(request: AccessRequest, answer: Any) -> str:
    value = answer.get("value") if isinstance(answer, dict) else None
    if not isinstance(value, str) or not value:
        raise TokenAnswerError(f"The answer to the new token {request.token_id} has no value.")
    return value


def _split(text: object) -> frozenset[str]:
    return frozenset(word for word in str(text or "").split(",") if word)
