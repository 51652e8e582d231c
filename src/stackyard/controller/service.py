"""A controller that runs: put together, reloaded without losing a client, and stopped in time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base import events, files, serving
from stackyard.base.errors import StackyardError
from stackyard.base.process import open_files
from stackyard.controller.admission import Admission
from stackyard.controller.app import ControllerApp
from stackyard.controller.identity import certificate_of, renewal_in_s
from stackyard.controller.specs import SpecCollection, open_book
from stackyard.controller.tokens import MemoryStore, TokenObjects, Tokens
from stackyard.state.http.throttle import Throttle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from stackyard.clients.objects.sealed import KeyRing
    from stackyard.controller.options import ControllerOptions
    from stackyard.controller.repositories.library import Library
    from stackyard.state.http.app import StateApp
    from stackyard.state.http.auth import Authenticator

__all__ = ["RunningController", "controller"]


@dataclass(slots=True, kw_only=True)
class RunningController:
    """A controller that answers.

    Attributes:
        url: Where a client on this machine finds it.
        port: The port that it listens on.
        repo_token: Opens every repository; to be redacted from all output.
        tokens: Issues, lists and revokes signed tokens.
    """

    url: str
    port: int
    repo_token: str = field(repr=False)
    tokens: Tokens
    _options: ControllerOptions
    _server: serving.Server
    _certificate: serving.Certificate
    _app: ControllerApp
    _admission: Admission
    _library: Library | None
    _state_auth: Authenticator | None
    _site_repo_token: str | None = field(repr=False)
    _emit: events.Emit

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the certificate, as `AB:CD:...`."""
        return self._certificate.fingerprint

    @property
    def pin(self) -> str:
        """The SHA-256 of its public key as curl takes it; guests pin this, and a renewal leaves it."""
        return self._certificate.pin

    @property
    def certificate_pem(self) -> bytes:
        """The certificate, for clients that trust it as their authority."""
        return self._certificate.certificate_pem

    @property
    def specs(self) -> list[str]:
        """The names of all specs."""
        return self._app.book.names

    @property
    def repositories(self) -> list[str]:
        """The names of all repositories that are served."""
        return [] if self._library is None else self._library.names

    def document(self) -> Mapping[str, Any]:
        """Return the ready line."""
        document: dict[str, Any] = {
            "url": self.url,
            "port": self.port,
            "fingerprint": self.fingerprint,
            "pin": self.pin,
            "specs": self.specs,
        }
        if self._library is not None:
            document |= {"repo_token": self.repo_token, "repos": self.repositories}
        return document

    async def reload(self) -> None:
        """Read the site, its secrets, the tokens, the certificate and the repositories again.

        No connection is closed, and a request that is being answered ends with what it began with.

        Raises:
            StackyardError: Something cannot be read; all that was in use before stays in use.
        """
        book = await asyncio.to_thread(open_book, self._options.site, self._options.guests)
        _tell_findings(book, self._emit)
        certificate = await asyncio.to_thread(certificate_of, self._options, book.site)
        self._server.reload(serving.Tls(certificate))
        self._certificate = certificate
        self._app.book = book
        self.tokens.use_site_key(book.auth.signing_key)
        if self._options.repo_token is None and book.auth.repo_token != self._site_repo_token:
            # One that was taken out of the secrets opens nothing any more; a random one is in its place.
            self._site_repo_token = book.auth.repo_token
            self.repo_token = book.auth.repo_token or secrets.token_urlsafe(24)
            self._admission.use_repo_token(self.repo_token)
        if self._state_auth is not None:
            self._state_auth.forget()
        if self._library is not None:
            await self._library.reload()

    def gauges(self) -> Mapping[str, tuple[str, float]]:
        """Return what the metrics show of this moment."""
        return {
            "connections": ("Clients that are connected.", self._server.connections),
            "specs": ("Specs that are served.", len(self.specs)),
            "repositories": ("Repositories that are served.", len(self.repositories)),
        }

    async def keep_renewed(self, emit: events.Emit) -> None:
        """Renew the certificate before it expires, for as long as this is awaited."""
        while True:
            await asyncio.sleep(renewal_in_s(self._certificate))
            try:
                await self.reload()
            except StackyardError as err:
                emit(_make_log_line(events.LogLevel.ERROR, f"The certificate was not renewed: {err.detail}"))
            except Exception as err:
                # A mistake of ours in one reload must not be the end of all later ones.
                emit(
                    _make_log_line(
                        events.LogLevel.ERROR, f"The certificate was not renewed: {type(err).__name__}"
                    )
                )


