"""Replies that are lost on the way, to the real engines: no stuck lock, no lost state, no second holder."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.engine import engine
from tests.support.state_engines import make_folder
from tests.support.state_proxy import Fault, proxied

from stackyard.clients.objects import open_objects
from stackyard.engine.version import Engine
from stackyard.state import AuditAction, StateService
from stackyard.state.embedded import backend_environment, serve_embedded

__all__ = ["engine"]


@pytest.mark.parametrize("method", ["LOCK", "POST", "UNLOCK", "GET"])
def test_an_apply_survives_every_fault_of_every_request(engine: Engine, method: str, tmp_path: Path) -> None:
    service = StateService(open_objects(tmp_path / "store"))

    async def apply(fault: Fault, target: int, login: tuple[str, str]) -> None:
        name = f"{method.lower()}/{fault.name.lower()}"
        async with proxied(target) as proxy:
            environment = backend_environment(proxy.url, name, username=login[0], password=login[1])
            folder = await make_folder(engine, tmp_path / name, environment)
            assert (await folder.apply("first")).status == 0
            proxy.fail(method, fault)
            done = await folder.apply("second")
            assert (done.status, proxy.done) == (0, 1), done.text
            assert (await folder.run("plan", "-detailed-exitcode", "-var=value=second")).status == 0
        head = service.head(name)
        assert head.lock is None
        assert [version.serial for version in service.versions.newest_first(name)] == [2, 1]
        granted = [entry for entry in service.audit.entries(name) if entry.action is AuditAction.LOCKED]
        assert [entry.epoch for entry in granted] == [1, 2, 3]

    async def run() -> None:
        async with serve_embedded(service) as running:
            target = int(running.url.rpartition(":")[2])
            login = (running.username, running.password)
            await asyncio.gather(*(apply(fault, target, login) for fault in Fault))

    asyncio.run(run())
    service.objects.close()
