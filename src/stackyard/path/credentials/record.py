"""What a target has made of tokens and passwords: a part of its record in the store, with no secret in it."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stackyard.clients.objects import StoreDamagedError
from stackyard.clients.proxmox.access_calls import AccessEntry
from stackyard.state.targets import TargetRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from stackyard.path.planfile import PlanKey
    from stackyard.path.target import Target
    from stackyard.state.targets import Targets

__all__ = [
    "CredentialRecord",
    "TokenRecord",
    "change_record",
    "fits_fingerprint",
    "make_fingerprint",
    "read_record",
]

_PURPOSE = b"stackyard password\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    """A token that a target has.

    Attributes:
        store: What the secrets keep it as.
        is_complete: Whether its secret was stored; a token that is not complete is made again.
        entries: The roles that it had before it was replaced, and gets again.
        is_removed: Whether the one that had these roles is removed; until then, the cluster says them.
    """

    store: str
    is_complete: bool = True
    entries: tuple[AccessEntry, ...] = ()
    is_removed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialRecord:
    """What a target has made.

    Attributes:
        tokens: The tokens by `USER@REALM!NAME`.
        passwords: A keyed fingerprint of the password that each user was given.
        grants: The roles that tokens were given.
        imports: What a login has made before the first apply, and the engine takes over: each the kind and
            the id of an object.
        own: The token that a login has made for stackyard itself, where the file describes none.
    """

    tokens: Mapping[str, TokenRecord] = field(default_factory=dict)
    passwords: Mapping[str, str] = field(default_factory=dict)
    grants: frozenset[AccessEntry] = frozenset()
    imports: frozenset[tuple[str, str]] = frozenset()
    own: Mapping[str, TokenRecord] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether the target has made nothing."""
        return self == CredentialRecord()

    def with_token(
        self, token_id: str, token: TokenRecord | None, *, is_own: bool = False
    ) -> CredentialRecord:
        """Return the record with a token, or without it."""
        known = self.own if is_own else self.tokens
        others = {name: one for name, one in known.items() if name != token_id}
        changed = others if token is None else {**others, token_id: token}
        return replace(self, own=changed) if is_own else replace(self, tokens=changed)

    def document(self) -> dict[str, Any]:
        """Return it as it is stored."""
        return {
            "tokens": {name: _describe_token(one) for name, one in self.tokens.items()},
            "own": {name: _describe_token(one) for name, one in self.own.items()},
            "passwords": dict(self.passwords),
            "grants": [_list(entry) for entry in sorted(self.grants)],
            "imports": [list(one) for one in sorted(self.imports)],
        }

    @classmethod
    def of(cls, record: TargetRecord | None) -> CredentialRecord:
        """Return what the record of a target says.

        Raises:
            StoreDamagedError: It cannot be read.
        """
        said = {} if record is None else record.credentials
        try:
            return cls(
                tokens={name: _read_token(one) for name, one in said.get("tokens", {}).items()},
                own={name: _read_token(one) for name, one in said.get("own", {}).items()},
                passwords=dict(said.get("passwords", {})),
                grants=frozenset(_entries(said.get("grants", ()))),
                imports=frozenset((kind, name) for kind, name in said.get("imports", ())),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as err:
            raise StoreDamagedError("The record of tokens and passwords is damaged.") from err


def read_record(targets: Targets, target: Target) -> CredentialRecord:
    """Return what a target has made.

    Raises:
        StoreError: The store cannot say.
    """
    return CredentialRecord.of(targets.read(target.state_name))


def change_record(
    targets: Targets, target: Target, change: Callable[[CredentialRecord], CredentialRecord]
) -> None:
    """Replace what a target has made by what becomes of it.

    Raises:
        StoreError: It cannot be stored.
    """

    def decide(before: TargetRecord | None) -> TargetRecord:
        known = before or TargetRecord(
            state=target.state_name, kind=target.kind, name=target.name, node=target.node
        )
        changed = change(CredentialRecord.of(known))
        return replace(known, credentials={} if changed.is_empty else changed.document())

    targets.change(target.state_name, decide)


def make_fingerprint(user: str, password: str, key: PlanKey) -> str:
    """Return what tells whether a password is another one; without the key of the site, it tells nothing."""
    said = _PURPOSE + user.encode() + b"\0" + password.encode()
    return hmac.digest(key.secret, said, hashlib.sha256).hex()


def fits_fingerprint(known: str, user: str, password: str, keys: Iterable[PlanKey]) -> bool:
    """Return whether a fingerprint is that of a password, with the key of the site or an earlier one."""
    return any(hmac.compare_digest(known, make_fingerprint(user, password, key)) for key in keys)


def _describe_token(token: TokenRecord) -> dict[str, Any]:
    return {
        "store": token.store,
        "is_complete": token.is_complete,
        "entries": [_list(entry) for entry in sorted(token.entries)],
        "is_removed": token.is_removed,
    }


def _read_token(said: Mapping[str, Any]) -> TokenRecord:
    entries = tuple(_entries(said["entries"]))
    return TokenRecord(
        store=said["store"],
        is_complete=said["is_complete"],
        entries=entries,
        # Older records do not say it.
        is_removed=said.get("is_removed", bool(entries)),
    )


def _list(entry: AccessEntry) -> list[Any]:
    return [entry.path, entry.owner, entry.role, entry.propagate]


def _entries(rows: Iterable[Any]) -> Iterable[AccessEntry]:
    return (
        AccessEntry(path=path, owner=owner, role=role, propagate=bool(propagate))
        for path, owner, role, propagate in rows
    )
