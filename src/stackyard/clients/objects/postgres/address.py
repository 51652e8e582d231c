"""The address of a store in PostgreSQL: `postgresql://user@host:5432/database?schema=stackyard`."""

from __future__ import annotations

import re
import urllib.parse
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg
import psycopg.conninfo

from stackyard.base.addresses import is_loopback
from stackyard.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PostgresAddress"]

_DEFAULT_SCHEMA = "stackyard"
# The name is also a part of the channel of notices, which has at most 63 bytes.
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,49}")
_SECRETS = {"password", "sslpassword"}
# Of libpq's parameters those that say where the database is, who we are, and how the connection is protected.
_ALLOWED = frozenset(
    """
    host hostaddr port dbname user passfile service connect_timeout application_name target_session_attrs
    load_balance_hosts sslmode sslrootcert sslcert sslkey sslcrl sslcrldir sslsni sslnegotiation
    ssl_min_protocol_version ssl_max_protocol_version channel_binding require_auth gssencmode krbsrvname
    gsslib
    """.split()
)
_DEFAULTS = {
    "application_name": "stackyard",
    "connect_timeout": "10",
    # Whatever the encoding of the database is: keys are ASCII.
    "client_encoding": "UTF8",
    # A server that vanished without a word is noticed within half a minute.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "25000",
}
_FORM = "postgresql://user@host:5432/database?schema=stackyard"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresAddress:
    """Where a store is. It never holds a password.

    Attributes:
        parameters: What libpq needs to connect.
        schema: The schema with the tables of the store.
    """

    parameters: Mapping[str, str]
    schema: str = _DEFAULT_SCHEMA

    @classmethod
    def parse(cls, address: str) -> PostgresAddress:
        """Read an address.

        Raises:
            UsageError: It makes no sense, or holds a password. The message quotes nothing of the address.
        """
        _refuse_password(address)
        head, _, query = address.partition("?")
        pairs = urllib.parse.parse_qsl(query, keep_blank_values=True)
        schemas = [value for name, value in pairs if name == "schema"] or [_DEFAULT_SCHEMA]
        rest = urllib.parse.urlencode(
            [pair for pair in pairs if pair[0] != "schema"], quote_via=urllib.parse.quote
        )
        try:
            given = psycopg.conninfo.conninfo_to_dict(f"{head}?{rest}")
        except psycopg.Error:
            # libpq quotes the address, which may hold a secret in a place where no one expects it.
            raise UsageError(f"The address of the PostgreSQL store cannot be read. Give {_FORM}.") from None
        parameters = {name: str(value) for name, value in given.items() if value is not None}
        _check(parameters, schemas)
        return cls(parameters=_complete(parameters), schema=schemas[0])

    @property
    def label(self) -> str:
        """The database, for a person."""
        given = self.parameters
        if "service" in given:
            return f"the database of service {given['service']}"
        name = f"database {given['dbname']}" if "dbname" in given else "the database"
        hosts = (given.get("host") or given.get("hostaddr") or "").split(",")
        ports = given.get("port", "").split(",")
        if len(ports) == len(hosts):
            hosts = [f"{host}:{port}".rstrip(":") for host, port in zip(hosts, ports, strict=True)]
        return f"{name} at {', '.join(hosts)}" if any(hosts) else name


def _refuse_password(address: str) -> None:
    """Refuse a password, also in an address that is otherwise wrong."""
    head, _, query = address.partition("?")
    names = {name.lower() for name, _ in urllib.parse.parse_qsl(query, keep_blank_values=True)}
    # A password with a slash in it moves the @ out of the place where the user belongs.
    user, at, _ = head.partition("://")[2].rpartition("@")
    if names & _SECRETS or (at and ":" in user):
        raise UsageError(
            "The address of the PostgreSQL store holds a password. It was not used.",
            remedy="Give the password in PGPASSWORD, ~/.pgpass or a service file, and change it: it may have"
            " been recorded.",
        )


def _check(parameters: Mapping[str, str], schemas: list[str]) -> None:
    unknown = sorted(parameters.keys() - _ALLOWED)
    if unknown:
        raise UsageError(
            f"The address of a PostgreSQL store takes no {', '.join(unknown)}."
            f" It takes schema, {', '.join(sorted(_ALLOWED - {'dbname'}))}."
        )
    if len(schemas) > 1 or not _SCHEMA.fullmatch(schemas[0]):
        raise UsageError(
            "The schema of a PostgreSQL store is one name of at most 50 small letters, digits and _."
        )
    if not ("dbname" in parameters or "service" in parameters):
        raise UsageError(f"The address of a PostgreSQL store names a database: {_FORM}.")


def _complete(parameters: Mapping[str, str]) -> dict[str, str]:
    """Add what the address leaves out."""
    complete = {**_DEFAULTS, **parameters}
    hosts = parameters.get("host", "").split(",")
    if "sslmode" not in parameters and not all(map(_is_local, hosts)):
        complete["sslmode"] = "verify-full"
    if len(hosts) > 1:
        # After a failover the old primary may be a standby.
        complete.setdefault("target_session_attrs", "primary")
    return complete


def _is_local(host: str) -> bool:
    """Tell whether a host is certainly this machine: its name may come from elsewhere if none is given."""
    return host.startswith(("/", "@")) or is_loopback(host)
