"""The HTTP side of the API: paths, bodies, who calls, reason phrases and envelopes."""

from __future__ import annotations

import contextlib
import secrets
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import BodyPartReader, web
from aiohttp.http_exceptions import HttpProcessingError

from pvelab.faults.faults import Point
from pvelab.faults.latency import Work
from pvelab.server.call import Upload
from pvelab.server.decode import decode_form, decode_json, decode_path
from pvelab.server.dispatch import Answer, ConnectionDropped, Dispatcher, Request
from pvelab.server.journal import mask
from pvelab.server.problems import PveError, defect
from pvelab.world.access.login import NOBODY, Identity
from stackyard.base.serving import is_chunked, mark_known, respond

if TYPE_CHECKING:
    from pvelab.world.world import World

__all__ = ["Api", "Control"]

# Answers the lab's own routes under /_lab/.
Control = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

_CONTENT_TYPE = "application/json;charset=UTF-8"
_HEADERS = {"Server": "pve-api-daemon/3.0", "Cache-Control": "max-age=0", "Pragma": "no-cache"}
_METHODS = frozenset(("GET", "POST", "PUT", "DELETE"))
_LARGEST_FORM = 512 * 1024
_CHUNK = 1024 * 1024
# Refused logins that are kept waiting at once; each keeps its connection.
_MOST_DELAYED = 64
# What is raised when a client goes, stalls or sends what is no request.
_THEIRS = (web.HTTPException, web.RequestPayloadError, OSError)