@contextlib.asynccontextmanager
async def controller(
    options: ControllerOptions, *, emit: events.Emit = events.ignore
) -> AsyncIterator[RunningController]:
    """Run a controller for the length of the block.

    It answers when the block begins, and is stopped in under two seconds at its end, whoever is connected.

    Args:
        options: How it is to run. In the middle of another run: `port=0`, and `run_tokens=True` so that every
            token that `tokens.issue` makes ends with it.
        emit: Told of each request, and of what goes wrong.

    Raises:
        SiteNotFoundError: There is no site.
        InvalidInputError: The site, its secrets or the certificate cannot be used.
        NoRepositoriesError: Repositories should be served, and there is none.
        StoreError: The store of states cannot be used.
        ListenError: The address cannot be listened on.
    """
    book = await asyncio.to_thread(open_book, options.site, options.guests)
    _tell_findings(book, emit)
    certificate = await asyncio.to_thread(certificate_of, options, book.site)
    tokens = Tokens(
        MemoryStore() if options.run_tokens else TokenObjects(book.site.store), site_key=book.auth.signing_key
    )
    async with contextlib.AsyncExitStack() as stack:
        running = await _start_controller(options, _ControllerParts(book, certificate, tokens), emit, stack)
        renewing = asyncio.create_task(running.keep_renewed(emit))
        stack.callback(renewing.cancel)
        yield running


@dataclass(frozen=True, slots=True)
class _ControllerParts:
    """What a controller is made of before anything is open."""

    book: SpecCollection
    certificate: serving.Certificate
    tokens: Tokens


async def _start_controller(
    options: ControllerOptions, parts: _ControllerParts, emit: events.Emit, stack: contextlib.AsyncExitStack
) -> RunningController:
    """Open everything that a controller needs, the server last: the stack closes it first."""
    book, certificate, tokens = parts.book, parts.certificate, parts.tokens
    # Before anything is created to measure of it.
    open_files.raise_limit()
    repo_token = options.repo_token or book.auth.repo_token or secrets.token_urlsafe(24)
    state, state_auth = await _state(options, stack)
    library = await _library(options, book, emit, stack)
    admission = Admission(tokens, repo_token=repo_token, throttle=Throttle(options.throttle))
    app = ControllerApp(
        book,
        admission,
        library=library,
        state=state,
        gitops=options.gitops,
        on_failure=lambda err: emit(_make_log_line(events.LogLevel.ERROR, err.detail)),
    )
    server = await stack.enter_async_context(
        serving.serve(
            app.handle,
            bind=options.bind,
            port=options.port,
            tls=serving.Tls(certificate),
            limits=options.limits,
            on_access=lambda access: emit(_access_line(access)),
        )
    )
    running = RunningController(
        url=server.url,
        port=server.port,
        repo_token=repo_token,
        tokens=tokens,
        _options=options,
        _server=server,
        _certificate=certificate,
        _app=app,
        _admission=admission,
        _library=library,
        _state_auth=state_auth,
        _site_repo_token=book.auth.repo_token,
        _emit=emit,
    )
    app.gauges = running.gauges
    return running


async def _library(
    options: ControllerOptions, book: SpecCollection, emit: events.Emit, stack: contextlib.AsyncExitStack
) -> Library | None:
    if not (options.repos or options.repos_dir is not None):
        return None
    from stackyard.controller.repositories.library import Library  # lazy: it knows what secrets look like

    folder = options.repos_dir or book.site.root.parent
    library = Library(folder, exclude=options.exclude, emit=emit)
    stack.push_async_callback(library.close)
    await library.reload(required=True)
    return library


async def _state(
    options: ControllerOptions, stack: contextlib.AsyncExitStack
) -> tuple[StateApp | None, Authenticator | None]:
    if options.state is None:
        return None, None
    from stackyard.clients.objects import open_objects  # lazy: a store, only where states are served
    from stackyard.state.http.app import StateApp  # lazy: as above
    from stackyard.state.http.auth import Authenticator  # lazy: as above
    from stackyard.state.service import StateService  # lazy: as above

    objects = await asyncio.to_thread(open_objects, options.state, ring=_key_ring(options))
    stack.callback(objects.close)
    service = StateService(objects)
    auth = Authenticator(service.principals)
    app = StateApp(service, auth)
    stack.callback(app.close)
    return app, auth


def _key_ring(options: ControllerOptions) -> KeyRing | None:
    from stackyard.clients.objects.sealed import KeyRing  # lazy: cryptography, only where states are served
    from stackyard.state.daemon import KEYS_VARIABLE  # lazy: as above

    if options.state_key_file is not None:
        return KeyRing.from_text(files.read_text(options.state_key_file))
    text = os.environ.get(KEYS_VARIABLE, "")
    return KeyRing.from_text(text) if text.strip() else None


def _tell_findings(book: SpecCollection, emit: events.Emit) -> None:
    """Tell what is wrong with the site; what is not concerned by it is served."""
    for finding in book.site.found.errors:
        where = finding.where
        emit(
            events.DiagnosticFound(
                severity=finding.kind.severity,
                code=finding.kind.code,
                summary=finding.kind.summary,
                detail=finding.detail,
                file=None if where is None else where.path,
                line=None if where is None else where.line,
                column=None if where is None else where.column,
            )
        )


def _access_line(access: serving.Access) -> events.LogLine:
    asked = f"{access.peer} {access.method} {access.path}"
    text = f"{asked} {access.status} {access.bytes} {access.elapsed_s:.3f}s"
    is_ours = access.error is not None and access.status >= 500
    shown = f"{text} {type(access.error).__name__}" if is_ours else text
    return _make_log_line(events.LogLevel.ERROR if is_ours else events.LogLevel.DEBUG, shown)


def _make_log_line(level: events.LogLevel, text: str) -> events.LogLine:
    return events.LogLine(level=level, source="controller", text=text)
