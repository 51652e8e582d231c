"""What went wrong in PostgreSQL, as one of our errors, and whether it may pass by itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg

from stackyard.clients.objects.base import (
    StoreBusyError,
    StoreDamagedError,
    StoreDeniedError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ConnectError", "Failure", "SilentServerError", "judge"]


class ConnectError(psycopg.OperationalError):
    """No connection could be made: nothing was asked of the server."""


class SilentServerError(psycopg.OperationalError):
    """The server did not answer in time; the connection cannot be used any more."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error, and what it means for a further attempt.

    Attributes:
        error: What the caller gets if there is none.
        may_pass: Whether a further attempt may succeed.
        is_away: Whether no server answered.
    """

    error: StoreError | StoreBusyError
    may_pass: bool = False
    is_away: bool = False


@dataclass(frozen=True, slots=True)
class _Kind:
    """How an error of the server is reported."""

    error: type[StoreError | StoreBusyError]
    remedy: str | None = None
    may_pass: bool = False


_RIGHTS = "Have the owner of the database grant the rights that docs/reference/state.md lists."
_PASSWORD = "Check the user, and the password in PGPASSWORD, ~/.pgpass or the service file."  # noqa: S105
_PRIMARY = "Give the address of the primary, or all hosts: postgresql://user@one,two/database."
_TLS = (
    "Give the certificate authority of the server with sslrootcert=FILE (sslrootcert=system for those of this"
    " machine); sslmode in the address chooses another check."
)

# By SQLSTATE, the longest prefix first.
_STATES: Mapping[str, _Kind] = {
    "08": _Kind(StoreError, may_pass=True),
    "25006": _Kind(StoreReadOnlyError, _PRIMARY),
    "25P03": _Kind(StoreError, may_pass=True),
    "28": _Kind(StoreDeniedError, _PASSWORD),
    "3D000": _Kind(StoreError, "Create the database, or check its name in the address."),
    "3F000": _Kind(StoreError, "Check the schema in the address."),
    "40": _Kind(StoreBusyError, may_pass=True),
    "42501": _Kind(StoreDeniedError, _RIGHTS),
    "42P01": _Kind(StoreError, "Check the schema in the address, or restore the store from a backup."),
    "53100": _Kind(StoreFullError),
    "53300": _Kind(
        StoreBusyError, "Raise max_connections of the server, or end other clients.", may_pass=True
    ),
    "55P03": _Kind(StoreBusyError),
    "57014": _Kind(StoreBusyError),
    "57P": _Kind(StoreError, may_pass=True),
    "XX001": _Kind(StoreDamagedError),
    "XX002": _Kind(StoreDamagedError),
}

# libpq gives no SQLSTATE for a connection that the server refuses, only its words. A server that speaks
# another language is reported as one that cannot be reached, in its own words.
_REFUSALS: tuple[tuple[str, str], ...] = (
    (
        r"authentication failed|authentication method|no password supplied|pg_hba\.conf"
        r"|role .* (does not exist|is not permitted)",
        "28",
    ),
    (r"database .* does not exist", "3D000"),
    (r"permission denied for database", "42501"),
    (r"too many clients|connection slots|too many connections", "53300"),
    (r"starting up|shutting down|recovery mode|not (yet )?accepting connections", "57P03"),
    (r"hot standby|read-only|not in hot standby", "25006"),
)
_CONNECTING = re.compile(
    r"connection (failed|is bad): |connection to server (at|on socket) \S+( \(\S+\),)?( port \d+)? failed: "
    r"| Is the server running .*\?"
)
_TLS_WORDS = re.compile(
    r"certificate|SSL error|does not support SSL|SSL is not supported|server name|TLS", re.IGNORECASE
)


def judge(err: psycopg.Error, label: str, *, is_write: bool = False) -> Failure:
    """Return what an error means.

    Args:
        err: The error.
        label: The database, for a person.
        is_write: Whether something was to be written.
    """
    said = _words(err)
    if isinstance(err, ConnectError):
        return _judge_refusal(said, label)
    if err.sqlstate is None and isinstance(err, psycopg.OperationalError | psycopg.InterfaceError):
        # psycopg itself reports that a connection ended, or that the server was silent.
        return Failure(StoreError(f"The connection to {label} was lost: {said}."), may_pass=True)
    if is_write and err.sqlstate == "42501":
        return Failure(StoreReadOnlyError(f"{_sentence(label)}: {said}.", remedy=_RIGHTS))
    return _failure(err.sqlstate or "", said, label)


def _judge_refusal(full: str, label: str) -> Failure:
    said = _shorten(full)
    for pattern, state in _REFUSALS:
        if re.search(pattern, full):
            found = _failure(state, said, label)
            # A standby may be about to become the primary.
            return Failure(found.error, may_pass=found.may_pass or state == "25006")
    text = f"{_sentence(label)} cannot be reached: {said}."
    if _TLS_WORDS.search(full):
        return Failure(StoreError(text, remedy=_TLS))
    return Failure(StoreError(text), may_pass=True, is_away=True)


def _failure(state: str, said: str, label: str) -> Failure:
    states = (state[:length] for length in range(len(state), 1, -1))
    kind = next((_STATES[part] for part in states if part in _STATES), _Kind(StoreError))
    error = kind.error(f"{_sentence(label)}: {said}.", remedy=kind.remedy)
    return Failure(error, may_pass=kind.may_pass)


def _words(err: psycopg.Error) -> str:
    """Return what the server said, in one line. libpq never repeats a password."""
    said = err.diag.message_primary or str(err)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return " ".join(lines).rstrip(".") or type(err).__name__


def _shorten(full: str) -> str:
    """Return what the server said to a connection, or why there is none, without what the sentence says."""
    _, is_refused, words = full.rpartition("FATAL:")
    return (words if is_refused else _CONNECTING.sub("", full)).strip().rstrip("?")


def _sentence(label: str) -> str:
    return label[:1].upper() + label[1:]