class Api:
    """Answers HTTP requests for /api2/json and /api2/extjs.

    Args:
        world: The lab.
        dispatcher: What answers the calls.
        control: What answers requests under /_lab/, None where there is nothing.
        spool: The folder for the files of uploads; the system's for temporary files if None.
    """

    def __init__(
        self,
        world: World,
        dispatcher: Dispatcher,
        *,
        control: Control | None = None,
        spool: Path | None = None,
    ) -> None:
        self._world = world
        self._dispatcher = dispatcher
        self._control = control
        self._spool = spool
        self._delayed = 0

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; a defect of ours is reported, and the server answers it with 500."""
        try:
            return await self._handle(request)
        except _THEIRS:
            raise
        except Exception as err:  # The edge of a request: the server below tells no one what went wrong.
            defect(f"{request.method} {request.raw_path}", err)
            raise

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        raw, _, query = request.raw_path.partition("?")
        path = decode_path(raw)
        if self._control is not None and (path == "/_lab" or path.startswith("/_lab/")):
            return await self._control(request)
        base, _, rest = path[1:].partition("/")
        form, _, rest = rest.partition("/")
        if base != "api2" or form not in ("json", "extjs"):
            return _plain(501, "no such uri")
        try:
            answer = await self._answer(request, f"/{rest}", query.encode("utf-8", "surrogateescape"))
        except ConnectionDropped:
            if request.transport is not None:
                request.transport.abort()
            return _plain(503, "dropped")
        return _response(answer, form)

    async def _answer(self, request: web.BaseRequest, path: str, query: bytes) -> Answer:
        identity: Identity = NOBODY
        parameters: dict[str, Any] = {}
        try:
            node = path.split("/")[2] if path.startswith("/nodes/") else ""
            await self._dispatcher.strike(Point.BEFORE_AUTH, request.method, path, node)
            if request.method not in _METHODS:
                raise PveError(f"method '{request.method}' not available", status=501)
            identity = self._world.login.identify(request.method, path, request.headers)
            if identity.authid is not None:
                mark_known(request)
            async with self._read(request, path, query, parameters) as upload:
                answer = await self._dispatcher.perform(
                    Request(
                        method=request.method,
                        path=path,
                        identity=identity,
                        parameters=parameters,
                        upload=upload,
                    )
                )
        except PveError as problem:
            answer = Answer.refusal(problem)
        if answer.status == 401:
            await self._delay_refused_login()
        self._write_down(request.method, path, identity, parameters, answer)
        return answer

    async def _delay_refused_login(self) -> None:
        """Wait as Proxmox does, for as many at once as leave connections for everyone else."""
        if self._delayed >= _MOST_DELAYED:
            return
        self._delayed += 1
        try:
            await self._world.clock.sleep(self._world.latency.seconds(Work.AUTH))
        finally:
            self._delayed -= 1

    @contextlib.asynccontextmanager
    async def _read(
        self, request: web.BaseRequest, path: str, query: bytes, parameters: dict[str, Any]
    ) -> AsyncIterator[Upload | None]:
        """Read query and body into the parameters; an uploaded file lives for the length of the block."""
        if is_chunked(request):
            raise PveError("chunked transfer encoding not supported", status=501)
        length = request.content_length or 0
        if length and request.method in ("GET", "DELETE"):
            raise PveError(f"Unexpected content for method '{request.method}'", status=501)
        if length and request.content_type == "multipart/form-data" and path.endswith("/upload"):
            parameters.update(decode_form(query))
            with tempfile.TemporaryDirectory(prefix="upload-", dir=self._spool) as folder:
                yield await _read_multipart(request, Path(folder), parameters)
            return
        if length > _LARGEST_FORM:
            raise PveError("for data too large", status=501)
        if length:
            parameters.update(await _read_body(request))
        parameters.update(decode_form(query))
        parameters.pop("_dc", None)
        yield None

    def _write_down(
        self, method: str, path: str, identity: Identity, parameters: Mapping[str, Any], answer: Answer
    ) -> None:
        self._world.journal.add(
            time=self._world.clock.now(),
            method=method,
            path=path,
            parameters=mask(path, parameters),
            user=identity.authid,
            status=answer.status,
            reason=answer.reason,
            result=answer.data if isinstance(answer.data, str) and answer.data.startswith("UPID:") else None,
        )


async def _read_body(request: web.BaseRequest) -> dict[str, Any]:
    body = await request.read()
    if request.content_type == "application/json":
        return decode_json(body)
    # aiohttp gives this type to a body that came without one, which Proxmox reads as a form.
    if request.content_type in ("application/x-www-form-urlencoded", "application/octet-stream"):
        return decode_form(body)
    raise PveError(f"upload 'Content-Type '{request.content_type}' not implemented", status=506)


async def _read_multipart(request: web.BaseRequest, folder: Path, parameters: dict[str, Any]) -> Upload:
    """Read the fields and the one file of an upload."""
    try:
        upload = await _read_parts(request, folder / "content", parameters)
    except (ValueError, AssertionError, HttpProcessingError) as err:
        # What is cut off or no multipart: aiohttp tells it in many ways, Proxmox in one.
        raise PveError("upload failed", status=501) from err
    if upload is None:
        raise PveError("upload failed", status=501)
    parameters["filename"] = upload.filename
    parameters["tmpfilename"] = f"/var/tmp/pveupload-{secrets.token_hex(16)}"  # noqa: S108 - Proxmox's own name
    return upload


async def _read_parts(request: web.BaseRequest, target: Path, parameters: dict[str, Any]) -> Upload | None:
    upload: Upload | None = None
    async for part in await request.multipart():
        if not isinstance(part, BodyPartReader) or part.name is None:
            continue
        if part.filename is None and part.name != "filename":
            parameters[part.name] = (await _read_field(part)).decode(errors="replace").rstrip("\r\n")
            continue
        size = 0
        with target.open("wb") as stream:
            while chunk := await part.read_chunk(_CHUNK):
                size += stream.write(chunk)
        upload = Upload(path=target, filename=part.filename or "", size=size)
    return upload


async def _read_field(part: BodyPartReader) -> bytes:
    """Read a field of an upload that is no file, up to the size of any other form."""
    field = bytearray()
    while chunk := await part.read_chunk():
        field += chunk
        if len(field) > _LARGEST_FORM:
            raise PveError("for data too large", status=501)
    return bytes(field)


def _response(answer: Answer, form: str) -> web.Response:
    if answer.bare and form == "json":
        response = respond(answer.status, reason=answer.reason, headers=_HEADERS)
        response.force_close()
        return response
    failed = answer.status >= 400
    envelope: dict[str, Any] = {"data": answer.data}
    if answer.errors:
        envelope["errors"] = answer.errors
    if failed:
        envelope["message"] = answer.message
    else:
        envelope |= {key: value for key in ("total", "changes") if (value := getattr(answer, key))}
    status, reason = answer.status, answer.reason
    if form == "extjs":
        envelope["success"] = int(not failed)
        if failed:
            envelope["status"] = answer.status
            status, reason = 200, "OK"
    body = orjson.dumps(envelope, option=orjson.OPT_NON_STR_KEYS)
    response = respond(status, body, reason=reason, content_type=_CONTENT_TYPE, headers=_HEADERS)
    if failed:
        response.force_close()
    return response


def _plain(status: int, reason: str) -> web.Response:
    response = respond(status, reason.encode(), reason=reason, content_type="text/plain", headers=_HEADERS)
    response.force_close()
    return response
