"""A lab and a client for tests: `async with lab_client() as api: await api.get("/version")`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import urllib.parse
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import proxmoxer
import yarl

from pvelab.seeds import STOCK_STORAGES, Seed
from stackyard import lab
from stackyard.base.serving import ServerLimits

__all__ = ["ROOMY", "LabClient", "Refused", "Reply", "lab_client", "proxmoxer_client"]

# Somebody has let `local` take everything, so that tests have two kinds of storages for disks.
ROOMY = Seed(
    name="roomy",
    storages={
        **STOCK_STORAGES,
        "local": {
            **STOCK_STORAGES["local"],
            "content": "iso,vztmpl,snippets,import,images,backup,rootdir",
        },
    },
)
# As a lab has them, but for one: server and clients share a loop here, in which the handshakes of hundreds of
# clients at once take their time.
PATIENT = ServerLimits(max_body_bytes=None, max_connections=2048, header_timeout_s=240.0)


@dataclass(frozen=True)
class Reply:
    """An answer as it came over the wire."""

    status: int
    reason: str
    body: bytes
    headers: Mapping[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def data(self) -> Any:
        return self.json["data"]


class Refused(Exception):  # noqa: N818 - read in tests as `pytest.raises(Refused, match=...)`
    """The API answered with an error; the text is `status reason {errors}`."""

    def __init__(self, reply: Reply) -> None:
        body = json.loads(reply.body) if reply.body else {}
        self.reply = reply
        self.status = reply.status
        self.reason = reply.reason
        self.errors: dict[str, str] = body.get("errors", {})
        super().__init__(f"{reply.status} {reply.reason} {self.errors or ''}".strip())


class LabClient:
    """Calls the API of a running lab as somebody; `world` reaches inside."""

    def __init__(
        self, running: lab.Running, session: aiohttp.ClientSession, headers: Mapping[str, str]
    ) -> None:
        self.running = running
        self.world = running.world
        self._session = session
        self._headers = headers

    def with_token(self, token: str) -> LabClient:
        """Return a client that calls with an API token, `user@realm!name=secret`."""
        return LabClient(self.running, self._session, {"Authorization": f"PVEAPIToken={token}"})

    def with_headers(self, headers: Mapping[str, str]) -> LabClient:
        """Return a client that sends these headers and no others."""
        return LabClient(self.running, self._session, headers)

    async def with_password(self, userid: str, password: str) -> LabClient:
        """Log in and return a client that calls with the ticket."""
        login = await self.with_headers({}).post("/access/ticket", username=userid, password=password)
        cookie = f"PVEAuthCookie={login['ticket']}"
        return self.with_headers({"Cookie": cookie, "CSRFPreventionToken": login["CSRFPreventionToken"]})

    async def raw(self, method: str, path: str, *, base: str = "/api2/json", **options: Any) -> Reply:
        """Send anything and return the answer as it is."""
        headers = {**self._headers, **options.pop("headers", {})}
        url = yarl.URL(f"{self.running.url}{base}{path}", encoded=True)
        async with self._session.request(method, url, headers=headers, **options) as response:
            return Reply(
                response.status, response.reason or "", await response.read(), dict(response.headers)
            )

    async def call(self, method: str, path: str, params: Mapping[str, Any]) -> Any:
        """Make a call with parameters where clients put them; return its data.

        Raises:
            Refused: The answer was an error.
        """
        pairs = [(key, str(one)) for key, value in params.items() for one in _each(value)]
        encoded = urllib.parse.urlencode(pairs)
        if method in ("POST", "PUT"):
            form = {"Content-Type": "application/x-www-form-urlencoded"} if pairs else {}
            reply = await self.raw(method, path, data=encoded.encode() or None, headers=form)
        else:
            reply = await self.raw(method, f"{path}?{encoded}" if pairs else path)
        if reply.status >= 400:
            raise Refused(reply)
        return reply.data

    async def get(self, path: str, /, **params: Any) -> Any:
        return await self.call("GET", path, _spelled(params))

    async def post(self, path: str, /, **params: Any) -> Any:
        return await self.call("POST", path, _spelled(params))

    async def put(self, path: str, /, **params: Any) -> Any:
        return await self.call("PUT", path, _spelled(params))

    async def delete(self, path: str, /, **params: Any) -> Any:
        return await self.call("DELETE", path, _spelled(params))

    async def done(self, upid: str) -> str:
        """Wait for the end of a task and return its exit status."""
        await self.world.tasks.wait(upid)
        node = upid.split(":")[1]
        status = await self.get(f"/nodes/{node}/tasks/{upid}/status")
        assert status["status"] == "stopped"
        return str(status["exitstatus"])

    async def pass_time(self, seconds: int) -> None:
        """Let lab time pass second by second, with everybody having their turn after each."""
        for _ in range(seconds):
            self.world.clock.advance(1)
            for _ in range(10):
                await asyncio.sleep(0)

    async def log(self, upid: str) -> list[str]:
        """Return the lines of a task's log."""
        lines = await self.get(f"/nodes/{upid.split(':')[1]}/tasks/{upid}/log", limit=1000)
        return [line["t"] for line in lines]


@contextlib.asynccontextmanager
async def lab_client(**options: Any) -> AsyncIterator[LabClient]:
    """Run a lab and give a client that calls as root with the lab's token; options as for `lab.start`."""
    connector = aiohttp.TCPConnector(ssl=False, limit=0)
    timeout = aiohttp.ClientTimeout(total=600)
    async with (
        lab.start(**{"limits": PATIENT, "seed": ROOMY, **options}) as running,
        aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
    ):
        yield LabClient(running, session, {"Authorization": f"PVEAPIToken={running.api_token}"})


def proxmoxer_client(running: lab.Running) -> Any:
    """Return a proxmoxer client that has logged in to a lab in another thread with its password."""
    return proxmoxer.ProxmoxAPI(
        "127.0.0.1",
        port=running.port,
        user=running.username,
        password=running.password,
        verify_ssl=False,
        timeout=60,
    )


def _each(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _spelled(params: Mapping[str, Any]) -> dict[str, Any]:
    """Let tests write names with dashes as keywords: two underscores stand for a dash."""
    return {key.replace("__", "-"): value for key, value in params.items()}
