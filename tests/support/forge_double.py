"""What the doubles of GitHub and GitLab share: routes, pages of lists, webhooks, and who asks."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import unquote

import aiohttp
from aiohttp import web
from tests.support.forge_world import ForgeWorld

__all__ = ["Call", "ForgeDouble", "RefusalError", "Reply", "route"]


@dataclass(frozen=True)
class Call:
    """A request, once it is known who asks."""

    method: str
    path: str
    names: Mapping[str, str]
    query: Mapping[str, str]
    body: Any
    login: str

    def number(self, name: str) -> int:
        return int(self.names[name])


@dataclass(frozen=True)
class Reply:
    """An answer."""

    document: Any = None
    status: int = 200
    # The items of a list that is inside an object.
    key: str = ""


class RefusalError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


Handler = Callable[[Any, Call], Reply]


def route(method: str, template: str) -> Callable[[Handler], Handler]:
    """Have a method of a double answer a kind of request."""

    def mark(handler: Handler) -> Handler:
        known = [*getattr(handler, "routes", ()), (method, template)]
        handler.routes = known  # type: ignore[attr-defined]
        return handler

    return mark


@dataclass
class ForgeDouble:
    """A server with one repository.

    Attributes:
        world: What it keeps.
        url: Its address.
        violations: What was asked or answered against what the forge publishes.
        requests: What was asked, in its order.
    """

    world: ForgeWorld
    url: str = ""
    violations: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    prefix: ClassVar[str] = ""
    most_per_page: ClassVar[int] = 100
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _session: aiohttp.ClientSession | None = None

    def __post_init__(self) -> None:
        self.world.tell = self.tell
        handlers = [
            getattr(self, name) for name in dir(type(self)) if hasattr(getattr(type(self), name), "routes")
        ]
        self._routes = [
            (method, _compile(template), handler)
            for handler in handlers
            for method, template in handler.routes
        ]
        # The most special first: `issues/comments/{id}` before `issues/{number}/comments`.
        self._routes.sort(key=lambda row: row[1].groups)

    # --- What each double says

    def find_login(self, request: web.Request) -> str:
        """Return who asks; an empty text for nobody."""
        raise NotImplementedError

    def describe_error(self, status: int, message: str) -> Any:
        """Return the document of an error."""
        raise NotImplementedError

    def check_request(self, call: Call) -> None:
        """Fail for what the forge does not publish."""

    def finish(self, call: Call, reply: Reply) -> Any:
        """Return the whole document of an answer."""
        return reply.document

    def tell(self, kind: str, action: str, subject: Any, who: str) -> None:
        """Send webhooks of what happened."""

    # --- Serving

    @contextlib.asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Answer on loopback for the length of the block."""
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        async with aiohttp.ClientSession() as self._session:
            try:
                await web.TCPSite(runner, "127.0.0.1", 0).start()
                self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
                yield
                await asyncio.gather(*self._tasks)
            finally:
                for task in self._tasks:
                    task.cancel()
                await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        path = request.rel_url.raw_path
        self.requests.append(f"{request.method} {path}")
        try:
            login = self.find_login(request)
            if not login:
                raise RefusalError(401, "Bad credentials")
            body = await request.read()
            call = Call(
                request.method, path, {}, dict(request.query), json.loads(body) if body else None, login
            )
            return self._reply(call)
        except RefusalError as err:
            return web.json_response(self.describe_error(err.status, err.message), status=err.status)
        except AssertionError as err:
            self.violations.append(str(err))
            return web.json_response(self.describe_error(400, str(err)), status=400)

    def _reply(self, call: Call) -> web.Response:
        if not call.path.startswith(self.prefix):
            raise RefusalError(404, "Not Found")
        path = call.path.removeprefix(self.prefix)
        for method, pattern, handler in self._routes:
            if method == call.method and (match := pattern.fullmatch(path)):
                names = {name: unquote(value) for name, value in match.groupdict().items()}
                call = Call(call.method, path, names, call.query, call.body, call.login)
                self.check_request(call)
                try:
                    reply = handler(call)
                except RefusalError as err:
                    # The document of an error is one that is published, too.
                    reply = Reply(self.describe_error(err.status, err.message), err.status)
                reply, headers = self._cut_page(call, reply)
                document = self.finish(call, reply)
                if document is None:
                    return web.Response(status=reply.status)
                return web.json_response(document, status=reply.status, headers=headers)
        raise AssertionError(f"the double has no {call.method} {path}")

    def _cut_page(self, call: Call, reply: Reply) -> tuple[Reply, dict[str, str]]:
        items = reply.document.get(reply.key) if reply.key else reply.document
        if not isinstance(items, Sequence) or isinstance(items, str):
            return reply, {}
        size = min(int(call.query.get("per_page", "20")), self.most_per_page)
        page = int(call.query.get("page", "1"))
        part = items[(page - 1) * size : page * size]
        link = f'<{self.url}{self.prefix}{call.path}?page={page + 1}>; rel="next"'
        headers = {"Link": link} if page * size < len(items) else {}
        document = {**reply.document, reply.key: part} if reply.key else part
        return Reply(document, reply.status, reply.key), headers

    def send(self, url: str, headers: Mapping[str, str], document: Any) -> None:
        """Deliver a webhook, after what is being answered."""
        data = json.dumps(document).encode()
        task = asyncio.get_running_loop().create_task(self._deliver(url, self.sign(headers, data, url), data))
        self._tasks.add(task)

    def sign(self, headers: Mapping[str, str], data: bytes, url: str) -> Mapping[str, str]:
        """Return the headers of a delivery with its proof."""
        raise NotImplementedError

    async def _deliver(self, url: str, headers: Mapping[str, str], data: bytes) -> None:
        assert self._session is not None
        headers = {"Content-Type": "application/json", **headers}
        async with self._session.post(url, data=data, headers=headers) as response:
            await response.read()


def _compile(template: str) -> re.Pattern[str]:
    parts = re.split(r"(\{[^}]+\})", template)
    # What is last may have slashes in it, where the forge takes them.
    return re.compile("".join(_convert(part) for part in parts))


def _convert(part: str) -> str:
    if not part.startswith("{"):
        return re.escape(part)
    name, _, rest = part.strip("{}").partition(":")
    return f"(?P<{name}>{rest or '[^/]+'})"
