"""One handler for everything that clients of the controller ask."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import orjson

from stackyard.base.errors import StackyardError
from stackyard.base.process import open_files
from stackyard.clients.objects import StoreBusyError, StoreError
from stackyard.controller.answers import answer_json, answer_refusal, answer_text
from stackyard.controller.metrics import Metrics
from stackyard.controller.openapi import openapi
from stackyard.controller.refusals import Code, RequestRefusedError
from stackyard.controller.repositories import plain, smart
from stackyard.controller.repositories.spool import busy
from stackyard.controller.request_path import RequestPath, read_path
from stackyard.controller.routes import READ, ROUTES
from stackyard.controller.specs import Format

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from aiohttp import web

    from stackyard.base.serving import Handler
    from stackyard.controller.admission import Admission
    from stackyard.controller.repositories.library import Library
    from stackyard.controller.specs import SpecCollection
    from stackyard.state.http.app import StateApp

    Handle = Callable[[web.BaseRequest, RequestPath], Awaitable[web.StreamResponse]]

__all__ = ["ControllerApp"]

_STATE = "/state/"
_GITOPS = "/gitops/"
_GIT = ".git"
_METHODS = {route.name: route.methods for route in ROUTES}


class ControllerApp:
    """Answers requests.

    Args:
        book: The specs.
        admission: Decides who may have what.
        library: The repositories; None serves none.
        state: The state service, for all below /state/; None serves none.
        gitops: What answers below /gitops/: webhooks of a forge; None answers nothing there.
        on_failure: Told what went wrong on our side; its client learns nothing of it.
    """

    def __init__(
        self,
        book: SpecCollection,
        admission: Admission,
        *,
        library: Library | None = None,
        state: StateApp | None = None,
        gitops: Handler | None = None,
        on_failure: Callable[[StackyardError], None] = lambda err: None,
    ) -> None:
        self.book = book
        self.metrics = Metrics()
        self.gauges: Callable[[], Mapping[str, tuple[str, float]]] = dict
        self._admission = admission
        self._library = library
        self._state = state
        self._gitops = gitops
        self._on_failure = on_failure
        self._openapi = orjson.dumps(openapi())
        self._handlers: dict[str, Handle] = {
            "health": self._health,
            "specs": self._specs,
            "spec": self._spec,
            "metrics": self._metrics,
            "openapi": self._openapi_document,
            "git-refs": self._git_refs,
            "git-pack": self._git_pack,
            "file": self._file,
        }

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        if self._state is not None and request.raw_path.startswith(_STATE):
            return await self._to_state(request, self._state)
        if self._gitops is not None and request.raw_path.startswith(_GITOPS):
            return await self._to_gitops(request, self._gitops)
        began, route = time.monotonic(), "other"
        try:
            asked = read_path(request.raw_path)
            route = _route(asked.segments)
            response = await self._answer(request, asked, route)
        except RequestRefusedError as err:
            if err.wire_code == Code.TOO_MANY:
                await self._admission.hold_back()
            response = answer_refusal(err)
        except StackyardError as err:
            self._on_failure(err)
            failed = RequestRefusedError(500, Code.FAILED, "The controller failed.")
            response = answer_refusal(busy() if open_files.is_shortage(err) else failed)
        self.metrics.count_request(route, response.status, time.monotonic() - began)
        return response

    async def _answer(self, request: web.BaseRequest, asked: RequestPath, route: str) -> web.StreamResponse:
        methods = _METHODS.get(route, READ)
        if request.method not in methods:
            headers = {"Allow": ", ".join(methods)}
            raise RequestRefusedError(405, Code.METHOD, "That is not done here.", headers=headers)
        handler = self._handlers.get(route)
        if handler is None:
            raise RequestRefusedError(404, Code.BAD_REQUEST, "There is nothing here.")
        return await handler(request, asked)

    async def _to_state(self, request: web.BaseRequest, state: StateApp) -> web.StreamResponse:
        """Pass a request to the state service, which sees the path as if it were alone.

        The path stays the text that was sent: what can be in one is not always a URL.
        """
        began = time.monotonic()
        response = await state.handle(request, path=request.raw_path.removeprefix(_STATE.rstrip("/")))
        self.metrics.count_request("state", response.status, time.monotonic() - began)
        return response

    async def _to_gitops(self, request: web.BaseRequest, gitops: Handler) -> web.StreamResponse:
        began = time.monotonic()
        response = await gitops(request)
        self.metrics.count_request("gitops", response.status, time.monotonic() - began)
        return response

    # --- Specs

    async def _health(self, request: web.BaseRequest, asked: RequestPath) -> web.StreamResponse:
        del request, asked
        if self._state is not None:
            try:
                await self._state.check_store()
            except (StoreError, StoreBusyError) as err:
                # Everyone may ask: where the store is is not told.
                body = {"status": "failed", "code": err.code, "reason": f"States: {err.summary}"}
                return answer_json(body, status=503)
        return answer_json({"status": "ok"})

    async def _specs(self, request: web.BaseRequest, asked: RequestPath) -> web.StreamResponse:
        del request, asked
        return answer_json({"specs": self.book.names})

    async def _spec(self, request: web.BaseRequest, asked: RequestPath) -> web.StreamResponse:
        identity = asked.segments[1] if len(asked.segments) > 1 else ""
        try:
            form = Format(asked.query.get("format", Format.JSON))
        except ValueError as err:
            detail = f"`format` is one of {', '.join(Format)}."
            raise RequestRefusedError(400, Code.BAD_REQUEST, detail) from err
        # One reading of the site for the whole answer, whatever is reloaded meanwhile.
        book = self.book
        wanted = book.find(identity)
        self._admission.admit_to_spec(request, book, wanted)
        return answer_text(book.render(wanted, form), form.content_type)

    # --- Repositories

    async def _git_refs(self, request: web.BaseRequest, asked: RequestPath) -> web.StreamResponse:
        library, name = self._admit(request, asked)
        service = asked.query.get("service")
        if service is None:
            return await plain.send_git_file(request, library.find(name), "info/refs")
        if service != smart.SERVICE:
            raise RequestRefusedError(403, Code.TOKEN_WRONG, "Repositories are only read here.")
        return await smart.advertise(request, library.find(name), library.spools)

    async def _git_pack(self, request: web.BaseRequest, asked: RequestPath) -> web.StreamResponse:
        library, name = self._admit(request, asked)
        return await smart.upload_pack(request, library.find(name), library.spools)

    async def _file(self, request: web.BaseRequest, asked: RequestPath) -> web.StreamResponse:
        library, name = self._admit(request, asked)
        path = "/".join(asked.segments[1:])
        if plain.is_git_path(path):
            return await plain.send_git_file(request, library.find(name), path)
        return await plain.send_file(request, library.find(name), path, library.spools)

    def _admit(self, request: web.BaseRequest, asked: RequestPath) -> tuple[Library, str]:
        """Return the repositories and the name of the one that is asked for, where the client may have it."""
        name = asked.segments[0].removesuffix(_GIT)
        if self._library is None:
            raise RequestRefusedError(404, Code.NOT_FOUND, "No repositories are served here.")
        self._admission.admit_to_repository(request, name)
        return self._library, name

    # --- About ourselves

    async def _metrics(self, request: web.BaseRequest, asked: RequestPath) -> web.StreamResponse:
        del request, asked
        text = self.metrics.text(self.gauges()).encode()
        return answer_text(text, "text/plain; version=0.0.4; charset=utf-8")

    async def _openapi_document(self, request: web.BaseRequest, asked: RequestPath) -> web.StreamResponse:
        del request, asked
        return answer_text(self._openapi, "application/json")


def _route(segments: tuple[str, ...]) -> str:
    """Return the name of the route of a path; `other` for none."""
    match segments:
        case ("health",) | ("specs",) | ("metrics",):
            return segments[0]
        case ("openapi.json",):
            return "openapi"
        case ("spec",) | ("spec", _):
            return "spec"
        case (repo, *rest) if repo.endswith(_GIT) and repo != _GIT and rest:
            names = {"info/refs": "git-refs", "git-upload-pack": "git-pack"}
            return names.get("/".join(rest), "file")
    return "other"
