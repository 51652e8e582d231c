"""The single calls about roles, users, API tokens and ACL entries.

Each is one value that knows its call of the API and its command of `pveum`, so that the same plan can be sent
to the API, run in a shell of a node, or printed for someone else to run.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import StackyardError
from stackyard.clients.proxmox.encoding import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "AccessCall",
    "AccessEntry",
    "TokenAnswerError",
    "TokenSettings",
    "make_entry_call",
    "make_role_call",
    "make_token_call",
    "make_token_change_call",
    "make_token_removal_call",
    "make_user_call",
    "read_token_secret",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSettings:
    """A token as Proxmox has it, but for its secret.

    Attributes:
        id: `USER@REALM!NAME`.
        separates: Whether it has privileges of its own.
        comment: What it is for.
        expires: When it ends, in seconds since 1970; 0 is never.
    """

    id: str
    separates: bool = True
    comment: str = ""
    expires: int = 0

    @property
    def user(self) -> str:
        """Whose it is."""
        return self.id.partition("!")[0]

    @property
    def name(self) -> str:
        """Its name among the tokens of its user."""
        return self.id.partition("!")[2]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class AccessEntry:
    """A role of a user, a group or a token on a path."""

    path: str
    owner: str
    role: str
    propagate: bool = True

    @property
    def kind(self) -> str:
        """The parameter that names the owner."""
        return "tokens" if "!" in self.owner else "users" if "@" in self.owner else "groups"


def make_role_call(role: str, wanted: frozenset[str], has: frozenset[str] | None) -> AccessCall:
    """Return the call that creates a role, or changes the one that is there."""
    privileges = ",".join(sorted(wanted))
    if has is None:
        return AccessCall(
            method="POST",
            path="/access/roles",
            params={"roleid": role, "privs": privileges},
            words=("role", "add", role, "--privs", privileges),
            what=f"create the role {role} with {len(wanted)} privileges",
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


def make_user_call(user: str, comment: str = "") -> AccessCall:
    """Return the call that creates a user."""
    said = {"comment": comment} if comment else {}
    return AccessCall(
        method="POST",
        path="/access/users",
        params={"userid": user, **said},
        words=("user", "add", user, *(("--comment", comment) if comment else ())),
        what=f"create the user {user}",
    )


def make_entry_call(entry: AccessEntry, *, removes: bool = False) -> AccessCall:
    """Return the call that gives a role, or takes it away."""
    params: dict[str, str | int] = {"path": entry.path, entry.kind: entry.owner, "roles": entry.role}
    words: tuple[str, ...] = (entry.path, f"--{entry.kind}", entry.owner, "--roles", entry.role)
    if removes:
        return AccessCall(
            method="PUT",
            path="/access/acl",
            params={**params, "delete": 1},
            words=("acl", "delete", *words),
            what=f"take the role {entry.role} on {entry.path} from {entry.owner}",
        )
    if not entry.propagate:
        params, words = {**params, "propagate": 0}, (*words, "--propagate", "0")
    return AccessCall(
        method="PUT",
        path="/access/acl",
        params=params,
        words=("acl", "modify", *words),
        what=f"give {entry.owner} the role {entry.role} on {entry.path}",
    )


def make_token_call(token: TokenSettings) -> AccessCall:
    """Return the call that creates a token; its answer has the secret."""
    settings: dict[str, str | int] = {"privsep": int(token.separates)}
    settings |= {"comment": token.comment} if token.comment else {}
    settings |= {"expire": token.expires} if token.expires else {}
    whose = "privileges of its own" if token.separates else "the privileges of its user"
    return AccessCall(
        method="POST",
        path=_token_path(token),
        params=settings,
        words=("user", "token", "add", token.user, token.name, *_options(settings)),
        what=f"create the token {token.id} with {whose}",
        is_secret=True,
    )


def make_token_change_call(token: TokenSettings, what: str) -> AccessCall:
    """Return the call that makes a token what it should be; its secret stays.

    Args:
        token: What it should be.
        what: What changes, in a few words.
    """
    settings: dict[str, str | int] = {
        "privsep": int(token.separates),
        "comment": token.comment,
        "expire": token.expires,
    }
    return AccessCall(
        method="PUT",
        path=_token_path(token),
        params=settings,
        words=("user", "token", "modify", token.user, token.name, *_options(settings)),
        what=what,
    )


def make_token_removal_call(token_id: str) -> AccessCall:
    """Return the call that removes a token, with everything that it was given."""
    token = TokenSettings(id=token_id)
    return AccessCall(
        method="DELETE",
        path=_token_path(token),
        words=("user", "token", "delete", token.user, token.name),
        what=f"remove the token {token.id}",
    )


def read_token_secret(token_id: str, answer: Any) -> str:
    """Return a new token with its secret, as the secrets of a site keep it.

    Raises:
        TokenAnswerError: The answer has none.
    """
    value = answer.get("value") if isinstance(answer, dict) else None
    if not isinstance(value, str) or not value:
        raise TokenAnswerError(f"The answer to the new token {token_id} has no value.")
    return f"{token_id}={value}"


def _options(settings: Mapping[str, str | int]) -> tuple[str, ...]:
    return tuple(word for name, value in settings.items() for word in (f"--{name}", str(value)))


def _token_path(token: TokenSettings) -> str:
    return f"/access/users/{quote(token.user)}/token/{quote(token.name)}"
