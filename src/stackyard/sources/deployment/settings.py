"""Where the object is and what it is held against: `deployment.yaml`, and the environment.

The file is looked for in the current folder and those above it. It names no secret; the credentials of a
bucket come from the environment under names of their own (`S3_*`), so that those of the state (`AWS_*`) never
open the object, nor the other way round.
"""

from __future__ import annotations

import os
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from stackyard.base import directories
from stackyard.base.diagnostics import Diagnostics
from stackyard.base.errors import InvalidInputError, UsageError
from stackyard.clients.objects import check_key
from stackyard.clients.objects.open_store import check_endpoint
from stackyard.sources.deployment.schema import SCHEMA_FILE
from stackyard.sources.deployment.scope import DEFAULT_ENVIRONMENT
from stackyard.sources.site.discovery import SITE_FILE, SiteNotFoundError, find_site
from stackyard.sources.site.document import EMPTY_FILE, read_document
from stackyard.sources.site.load import Site
from stackyard.sources.site.store_choice import choose_store
from stackyard.sources.site.tree import validate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.sources.store import ChosenStore

__all__ = [
    "LOCAL_VARIABLE",
    "SAME_VARIABLE",
    "SETTINGS_FILE",
    "VARIABLE",
    "BucketAddress",
    "ObjectLocation",
    "SettingsFile",
    "find_place",
]

SETTINGS_FILE = "deployment.yaml"
VARIABLE = "STACKYARD_DEPLOYMENT"
SAME_VARIABLE = "STACKYARD_DEPLOYMENT_SAME_CREDENTIALS"
LOCAL_VARIABLE = "DEPLOYMENT_JSON_PATH"
DEFAULT_KEY = "deployment.json"
_STORE_FOLDER = "deployment"

Word = Annotated[str, StringConstraints(min_length=1, max_length=1024)]


class SettingsFile(BaseModel):
    """`deployment.yaml`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    # `s3://bucket/key?endpoint=https://host:port`, or a folder for the embedded store.
    store: Word | None = None
    # A folder with committed files, one top-level key each, in place of a store.
    domains: Word | None = None
    # Another place for the lease, as `store`.
    lease: Word | None = None
    # A schema of one's own, on top of the shipped one.
    schema_file: Annotated[Word | None, Field(alias="schema")] = None
    # A SOPS file that is merged under the object.
    secrets: Word | None = None
    environment: Word | None = None
    # Whether one set of credentials may open both the object and the state.
    same_credentials: bool = False
    # How long to wait for another session that writes.
    lease_wait_s: Annotated[int, Field(ge=0)] = 600
    # How long a session may give no sign of life before another one takes the lease over.
    lease_ttl_s: Annotated[int, Field(ge=1, le=86400)] = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketAddress:
    """An object in a bucket."""

    bucket: str
    key: str
    endpoint: str | None = None
    region: str | None = None

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}" + (f" at {self.endpoint}" if self.endpoint else "")

    @classmethod
    def parse(cls, text: str) -> BucketAddress:
        """Read `s3://bucket/key?endpoint=...&region=...`; the key is deployment.json when absent.

        Raises:
            UsageError: It is no such address, or holds credentials.
        """
        parts = urllib.parse.urlsplit(text)
        query = dict(urllib.parse.parse_qsl(parts.query))
        if not parts.netloc or "@" in parts.netloc or not query.keys() <= {"endpoint", "region"}:
            raise UsageError(
                "A store in a bucket is written s3://bucket/key, with ?endpoint=https://host:port behind it"
                " where it is not AWS; it never contains credentials."
            )
        key = parts.path.strip("/") or DEFAULT_KEY
        endpoint = query.get("endpoint") or os.environ.get("S3_ENDPOINT") or None
        check_endpoint(endpoint)
        return cls(
            bucket=parts.netloc,
            key=check_key(key),
            endpoint=endpoint,
            region=query.get("region") or os.environ.get("S3_REGION") or None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectLocation:
    """Everything that is known about where the object is.

    Attributes:
        root: The working tree that it belongs to.
        base: The folder for what runs leave for the next.
        settings: What the file says.
        store: The bucket or the folder of the store.
        domains: The folder of committed files, where these take the place of a store.
        local: A file that replaces the store, for work without it.
        environ: The environment.
    """

    root: Path
    base: Path
    settings: SettingsFile
    store: BucketAddress | Path
    domains: Path | None = None
    local: Path | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)

    def run_store(self) -> ChosenStore:
        """Return where what runs leave is kept; its credentials are its own, and never `S3_*`.

        Raises:
            InvalidInputError: It is not clear which store is meant.
        """
        if (self.root / SITE_FILE).is_file():
            return Site.open(self.root).store
        return choose_store(self.root, self.base)

    @property
    def environment(self) -> str:
        """The environment that the object has to be of."""
        return self.settings.environment or DEFAULT_ENVIRONMENT

    @property
    def schema(self) -> Path | None:
        """The user's own schema, where there is one."""
        if self.settings.schema_file is not None:
            return self.root / self.settings.schema_file
        beside = self.root / SCHEMA_FILE
        return beside if beside.is_file() else None

    @property
    def secrets(self) -> Path | None:
        """The SOPS file, where there is one."""
        return None if self.settings.secrets is None else self.root / self.settings.secrets

    @property
    def label(self) -> str:
        """Where the object is, for a person."""
        if self.local is not None:
            return str(self.local)
        if self.domains is not None:
            return f"{self.domains}/*.json"
        if isinstance(self.store, BucketAddress):
            return str(self.store)
        return f"the object in {self.store}"


