"""From an address to a store: a folder on this machine, or an address.

An address is `s3://bucket/prefix`, `postgresql://host/database`, or `https://host:port` of a state service.
"""

from __future__ import annotations

import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base import directories, extras
from stackyard.base.errors import UsageError
from stackyard.clients.objects.base import Objects, check_key
from stackyard.clients.objects.sqlite import SqliteObjects

if TYPE_CHECKING:
    from stackyard.clients.objects.sealed import KeyRing

__all__ = ["DATABASE", "check_address", "check_endpoint", "open_objects"]

DATABASE = "objects.sqlite"
_POSTGRES = ("postgresql://", "postgres://")
_HTTP = ("https://", "http://")
_FORMS = (
    "Use s3://bucket/prefix, with ?endpoint=https://host:port if it is not AWS; postgresql://user@host/database;"
    " or https://host:port for a state service."
)


def open_objects(where: Path | str, *, ring: KeyRing | None = None, create: bool = True) -> Objects:
    """Open a store.

    Args:
        where: A folder, which keeps the store in one file; an address `s3://bucket/prefix` with, for a
            store that is not AWS, `?endpoint=https://host:port` and `&region=name` behind it; an address
            `postgresql://user@host:port/database` with `?schema=name` and parameters of libpq behind it; or
            the address of a state service, `https://host:port`, with `?fingerprint=` or `?ca=` behind it.
        ring: The keys of a store that is encrypted at rest.
        create: Whether a folder, schema or table that is not there is created. Without it nothing is written
            before the first write: neither the right to write nor room is needed to read.

    Raises:
        UsageError: The address makes no sense.
        MissingExtraError: What speaks to such a store is not installed.
        StoreError: The store cannot be used.
    """
    objects = _open(where, create)
    if ring is None:
        return objects
    from stackyard.clients.objects.sealed import SealedObjects  # lazy: cryptography costs 50 ms; few need it

    return SealedObjects(objects, ring)


def _open(where: Path | str, create: bool) -> Objects:
    if not isinstance(where, str) or "://" not in where:
        return _open_folder(Path(where), create)
    if where.startswith(_POSTGRES):
        return _open_postgres(where, create)
    if where.startswith(_HTTP):
        return _open_http(where)
    return _open_s3(where, create)


def _open_folder(folder: Path, create: bool) -> Objects:
    if create:
        directories.ensure_private(folder)
    return SqliteObjects(folder / DATABASE, create=create)


def _open_postgres(address: str, create: bool) -> Objects:
    with extras.needed("postgres", "A store in PostgreSQL"):
        from stackyard.clients.objects.postgres import (  # lazy: only those who use PostgreSQL pay for it
            PostgresAddress,
            PostgresObjects,
        )

    return PostgresObjects(PostgresAddress.parse(address), create=create)


def _open_http(address: str) -> Objects:
    from stackyard.clients.objects.http import HttpAddress, HttpObjects  # lazy: only those who use it pay

    return HttpObjects(HttpAddress.parse(address))


def _open_s3(address: str, create: bool) -> Objects:
    with extras.needed("s3", "A store in S3"):
        from stackyard.clients.objects.s3 import S3Config, S3Objects  # lazy: only those who use S3 pay for it

    parts, query = _split_s3(address)
    place = S3Config(
        bucket=parts.netloc,
        prefix=parts.path.strip("/"),
        endpoint_url=query.get("endpoint"),
        region=query.get("region"),
    )
    return S3Objects(place, is_read_only=not create)


def _split_s3(address: str) -> tuple[urllib.parse.SplitResult, dict[str, str]]:
    """Return the parts of an address of a bucket.

    Raises:
        UsageError: It makes no sense.
        KeyFormError: The prefix cannot be the name of an object.
    """
    parts = urllib.parse.urlsplit(address)
    query = dict(urllib.parse.parse_qsl(parts.query))
    if (
        parts.scheme != "s3"
        or not parts.hostname
        or "@" in parts.netloc
        or not query.keys() <= {"endpoint", "region"}
    ):
        raise UsageError(
            f"{parts.scheme}://{parts.hostname or ''} is not the address of a store.", remedy=_FORMS
        )
    check_endpoint(query.get("endpoint"))
    if prefix := parts.path.strip("/"):
        check_key(prefix)
    return parts, query


def check_address(address: str) -> None:
    """Refuse an address that is no address of a store that several machines reach; nothing is connected to.

    Raises:
        UsageError: It is none, or holds a password.
    """
    if address.startswith(_POSTGRES):
        with extras.needed("postgres", "A store in PostgreSQL"):
            from stackyard.clients.objects.postgres import PostgresAddress  # lazy: as in _open_postgres

        PostgresAddress.parse(address)
    elif address.startswith("s3://"):
        _split_s3(address)
    elif address.startswith(_HTTP):
        from stackyard.clients.objects.http import HttpAddress  # lazy: as in _open_http

        HttpAddress.parse(address)
    else:
        raise UsageError("This is not the address of a store that several machines can use.", remedy=_FORMS)


def check_endpoint(url: str | None) -> None:
    """Refuse the address of a store that has credentials in it: addresses are shown and written down.

    Raises:
        UsageError: It has.
    """
    if url is not None and "@" in urllib.parse.urlsplit(url).netloc:
        raise UsageError(
            "The endpoint of the store holds a user name or a password. It was not used.",
            remedy="Put credentials into the environment, and change the password, since it may be in logs.",
        )
