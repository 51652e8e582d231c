"""The service on its own: with TLS, kept credentials, reloading and maintenance, until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import hashlib
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stackyard.base import directories, files, serving
from stackyard.base.addresses import is_loopback
from stackyard.base.errors import FileError, UsageError
from stackyard.clients.objects import Objects, StoreBusyError, StoreError, open_objects
from stackyard.clients.objects.sealed import KeyRing, SealedObjects, reseal
from stackyard.state.http.app import StateApp
from stackyard.state.http.auth import Authenticator
from stackyard.state.maintenance import maintain
from stackyard.state.model import Actor, AuditAction
from stackyard.state.policy import Policy
from stackyard.state.principals import Access, Principal, Right, hash_token, make_token
from stackyard.state.service import StateService

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from pathlib import Path

__all__ = ["DaemonOptions", "RunningDaemon", "daemon", "identity_folder"]

USERNAME = "admin"
PASSWORD_VARIABLE = "STACKYARD_STATE_PASSWORD"  # noqa: S105 - its name
KEYS_VARIABLE = "STACKYARD_STATE_KEY"
_PASSWORD_FILE = "password"  # noqa: S105 - its name
_CERTIFICATE_FOLDER = "certificate"
_SHORTEST_PASSWORD = 16
_MIB = 1024 * 1024
_COLLECT_AFTER = (50_000, 20, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonOptions:
    """How the service is to run.

    Attributes:
        data: The folder of the store; with `store`, where the certificate and the password are kept.
        store: The address of a store in S3, in PostgreSQL or at another service, in place of the folder.
        bind: The address to listen on.
        port: The port, 0 for any free one.
        plain_http: Whether to speak HTTP without TLS, which is allowed on loopback alone.
        cert: A certificate to show, in place of one of our own.
        key: Its private key.
        client_ca: The authorities of client certificates; None asks for none.
        require_client_cert: Whether a client without a certificate is turned away.
        key_file: The keys of encryption at rest; None reads the variable STACKYARD_STATE_KEY.
        policy: What is allowed.
        max_body_bytes: The largest state that is taken.
        hold_s: How long the request of a client that waits for a lock is held open.
        maintain_every_s: How often old versions and left-overs are removed.
        limits: What clients are granted.
    """

    data: Path
    store: str | None = None
    bind: str = "127.0.0.1"
    port: int = 0
    plain_http: bool = False
    cert: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    require_client_cert: bool = False
    key_file: Path | None = None
    policy: Policy = field(default_factory=Policy)
    max_body_bytes: int = 64 * _MIB
    hold_s: float = 10.0
    maintain_every_s: float = 3600.0
    limits: serving.ServerLimits = field(default_factory=lambda: serving.ServerLimits(max_connections=16_384))


@dataclass(slots=True, kw_only=True)
class RunningDaemon:
    """A service that answers.

    Attributes:
        url: Where.
        username: The administrator that this process knows beside the principals of the store.
        password: Its password.
        fingerprint: The SHA-256 of the certificate; None without TLS.
        service: The states.
    """

    url: str
    username: str
    password: str = field(repr=False)
    fingerprint: str | None
    service: StateService
    _options: DaemonOptions
    _server: serving.Server
    _auth: Authenticator
    _objects: Objects
    _tidying_wanted: asyncio.Event

    def document(self) -> Mapping[str, Any]:
        """Return the ready line."""
        return {
            "url": self.url,
            "username": self.username,
            "password": self.password,
            "fingerprint": self.fingerprint,
        }

    def reload(self) -> None:
        """Read the certificate, the keys of the store and the principals again, without closing a connection.

        Raises:
            StackyardError: One of them cannot be used; the old ones stay in use.
        """
        tls = _tls(self._options)
        ring = _key_ring(self._options)
        if tls is not None:
            self._server.reload(tls)
            self.fingerprint = self._server.fingerprint
        if ring is not None and isinstance(self._objects, SealedObjects):
            self._objects.use(ring)
        self._auth.forget()
        self._tidying_wanted.set()


@contextlib.contextmanager
def _slow_garbage_collection() -> Iterator[None]:
    """Have Python look for cycles less often: while a large state is read, that takes half of the time."""
    usual = gc.get_threshold()
    gc.set_threshold(*_COLLECT_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


@contextlib.asynccontextmanager
async def daemon(options: DaemonOptions) -> AsyncIterator[RunningDaemon]:
    """Run the service for the length of the block.

    Raises:
        UsageError: The options do not go together.
        StoreError: The store cannot be used.
        ListenError: The address cannot be listened on.
        CertificateError: The certificate cannot be used.
    """
    _check(options)
    directories.ensure_private(options.data)
    tls, ring, password = _tls(options), _key_ring(options), _password(options.data)
    async with contextlib.AsyncExitStack() as stack:
        objects = await asyncio.to_thread(open_objects, options.store or options.data, ring=ring)
        stack.callback(objects.close)
        service = StateService(objects, options.policy)
        auth = Authenticator(service.principals, own=_administrator(password))
        app = StateApp(service, auth, max_body_bytes=options.max_body_bytes, hold_s=options.hold_s)
        stack.callback(app.close)
        stack.enter_context(_slow_garbage_collection())
        limits = replace(options.limits, max_body_bytes=options.max_body_bytes)
        server = await stack.enter_async_context(
            serving.serve(app.handle, bind=options.bind, port=options.port, tls=tls, limits=limits)
        )
        wanted = asyncio.Event()
        tidying = asyncio.create_task(_tidy(app, wanted, options.maintain_every_s))
        stack.callback(tidying.cancel)
        yield RunningDaemon(
            url=server.url,
            username=USERNAME,
            password=password,
            fingerprint=server.fingerprint,
            service=service,
            _options=options,
            _server=server,
            _auth=auth,
            _objects=objects,
            _tidying_wanted=wanted,
        )


async def _tidy(app: StateApp, wanted: asyncio.Event, every_s: float) -> None:
    """Remove what is old, now and then; write everything with the newest key as soon as there is one."""
    service = app.service
    while True:
        wanted.clear()
        # A store that is away is tidied the next time; the same for what another replica does at this moment.
        with contextlib.suppress(StoreError, StoreBusyError):
            await app.call(functools.partial(_reseal, service))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(wanted.wait(), every_s)
            continue
        with contextlib.suppress(StoreError, StoreBusyError):
            for name in await app.call(lambda: list(service.names())):
                await app.call(functools.partial(maintain, service, name))


def _reseal(service: StateService) -> None:
    objects = service.objects
    if isinstance(objects, SealedObjects) and objects.has_old_keys:
        count = reseal(objects)
        if count:
            detail = f"{count} objects, with the key {objects.key_id}."
            service.audit.note(Actor(principal="stackyard"), AuditAction.RESEALED, detail=detail)


def _check(options: DaemonOptions) -> None:
    if options.plain_http and not is_loopback(options.bind):
        raise UsageError(
            f"Plain HTTP on {options.bind} would show every password and state to the network.",
            remedy="Leave out --plain-http, or bind to 127.0.0.1.",
        )
    if (options.cert is None) != (options.key is None):
        raise UsageError("A certificate and its key are given together (--cert and --key).")
    if options.plain_http and (options.cert is not None or options.client_ca is not None):
        raise UsageError("Certificates need TLS; leave out --plain-http.")


def _tls(options: DaemonOptions) -> serving.Tls | None:
    if options.plain_http:
        return None
    if options.cert is not None and options.key is not None:
        certificate = serving.read_certificate(options.cert, options.key)
    else:
        is_any = options.bind in ("", "0.0.0.0", "::")  # noqa: S104 - recognised here, not bound
        names = ["localhost", "127.0.0.1", "::1", *([] if is_any else [options.bind])]
        certificate = serving.read_or_create_certificate(options.data / _CERTIFICATE_FOLDER, names)
    authorities = None if options.client_ca is None else files.read_text(options.client_ca).encode()
    return serving.Tls(
        certificate,
        client_authorities_pem=authorities,
        require_client_certificate=options.require_client_cert,
    )


def _key_ring(options: DaemonOptions) -> KeyRing | None:
    if options.key_file is not None:
        return KeyRing.from_text(files.read_text(options.key_file))
    text = os.environ.get(KEYS_VARIABLE, "")
    return KeyRing.from_text(text) if text.strip() else None


def _password(folder: Path) -> str:
    """Return the password that is given, or that is kept beside the data and made at the first start."""
    given = os.environ.get(PASSWORD_VARIABLE, "")
    if given:
        if len(given) < _SHORTEST_PASSWORD:
            raise UsageError(
                f"{PASSWORD_VARIABLE} has {len(given)} characters; it needs {_SHORTEST_PASSWORD} at least.",
                remedy="Choose a longer one, or leave it out: stackyard creates and keeps one.",
            )
        return given
    path = folder / _PASSWORD_FILE
    if not path.exists():
        # Of two services that start at once, both use the one that stays.
        files.make_file(path, make_token().encode())
    kept = files.read_text(path).strip()
    if not kept:
        raise FileError(f"{path} is empty.", remedy="Remove it; the next start creates a new password.")
    return kept


def _administrator(password: str) -> Principal:
    return Principal(
        name=USERNAME, access=(Access(rights=(Right.ADMIN,)),), token_sha256=hash_token(password)
    )


def identity_folder(store: str) -> Path:
    """Return where the certificate and the password of a service without a folder of its own are kept."""
    return directories.data_folder() / "state" / hashlib.sha256(store.encode()).hexdigest()[:16]
