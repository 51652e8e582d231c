"""Clients of the state service for tests: states, locks, and the four requests that the engines make."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import yarl

from stackyard.base import serving
from stackyard.state import Access, Principal, Right, StateService
from stackyard.state.http import Authenticator, StateApp, Throttle
from stackyard.state.principals import hash_token

__all__ = ["Client", "Reply", "lock_body", "served", "state_body"]

LINEAGE = "3f1b9a4e-0000-4000-8000-000000000001"
TOKEN = "a-token-for-tests-that-is-long-enough"
NAME = "admin"


def state_body(serial: int, *, lineage: str = LINEAGE, resources: int = 1, note: str = "") -> bytes:
    """Return a state as OpenTofu writes it."""
    rows = [
        {
            "mode": "managed",
            "type": "terraform_data",
            "name": f"r{number}",
            "provider": 'provider["terraform.io/builtin/terraform"]',
            "instances": [{"schema_version": 0, "attributes": {"id": str(number), "note": note}}],
        }
        for number in range(resources)
    ]
    document = {
        "version": 4,
        "terraform_version": "1.12.6",
        "serial": serial,
        "lineage": lineage,
        "outputs": {},
        "resources": rows,
        "check_results": None,
    }
    return json.dumps(document).encode()


def lock_body(
    lock_id: str | None = None, *, who: str = "me@here", operation: str = "OperationTypeApply"
) -> bytes:
    """Return a lock as the engines send it."""
    fields = {
        "ID": lock_id or str(uuid.uuid4()),
        "Operation": operation,
        "Info": "",
        "Who": who,
        "Version": "1.12.6",
        "Created": "2026-01-02T03:04:05.123456789Z",
        "Path": "",
    }
    return json.dumps(fields).encode()


def lock_id_of(body: bytes) -> str:
    return str(json.loads(body)["ID"])


@dataclass(frozen=True)
class Reply:
    """What the service answered."""

    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def document(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    """Makes requests as the engines do."""

    session: aiohttp.ClientSession
    url: str
    headers: dict[str, str] = field(default_factory=dict)

    async def request(
        self, method: str, path: str, data: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Reply:
        sent = {**self.headers, **(headers or {})}
        # Encoded already: tricks with paths must arrive as they are.
        url = yarl.URL(self.url + path, encoded=True)
        async with self.session.request(
            method, url, data=None if data is None else io.BytesIO(data), headers=sent
        ) as answer:
            return Reply(answer.status, await answer.read(), {**answer.headers})

    async def get(self, name: str) -> Reply:
        return await self.request("GET", f"/states/{name}")

    async def post(self, name: str, data: bytes, lock_id: str = "", **headers: str) -> Reply:
        query = f"?ID={lock_id}" if lock_id else ""
        md5 = base64.b64encode(hashlib.md5(data).digest()).decode()
        sent = {"Content-MD5": md5, "Content-Type": "application/json"}
        sent |= {key.replace("_", "-"): value for key, value in headers.items()}
        return await self.request("POST", f"/states/{name}{query}", data, sent)

    async def lock(self, name: str, body: bytes) -> Reply:
        return await self.request("LOCK", f"/states/{name}", body)

    async def unlock(self, name: str, body: bytes) -> Reply:
        return await self.request("UNLOCK", f"/states/{name}", body)

    async def cycle(self, name: str, serial: int, **fields: Any) -> None:
        """Lock, write and unlock, all of which must work."""
        lock = lock_body()
        assert (await self.lock(name, lock)).status == 200
        assert (await self.post(name, state_body(serial, **fields), lock_id_of(lock))).status == 200
        assert (await self.unlock(name, lock)).status == 200


def basic(name: str, secret: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()}


def administrator() -> Principal:
    return Principal(name=NAME, access=(Access(rights=(Right.ADMIN,)),), token_sha256=hash_token(TOKEN))


@contextlib.asynccontextmanager
async def served(
    service: StateService,
    *,
    limits: serving.ServerLimits | None = None,
    throttle: Throttle | None = None,
    **options: Any,
) -> AsyncIterator[Client]:
    """Serve states on loopback and give a client that may do everything."""
    auth = Authenticator(service.principals, own=administrator(), throttle=throttle)
    app = StateApp(service, auth, **{"hold_s": 0.0, **options})
    try:
        async with (
            serving.serve(app.handle, limits=limits or serving.ServerLimits()) as server,
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
        ):
            yield Client(session, server.url, basic(NAME, TOKEN))
    finally:
        app.close()
