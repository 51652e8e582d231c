"""A state service in a thread of this process, for clients of its objects, which block."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.support.state_client import TOKEN, administrator

from stackyard.base import serving
from stackyard.clients.objects import Objects
from stackyard.clients.objects.http import TOKEN_VARIABLE, HttpAddress, HttpObjects, StoreToken
from stackyard.state import StateService
from stackyard.state.http import Authenticator, StateApp, Throttle
from stackyard.state.http.throttle import ThrottleLimits

__all__ = ["ObjectService", "object_service", "use_token"]

# Tests ask more often than any client that is not one.
UNLIMITED = ThrottleLimits(requests_per_s=1e6, burst=1e6)


@dataclass
class ObjectService:
    """A service that runs.

    Attributes:
        url: Where it is.
        service: What it serves.
        app: What answers.
        opened: The clients that a test opened.
    """

    url: str
    service: StateService
    app: StateApp
    opened: list[HttpObjects] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def open(self, token: str = TOKEN, *, port: int | None = None, **options: Any) -> HttpObjects:
        """Open the store as a client with a token, at another port if there is a proxy."""
        address = HttpAddress.parse(f"http://127.0.0.1:{port or self.port}")
        objects = HttpObjects(address, token=StoreToken({TOKEN_VARIABLE: token}), **options)
        self.opened.append(objects)
        return objects


@contextlib.contextmanager
def object_service(objects: Objects, **options: Any) -> Iterator[ObjectService]:
    """Serve a store for the length of a block."""
    ready, box = threading.Event(), list[tuple[ObjectService, asyncio.AbstractEventLoop, asyncio.Event]]()

    async def run() -> None:
        stop, service = asyncio.Event(), StateService(objects)
        auth = Authenticator(service.principals, own=administrator(), throttle=Throttle(UNLIMITED))
        app = StateApp(service, auth, **{"hold_s": 0.0, **options})
        try:
            async with serving.serve(app.handle) as server:
                made = ObjectService(server.url, service, app)
                box.append((made, asyncio.get_running_loop(), stop))
                ready.set()
                await stop.wait()
        finally:
            app.close()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    ready.wait()
    made, loop, stop = box[0]
    try:
        yield made
    finally:
        for client in made.opened:
            client.close()
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def use_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the token of the administrator in the environment, as users do."""
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
