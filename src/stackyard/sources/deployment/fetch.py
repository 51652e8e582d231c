"""Fetching the object: fresh each time, completely or not, with no copy to fall back to."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import FileError, InvalidInputError, Location, UnreachableError, UsageError
from stackyard.base.files import read_text
from stackyard.clients.objects import StoreError
from stackyard.clients.objects.open_store import DATABASE
from stackyard.sources.deployment.domains import read_domains
from stackyard.sources.deployment.layer import read_layer
from stackyard.sources.deployment.open_store import open_reader
from stackyard.sources.deployment.schema import OwnSchema
from stackyard.sources.deployment.settings import LOCAL_VARIABLE, BucketAddress
from stackyard.sources.deployment.store import ObjectMissingError, fingerprint
from stackyard.sources.deployment.text import parse
from stackyard.sources.deployment.validate import Rules

if TYPE_CHECKING:
    from stackyard.sources.deployment.settings import ObjectLocation
    from stackyard.sources.deployment.store import Store, Version
    from stackyard.sources.deployment.text import ObjectText

__all__ = ["FetchError", "Object", "fetch", "fetch_from", "open_history", "rules_of"]

_SOURCE = "deployment"


class FetchError(UnreachableError):
    """The object could not be fetched: the store is down, refuses us, or does not exist."""

    code = "E-DEPLOYMENT-FETCH"
    summary = "The deployment object cannot be fetched"
    default_remedy = "Check the store, the key and the credentials; nothing was planned, nothing was changed."


@dataclass(frozen=True, slots=True, kw_only=True)
class Object:
    """The object as it is now.

    Attributes:
        document: What it says.
        label: Where it was fetched from.
        fingerprint: What tells its content from others.
        version: Which version it is, where it comes from a store.
    """

    document: ObjectText
    label: str
    fingerprint: str
    version: Version | None = None

    @property
    def binding(self) -> str:
        """What a plan from it is bound to."""
        if self.version is None:
            return f"sha256 {self.fingerprint[:32]}"
        return f"version {self.version.id}, etag {self.version.etag}"


def fetch(place: ObjectLocation, *, emit: events.Emit = events.ignore) -> Object:
    """Fetch the object from wherever it is.

    Raises:
        FetchError: The store cannot be read.
        ObjectMissingError: There is none.
        InvalidInputError: It is empty, cut off, or means more than one thing.
    """
    if place.local is not None:
        return _local(place, emit)
    if place.domains is not None:
        document = read_domains(place.domains)
        return Object(document=document, label=place.label, fingerprint=fingerprint(document.text.encode()))
    with events.step(emit, "fetch", f"Fetching {place.label}"), contextlib.closing(_reader(place)) as store:
        return fetch_from(store)


def fetch_from(store: Store) -> Object:
    """Fetch the object from an open store.

    Raises:
        FetchError: The store cannot be read.
        ObjectMissingError: There is none.
        InvalidInputError: It is empty, cut off, or means more than one thing.
    """
    try:
        fetched = store.read()
    except StoreError as err:
        raise FetchError(f"{store.label} cannot be read: {err.detail}", where=err.where) from err
    if fetched is None:
        raise ObjectMissingError(f"There is nothing at {store.label}.")
    document = parse(fetched.data, f"{store.label} (version {fetched.version.id})")
    return Object(
        document=document,
        label=store.label,
        fingerprint=fetched.fingerprint,
        version=fetched.version,
    )


def open_history(place: ObjectLocation) -> Store:
    """Open the store to look at its versions.

    Raises:
        UsageError: The object is made of committed files, or a file replaces it: neither has versions.
        FetchError: The store cannot be opened.
        ObjectMissingError: There is none.
    """
    if place.local is not None or place.domains is not None:
        raise UsageError(f"{place.label} has no versions.")
    return _reader(place)


def _reader(place: ObjectLocation) -> Store:
    store = place.store
    if not isinstance(store, BucketAddress) and not (store / DATABASE).exists():
        raise ObjectMissingError(f"There is nothing at {place.label}: no store is there yet.")
    try:
        return open_reader(place)
    except StoreError as err:
        raise FetchError(f"{place.label} cannot be opened: {err.detail}", where=err.where) from err


def _local(place: ObjectLocation, emit: events.Emit) -> Object:
    path = place.local
    if path is None:
        raise ObjectMissingError("No local file replaces the store.")
    text = (
        f"{LOCAL_VARIABLE} is set: {path} is used IN PLACE OF the versioned object. No other user sees it,"
        " and it may be out of date. Unset it as soon as the store can be reached."
    )
    emit(events.LogLine(level=events.LogLevel.WARNING, source=_SOURCE, text=text))
    try:
        content = read_text(path)
    except FileError as err:
        raise ObjectMissingError(
            f"{LOCAL_VARIABLE} names {path}, which cannot be read: {err.detail}", where=Location(str(path))
        ) from err
    return Object(
        document=parse(content, str(path)), label=str(path), fingerprint=fingerprint(content.encode())
    )


def rules_of(place: ObjectLocation) -> Rules:
    """Return what an object of a place is held against.

    Raises:
        SchemaFileError: The user's own schema is none.
        SecretsLockedError: The secrets beside the object cannot be opened.
        InvalidInputError: One of the files is wrong.
    """

    def read_data(name: str) -> str:
        path = (place.root / name).resolve()
        if not path.is_relative_to(place.root.resolve()):
            raise InvalidInputError(f"{name} leads out of {place.root}.")
        return read_text(path)

    return Rules(
        own=None if place.schema is None else OwnSchema(place.schema),
        environment=place.environment,
        layer=None if place.secrets is None else read_layer(place.secrets),
        read_data=read_data,
    )
