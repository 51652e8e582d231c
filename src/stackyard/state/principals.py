"""Who may do what: principals with hashed tokens, and their rights on states by prefix.

A token has 256 random bits, so that its plain SHA-256 cannot be guessed from; the token itself is shown
once and kept nowhere.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.errors import InvalidInputError
from stackyard.clients.objects import ABSENT, ConflictError, StoreDamagedError
from stackyard.state import layout
from stackyard.state.model import Actor, AuditAction
from stackyard.state.names import is_below

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from stackyard.state.audit import AuditLogs
    from stackyard.state.heads import Core

__all__ = [
    "Access",
    "Principal",
    "PrincipalError",
    "Principals",
    "Right",
    "find_by_certificate",
    "find_by_password",
    "find_by_token",
    "hash_token",
    "make_token",
]

_NAME = re.compile(r"[A-Za-z0-9_.@-]{1,64}")
_FINGERPRINT = re.compile(r"(?:[0-9A-F]{2}:){31}[0-9A-F]{2}")
_FORMAT = 1
# An older copy knows principals that were removed since; the audit log still says which.
_RESTORE = (
    "Restore it from a backup, and remove each principal again that `stackyard state audit --service` "
    "shows as removed since: their tokens count again until then."
)
# Compared with where a name is not known, so that unknown names take as long as known ones.
_NOBODY = hashlib.sha256(secrets.token_bytes(32)).hexdigest()


class Right(enum.StrEnum):
    """What a principal may do to a state; `admin` is everything."""

    READ = "read"
    WRITE = "write"
    LOCK = "lock"
    BREAK = "break"
    # The objects themselves, as another stackyard needs them: no rule of the protocol of states holds for it.
    STORE = "store"
    ADMIN = "admin"


class PrincipalError(InvalidInputError):
    """A principal has a name that is not usable, no rights, or does not exist."""

    code = "E-STATE-PRINCIPAL"
    summary = "The principal is not usable"
    default_remedy = (
        "Use letters, digits and _.@- for the name, and give it rights: read,write,lock on a prefix."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Rights on the states at or below a prefix; an empty prefix is all states."""

    prefix: str = ""
    rights: tuple[Right, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Someone, or something, that uses the service.

    Attributes:
        name: What it logs in with.
        access: What it may do.
        token_sha256: The hash of its token; empty where only its certificate counts.
        certificate: The common name, or the SHA-256 fingerprint, of its client certificate; empty for none.
        created_at: When it was created.
        expires_at: When it ends; None never.
        note: What it is for.
    """

    name: str
    access: tuple[Access, ...]
    token_sha256: str = ""
    certificate: str = ""
    created_at: float = 0.0
    expires_at: float | None = None
    note: str = ""

    def may(self, right: Right, name: str) -> bool:
        """Return whether it has a right on a state."""
        return any(
            is_below(name, access.prefix) and (right in access.rights or Right.ADMIN in access.rights)
            for access in self.access
        )


def make_token() -> str:
    """Return a new token."""
    return f"syt_{secrets.token_urlsafe(32)}"


def hash_token(token: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


class Principals:
    """The principals of a store."""

    def __init__(self, core: Core, audit: AuditLogs) -> None:
        self._core = core
        self._audit = audit

    def all(self) -> tuple[Principal, ...]:
        """Return every principal, in order of their names."""
        return self._read()[0]

    def add(
        self,
        name: str,
        access: Iterable[Access],
        actor: Actor,
        *,
        certificate: str = "",
        lasts_s: float | None = None,
        note: str = "",
    ) -> tuple[Principal, str]:
        """Make a principal, or give one that is there a new token; return it and the token, shown only now.

        Raises:
            PrincipalError: The name is not usable, or there are no rights.
        """
        rights = tuple(access)
        if not _NAME.fullmatch(name):
            raise PrincipalError(f"{name[:80]!r} cannot be the name of a principal.")
        if not any(one.rights for one in rights):
            raise PrincipalError(f"{name} would have no rights.")
        token, now = make_token(), self._core.clock()
        new = Principal(
            name=name,
            access=rights,
            token_sha256=hash_token(token),
            certificate=certificate,
            created_at=now,
            expires_at=None if lasts_s is None else now + lasts_s,
            note=note,
        )
        self._replace(lambda known: {**known, name: new})
        shown = "; ".join(f"{','.join(one.rights)} on {one.prefix or 'everything'}" for one in rights)
        self._audit.note(actor, AuditAction.PRINCIPAL_SET, detail=f"{name}: {shown}")
        return new, token

    def remove(self, name: str, actor: Actor) -> None:
        """Remove a principal; its token ends within seconds everywhere.

        Raises:
            PrincipalError: There is none.
        """

        def without(known: Mapping[str, Principal]) -> dict[str, Principal]:
            if name not in known:
                raise PrincipalError(f"There is no principal {name}.")
            return {other: one for other, one in known.items() if other != name}

        self._replace(without)
        self._audit.note(actor, AuditAction.PRINCIPAL_REMOVED, detail=name)

    def limit(self, name: str, lasts_s: float, actor: Actor) -> None:
        """Let the token of a principal end, unless it ends earlier already.

        Args:
            name: The principal.
            lasts_s: How long its token is still good.
            actor: Who says so.

        Raises:
            PrincipalError: There is none.
        """
        ends_at = self._core.clock() + lasts_s

        def limited(known: Mapping[str, Principal]) -> dict[str, Principal]:
            if name not in known:
                raise PrincipalError(f"There is no principal {name}.")
            one = known[name]
            before = one.expires_at
            ends = ends_at if before is None else min(before, ends_at)
            return {**known, name: dataclasses.replace(one, expires_at=ends)}

        self._replace(limited)
        self._audit.note(actor, AuditAction.PRINCIPAL_SET, detail=f"{name}: ends in {lasts_s:.0f} s")

    def _read(self) -> tuple[tuple[Principal, ...], Any]:
        stored = self._core.objects.get(layout.PRINCIPALS)
        if stored is None:
            return (), ABSENT
        try:
            found = parse_json(stored.data)
            return tuple(_principal(row) for row in found["principals"]), stored.tag
        except (JsonError, KeyError, TypeError, ValueError) as err:
            raise StoreDamagedError(f"{layout.PRINCIPALS} is damaged.", remedy=_RESTORE) from err

    def _replace(self, change: Callable[[Mapping[str, Principal]], dict[str, Principal]]) -> None:
        while True:
            known, expect = self._read()
            changed = change({one.name: one for one in known})
            data = orjson.dumps(
                {"format": _FORMAT, "principals": [changed[name] for name in sorted(changed)]}
            )
            try:
                self._core.objects.put(layout.PRINCIPALS, data, expect=expect)
            except ConflictError:
                continue
            return


def find_by_password(
    principals: Iterable[Principal], name: str, password: str, now: float
) -> Principal | None:
    """Return the principal that a name and a token belong to."""
    given = hash_token(password)
    # The first of a name counts: no one takes the place of the administrator by making one of the same name.
    found = next((principal for principal in principals if principal.name == name), None)
    wanted = found.token_sha256 if found is not None and found.token_sha256 else _NOBODY
    is_right = hmac.compare_digest(given, wanted)
    return found if is_right and found is not None and _is_valid(found, now) else None


def find_by_token(principals: Iterable[Principal], token: str, now: float) -> Principal | None:
    """Return the principal that a token belongs to; every one is compared, so that the time tells nothing."""
    given, found = hash_token(token), None
    for principal in principals:
        if hmac.compare_digest(given, principal.token_sha256 or _NOBODY):
            found = principal
    return found if found is not None and _is_valid(found, now) else None


def find_by_certificate(
    principals: Iterable[Principal], common_name: str, fingerprint: str, now: float
) -> Principal | None:
    """Return the principal that a client certificate belongs to."""
    for principal in principals:
        # Never one for the other: clients may be free to choose their names.
        shown = fingerprint if _FINGERPRINT.fullmatch(principal.certificate) else common_name
        if principal.certificate and principal.certificate == shown and _is_valid(principal, now):
            return principal
    return None


def _is_valid(principal: Principal, now: float) -> bool:
    return principal.expires_at is None or now < principal.expires_at


def _principal(found: dict[str, Any]) -> Principal:
    access = tuple(
        Access(prefix=row["prefix"], rights=tuple(Right(word) for word in row["rights"]))
        for row in found["access"]
    )
    return Principal(**{**found, "access": access})
