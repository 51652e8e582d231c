"""Every kind of object store, each opened as often as a test likes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.channel_store import open_channel_store
from tests.support.object_service import object_service, use_token
from tests.support.other_s3 import new_address
from tests.support.postgres import new_schema, require_postgres, use_password
from tests.support.seaweed import new_prefix, require_seaweed, use_credentials

from stackyard.clients.objects import MemoryObjects, Objects, open_objects
from stackyard.clients.objects.sealed import KeyRing, MasterKey, SealedObjects

__all__ = ["Store", "store"]

KINDS = (
    *("memory", "sqlite", "s3", "s3-other", "postgresql", "sealed"),
    *("http-memory", "http-sqlite", "http-postgresql", "channel"),
)


@dataclass
class Store:
    """A store that a test opens, once for each process that it plays."""

    kind: str
    make: Callable[[], Objects]
    opened: list[Objects] = field(default_factory=list)

    def open(self) -> Objects:
        objects = self.make()
        self.opened.append(objects)
        return objects


def make_store(kind: str, folder: Path) -> Store:
    if kind == "memory":
        memory = MemoryObjects()
        return Store(kind, lambda: memory)
    if kind == "sqlite":
        return Store(kind, lambda: open_objects(folder / "store"))
    if kind == "s3":
        address = require_seaweed().address(new_prefix())
        return Store(kind, lambda: open_objects(address))
    if kind == "postgresql":
        address = require_postgres().address(new_schema())
        return Store(kind, lambda: open_objects(address))
    if kind == "channel":
        return Store(kind, open_channel_store(MemoryObjects()))
    ring = KeyRing((MasterKey(b"k" * 32),))
    inner = MemoryObjects()
    return Store(kind, lambda: SealedObjects(inner, ring))


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Give each kind of store in turn, empty."""
    if request.param == "s3":
        use_credentials(monkeypatch)
    if request.param.endswith("postgresql"):
        use_password(monkeypatch)
    with contextlib.ExitStack() as stack:
        if request.param.startswith("http-"):
            use_token(monkeypatch)
            inner = make_store(request.param.removeprefix("http-"), tmp_path).open()
            stack.callback(inner.close)
            url = stack.enter_context(object_service(inner)).url
            made = Store(request.param, lambda: open_objects(url))
        elif request.param == "s3-other":
            address = new_address(monkeypatch)
            made = Store("s3", lambda: open_objects(address))
        else:
            made = make_store(request.param, tmp_path)
        yield made
        for objects in made.opened:
            objects.close()
