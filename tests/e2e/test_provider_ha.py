"""High availability, from configuration to Proxmox and back, by the built-in provider under real engines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import usual_engine
from tests.support.provider import Stack, driven, lab_api, lab_table, require_bpg

from pvelab.world.ha.config import RESOURCES, RULES
from stackyard import lab
from stackyard.engine.version import Engine

__all__ = ["usual_engine"]

GUESTS = """
resource "proxmox_virtual_environment_vm" "vm" {
  count     = 2
  node_name = "pve${count.index + 1}"
  vm_id     = 101 + count.index
  started   = false
}
"""
MANAGED = """
resource "proxmox_haresource" "vm" {
  count        = 2
  resource_id  = "vm:${proxmox_virtual_environment_vm.vm[count.index].vm_id}"
  state        = "stopped"
  max_restart  = 3
  max_relocate = 1
  %s
}
resource "proxmox_harule" "apart" {
  rule      = "apart"
  type      = "resource-affinity"
  affinity  = "negative"
  resources = proxmox_haresource.vm[*].resource_id
}
"""


@pytest.fixture
def running() -> Iterator[lab.Running]:
    with lab.running(nodes=("pve1", "pve2")) as it:
        yield it


def test_guests_come_under_high_availability_and_leave_it(
    engine: Engine, running: lab.Running, tmp_path: Path
) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(GUESTS + MANAGED % 'comment = "first"')
        await stack.init()
        await stack.apply()
        assert lab_table(running, RESOURCES)["vm:101"]["comment"] == "first"
        assert lab_table(running, RULES)["apart"]["resources"] == "vm:101,vm:102"
        assert "No changes" in await stack.plan(status=0)

        stack.write(GUESTS + MANAGED % "")
        assert "0 added, 2 changed, 0 destroyed" in await stack.apply()
        assert "comment" not in lab_table(running, RESOURCES)["vm:101"]

        # Somebody lets go of one by hand: the rule goes on with the other alone, and both come back.
        async with lab_api(running) as api:
            await api.delete("/cluster/ha/resources/vm:102")
        assert "1 to add, 1 to change" in await stack.plan(status=2)
        await stack.apply()
        assert "No changes" in await stack.plan(status=0)

        await stack.run("state", "rm", "proxmox_harule.apart", "proxmox_haresource.vm[0]")
        await stack.run("import", "-input=false", "proxmox_harule.apart", "apart")
        await stack.run("import", "-input=false", "proxmox_haresource.vm[0]", "vm:101")
        assert "No changes" in await stack.plan(status=0)
        await stack.destroy()
        assert lab_table(running, RESOURCES) == lab_table(running, RULES) == {}

    driven(engine, running, tmp_path, scenario)


WRONG = """
resource "proxmox_haresource" "one" {
  resource_id = "101"
  state       = "asleep"
  max_restart = 11
}
resource "proxmox_harule" "two" {
  rule      = "two"
  type      = "node-affinity"
  affinity  = "negative"
  resources = ["pve1"]
}
"""


def test_what_proxmox_cannot_take_is_said_before_anything_is_done(
    engine: Engine, running: lab.Running, tmp_path: Path
) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(WRONG)
        await stack.init()
        said = await stack.run("validate", "-no-color", status=1)
        for part in (
            "`resource_id` must be vm:ID or ct:ID",
            "`state` must be one of started",
            "`max_restart` must be 0 to 10",
            "`resources` must name vm:ID or ct:ID",
        ):
            assert part in " ".join(said.replace("│", "").split()), part
        stack.write(WRONG.replace('["pve1"]', '["vm:101"]'))
        said = await stack.run("validate", "-no-color", status=1)
        assert "needs `nodes`" in " ".join(said.split())

    driven(engine, running, tmp_path, scenario)


RUNNING = """
resource "proxmox_virtual_environment_vm" "vm" {
  node_name = "pve1"
  vm_id     = 101
  cpu {
    cores = %d
  }
  disk {
    interface    = "scsi0"
    datastore_id = "local-lvm"
    size         = 8
  }
  lifecycle {
    ignore_changes = [node_name]
  }
}
resource "proxmox_haresource" "vm" {
  resource_id = "vm:${proxmox_virtual_environment_vm.vm.vm_id}"
  lifecycle {
    replace_triggered_by = [proxmox_virtual_environment_vm.vm.id]
  }
}
"""


def test_a_running_guest_under_high_availability_is_changed_made_anew_and_left_where_it_is_moved(
    engine: Engine, running: lab.Running, tmp_path: Path
) -> None:
    def guest() -> dict[str, Any]:
        return dict(running.on_loop(lambda: running.world.guests.all())["101"])

    async def scenario(stack: Stack) -> None:
        stack.write(RUNNING % 1)
        await stack.init()
        await stack.apply()
        stack.write(RUNNING % 2)
        assert "0 added, 1 changed, 0 destroyed" in await stack.apply()
        assert (guest()["config"]["cores"], guest()["status"]) == (2, "running")

        await stack.apply("-replace=proxmox_virtual_environment_vm.vm")
        assert lab_table(running, RESOURCES)["vm:101"]["state"] == "started"
        async with lab_api(running) as api:
            await api.post("/cluster/ha/resources/vm:101/migrate", {"node": "pve2"})
            while guest()["node"] != "pve2":
                await api.pause(0.05)
        assert "No changes" in await stack.plan(status=0)
        await stack.destroy()
        assert lab_table(running, RESOURCES) == running.on_loop(lambda: running.world.guests.all()) == {}

    driven(engine, running, tmp_path, scenario)


GROUP = """
resource "proxmox_hagroup" "one" {
  group = "one"
  nodes = { pve1 = 1 }
}
"""
GROUPS = """
data "proxmox_hagroup" "one" { group = "one" }
data "proxmox_hagroups" "all" {}
"""
MIGRATED = "ha groups have been migrated to rules"


@pytest.mark.parametrize("bpg", [pytest.param(True, marks=pytest.mark.bpg), False])
def test_a_cluster_that_has_migrated_its_groups_refuses_them(
    engine: Engine, running: lab.Running, tmp_path: Path, bpg: bool
) -> None:
    if bpg:
        require_bpg()

    async def scenario(stack: Stack) -> None:
        async def refuse(text: str, *words: str) -> None:
            stack.write(text)
            said = await stack.run("apply", "-auto-approve", "-input=false", "-no-color", status=1, bpg=bpg)
            told = " ".join(said.replace("│", "").split())
            assert all(word in told for word in (MIGRATED, *words)), told

        stack.write(GROUP)
        await stack.init()
        await refuse(GROUP, *(() if bpg else ("Write a `proxmox_harule`",)))
        await refuse(GROUPS, "cannot index groups", "cannot read group")
        await refuse(
            GUESTS + MANAGED % 'group = "one"',
            "invalid parameter 'group'",
        )

    driven(engine, running, tmp_path, scenario)
