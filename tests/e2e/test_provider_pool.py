"""A pool, from configuration to Proxmox and back, with the built-in provider under real engines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.engine import usual_engine
from tests.support.provider import Stack, driven, lab_api, lab_table

from stackyard import lab
from stackyard.engine.version import Engine

__all__ = ["usual_engine"]

POOL = """
resource "proxmox_virtual_environment_pool" "apps" {
  pool_id = "apps"
  %s
}
"""


@pytest.fixture
def running() -> Iterator[lab.Running]:
    with lab.running(nodes=("pve1",)) as it:
        yield it


def test_a_pool_is_made_changed_and_removed(engine: Engine, running: lab.Running, tmp_path: Path) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(POOL % 'comment = "first"')
        await stack.init()
        assert "1 to add" in await stack.plan(status=2)
        await stack.apply()
        assert (await stack.values("proxmox_virtual_environment_pool.apps"))["id"] == "apps"

        stack.write(POOL % 'comment = "second"')
        assert "0 added, 1 changed, 0 destroyed" in await stack.apply()
        assert lab_table(running, "pools")["apps"]["comment"] == "second"
        await stack.destroy()
        assert lab_table(running, "pools") == {}

    driven(engine, running, tmp_path, scenario)


def test_a_pool_that_is_there_can_be_imported(engine: Engine, running: lab.Running, tmp_path: Path) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(POOL % 'comment = "by hand"')
        await stack.init()
        await stack.apply()
        await stack.run("state", "rm", "proxmox_virtual_environment_pool.apps")
        await stack.run("import", "-input=false", "proxmox_virtual_environment_pool.apps", "apps")
        assert "No changes" in await stack.plan(status=0)

    driven(engine, running, tmp_path, scenario)


def test_a_pool_removed_by_hand_is_made_again(engine: Engine, running: lab.Running, tmp_path: Path) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(POOL % "")
        await stack.init()
        await stack.apply()
        async with lab_api(running) as api:
            await api.delete("/pools", {"poolid": "apps"})
        assert "1 to add" in await stack.plan(status=2)

    driven(engine, running, tmp_path, scenario)
