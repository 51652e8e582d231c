"""Every kind of place that a state can be moved from and to, each opened as often as a test likes."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.seaweed import new_prefix, require_seaweed, use_credentials

from stackyard.clients.objects import open_objects
from stackyard.state import Actor, StateService
from stackyard.state.daemon import DaemonOptions, RunningDaemon, daemon
from stackyard.state.moving import StateLocation
from stackyard.state.moving.file_location import FileLocation
from stackyard.state.moving.http_location import HttpLocation, HttpSettings
from stackyard.state.moving.s3_location import S3Location
from stackyard.state.moving.store_location import StoreLocation

__all__ = ["KINDS", "Spot", "make_spot", "running_daemon"]

KINDS = ("file", "store", "s3", "http")
ACTOR = Actor(principal="tests")


@dataclass(frozen=True)
class Spot:
    """A place, which each process opens for itself."""

    kind: str
    open: Callable[[], StateLocation]

    def read(self) -> bytes | None:
        place = self.open()
        try:
            return place.read()
        finally:
            place.close()


class OwnStorePlace(StoreLocation):
    """A state of a store that is closed with it."""

    def __init__(self, folder: Path, name: str) -> None:
        self._opened = open_objects(folder)
        super().__init__(StateService(self._opened), name, ACTOR, store=str(folder))

    def close(self) -> None:
        self._opened.close()


def make_spot(kind: str, folder: Path, stack: contextlib.ExitStack) -> Spot:
    """Return an empty place; servers that it needs run until the stack ends."""
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "file":
        return Spot(kind, lambda: FileLocation(folder / "terraform.tfstate"))
    if kind == "store":
        return Spot(kind, lambda: OwnStorePlace(folder / "store", "prod/network"))
    if kind == "s3":
        server = require_seaweed()
        address = server.address(f"{new_prefix()}/terraform.tfstate")
        return Spot(kind, lambda: S3Location(address))
    running = stack.enter_context(running_daemon(folder / "served"))
    settings = HttpSettings.make(
        f"{running.url}/states/prod/network", {}, credentials=f"{running.username}:{running.password}"
    )
    return Spot(kind, lambda: HttpLocation(settings))


@contextlib.contextmanager
def running_daemon(folder: Path) -> Iterator[RunningDaemon]:
    """Serve a store on loopback in a thread."""
    ready: Future[RunningDaemon] = Future()
    stop: Future[Callable[[], object]] = Future()

    async def serve() -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        stop.set_result(lambda: loop.call_soon_threadsafe(ended.set))
        async with daemon(DaemonOptions(data=folder, plain_http=True)) as running:
            ready.set_result(running)
            await ended.wait()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as err:
            if not ready.done():
                ready.set_exception(err)
            raise

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield ready.result(timeout=60)
    finally:
        stop.result(timeout=60)()
        thread.join()


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[contextlib.ExitStack]:
    """Give what ends the servers of a test, and the credentials of the S3 server."""
    use_credentials(monkeypatch)
    with contextlib.ExitStack() as stack:
        yield stack