def find_place(said: str | None = None, *, start: Path | None = None) -> ObjectLocation:
    """Return where the object is.

    Args:
        said: The store that the user names: an address, a folder, or `domains:FOLDER`.
        start: The folder to look from; the current one when absent.

    Raises:
        InvalidInputError: The settings are wrong.
        UsageError: The address of the store makes no sense.
    """
    here = Path(os.path.abspath(start or "."))
    root, base, settings = _folders(here)
    local = os.environ.get(LOCAL_VARIABLE)
    address = said or os.environ.get(VARIABLE)
    if address:
        is_domains, rest = address.startswith("domains:"), address.removeprefix("domains:")
        domains = here / rest if is_domains else None
        store = base / _STORE_FOLDER if is_domains else _store(here, address)
    else:
        domains = root / settings.domains if settings.domains else None
        store = _store(root, settings.store) if settings.store else _default_store(base)
    return ObjectLocation(
        root=root,
        base=base,
        settings=settings,
        store=store,
        domains=domains,
        local=Path(local) if local else None,
    )


def _default_store(base: Path) -> BucketAddress | Path:
    """Return the store by default: the bucket of the environment, else a file of our own."""
    bucket = os.environ.get("S3_BUCKET")
    return BucketAddress.parse(f"s3://{bucket}") if bucket else base / _STORE_FOLDER


def _store(root: Path, text: str) -> BucketAddress | Path:
    return BucketAddress.parse(text) if text.startswith("s3://") else root / text


def _folders(here: Path) -> tuple[Path, Path, SettingsFile]:
    for folder in (here, *here.parents):
        if (folder / SETTINGS_FILE).is_file():
            return folder, folder / directories.PROJECT_FOLDER, _read(folder / SETTINGS_FILE)
    try:
        site = find_site(start=here)
    except SiteNotFoundError:
        return here, directories.data_folder(), SettingsFile()
    return site, site / directories.PROJECT_FOLDER, SettingsFile()


def _read(path: Path) -> SettingsFile:
    found = Diagnostics()
    document = read_document(path, found)
    if document is None and [finding.kind for finding in found.errors] == [EMPTY_FILE]:
        return SettingsFile()
    settings = None if document is None else validate(SettingsFile, document, found)
    found.raise_errors(str(path))
    if settings is None:
        raise InvalidInputError(f"{path} is not valid.")
    if settings.store and settings.domains:
        raise InvalidInputError(f"{path} names both a `store` and `domains`: the object is in one of them.")
    return settings
