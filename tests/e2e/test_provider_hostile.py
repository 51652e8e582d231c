"""The built-in provider with engines that are killed, wrong configurations, and eyes after secrets."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.engine import engine
from tests.support.provider import Stack, driven

from stackyard import lab
from stackyard.engine.version import Engine

__all__ = ["engine"]

POOLS = """
resource "proxmox_virtual_environment_pool" "many" {
  count   = 8
  pool_id = "pool${count.index}"
}
"""
WRONG = """
resource "proxmox_network_linux_bridge" "wrong" {
  node_name      = "pve1"
  name           = "9-starts-with-a-digit"
  address        = "10.0.0.1"
  vids           = "2-20"
  timeout_reload = 1
}
resource "proxmox_virtual_environment_file" "wrong" {
  node_name    = "pve1"
  datastore_id = "local"
  content_type = "nonsense"
  source_file {
    path    = "/nowhere"
    min_tls = "0.9"
  }
}
resource "proxmox_sdn_subnet" "wrong" {
  vnet    = "v1"
  cidr    = "10.0.0.0/24"
  gateway = "10.0.1.1"
}
"""


@pytest.fixture
def running() -> Iterator[lab.Running]:
    with lab.running(nodes=("pve1",)) as it:
        yield it


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_an_engine_that_is_stopped_in_the_middle_loses_nothing(
    engine: Engine, running: lab.Running, tmp_path: Path, number: signal.Signals
) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(POOLS)
        await stack.init()
        # The answers of three creates come late, so that the engine is gone when they do.
        name = running.add_fault("delay", seconds=1, method="POST", path="/pools", when="after", times=3)
        apply = asyncio.create_task(stack.run("apply", "-auto-approve", "-input=false", status=None))
        while running.on_loop(lambda: running.world.faults.rules()[name][2]) < 3:
            await asyncio.sleep(0.02)
        os.kill(stack.pid, number)
        await apply
        await stack.run("force-unlock", "-force", "none", status=None)
        await stack.apply("-lock=false")
        pools = running.on_loop(lambda: running.world.store.items("pools"))
        assert sorted(pools) == [f"pool{n}" for n in range(8)]

    driven(engine, running, tmp_path, scenario)


def test_everything_that_is_wrong_is_said_at_once_by_name(
    engine: Engine, running: lab.Running, tmp_path: Path
) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(WRONG)
        await stack.init()
        said = " ".join((await stack.run("validate", "-no-color", status=1)).replace("│", " ").split())
        for words in (
            "`name` must be letters, digits",
            "`address` must be an address with its prefix length",
            "`timeout_reload` must be at least 5",
            "`content_type` must be one of",
            "`source_file.min_tls` must be one of",
            "`gateway` is 10.0.1.1, which is not in 10.0.0.0/24.",
        ):
            assert words in said
        assert list(running.on_loop(lambda: running.world.journal.entries())) == []

    driven(engine, running, tmp_path, scenario)


def test_secrets_stay_in_the_process(engine: Engine, running: lab.Running, tmp_path: Path) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(POOLS)
        await stack.init()
        stack.more["TF_LOG"] = "trace"
        said = await stack.run("apply", "-auto-approve", "-input=false")
        assert "pool7" in said
        written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        for secret in (running.password, running.api_token.partition("=")[2]):
            assert secret not in said
            assert secret.encode() not in written

    driven(engine, running, tmp_path, scenario)


def test_an_object_that_somebody_else_made_is_not_taken_over(
    engine: Engine, running: lab.Running, tmp_path: Path
) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(POOLS)
        await stack.init()
        await stack.apply()
        await stack.run("state", "rm", "proxmox_virtual_environment_pool.many[3]")
        said = await stack.run("apply", "-auto-approve", "-input=false", "-no-color", status=1)
        assert "pool3 exists already, and is not in the state." in said
        await stack.run("import", "-input=false", "proxmox_virtual_environment_pool.many[3]", "pool3")
        await stack.unchanged()

    driven(engine, running, tmp_path, scenario)
