"""Tokens, passwords and the roles of tokens in the file of a cluster: they become no resources.

A state holds every attribute of a resource as text, and shows it to whoever may read the state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.desired import ApiToken, Credentials, TokenGrant, UserPassword
from stackyard.sources.hypervisor.token_entries import read_moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.desired.values import Value
    from stackyard.sources.hypervisor.token_entries import TokenEntry

__all__ = ["build_credentials", "build_token", "is_token_grant"]


def is_token_grant(kind: str, values: Mapping[str, Any]) -> bool:
    """Return whether an entry gives a role to a token, which has to exist first."""
    return kind == "acl" and values.get("token_id") is not None


def build_credentials(model: Value, entries: Iterable[tuple[str, str, Mapping[str, Any]]]) -> Credentials:
    """Return the tokens and passwords of a file.

    Args:
        model: The file.
        entries: Its entries: the kind of resource, the name, and what each says.
    """
    passwords, grants = [], []
    for kind, name, values in entries:
        if kind == "user" and values.get("password") is not None:
            passwords.append(UserPassword(user=name, name=values["password"]["secret"]))
        elif is_token_grant(kind, values):
            propagate = values.get("propagate")
            grants.append(
                TokenGrant(
                    token=values["token_id"],
                    path=values["path"],
                    role=values["role_id"],
                    propagate=True if propagate is None else propagate,
                )
            )
    said: Mapping[str, TokenEntry] = getattr(model, "tokens", None) or {}
    tokens = tuple(build_token(name, entry) for name, entry in said.items())
    return Credentials(tokens=tokens, passwords=tuple(passwords), grants=tuple(grants))


def build_token(token_id: str, entry: TokenEntry) -> ApiToken:
    """Return a token of a file."""
    return ApiToken(
        id=token_id,
        comment=entry.comment or "",
        expires=read_moment(entry.expiration_date) if entry.expiration_date else 0,
        separates=entry.privileges_separation is not False,
        store=entry.store or token_id.partition("!")[2],
    )
