"""Data sources say the same as those of the real bpg/proxmox, and what is in the lab."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import usual_engine
from tests.support.provider import Stack, bpg_binary, driven, lab_api

from stackyard import lab
from stackyard.clients import proxmox
from stackyard.engine.version import Engine

__all__ = ["usual_engine"]

SOURCES = """
data "proxmox_version" "it" {}
data "proxmox_virtual_environment_version" "it" {}
data "proxmox_virtual_environment_nodes" "it" {}
data "proxmox_virtual_environment_node" "it" { node_name = "pve1" }
data "proxmox_datastores" "it" { node_name = "pve1" }
data "proxmox_datastores" "isos" {
  node_name = "pve1"
  filters   = { content_types = ["iso"] }
}
data "proxmox_virtual_environment_pools" "it" {}
data "proxmox_virtual_environment_pool" "it" { pool_id = "apps" }
data "proxmox_virtual_environment_vms" "all" {}
data "proxmox_virtual_environment_vms" "tagged" { tags = ["web"] }
data "proxmox_virtual_environment_vms" "named" {
  node_name = "pve1"
  filter {
    name   = "name"
    regex  = true
    values = ["^w.*1$", "none"]
  }
  filter {
    name   = "template"
    values = ["false"]
  }
}
data "proxmox_virtual_environment_vm" "one" {
  node_name = "pve1"
  vm_id     = 100
}
data "proxmox_virtual_environment_containers" "all" {}

output "all" {
  value = {
    version = data.proxmox_version.it
    older   = data.proxmox_virtual_environment_version.it
    nodes = {
      for k, v in data.proxmox_virtual_environment_nodes.it : k => v if can(regex("^(name|onl|ssl|sup)", k))
    }
    node    = { for k, v in data.proxmox_virtual_environment_node.it : k => v if startswith(k, "cpu_c") }
    stores  = data.proxmox_datastores.it.datastores
    isos    = data.proxmox_datastores.isos.datastores
    pools   = data.proxmox_virtual_environment_pools.it
    pool    = data.proxmox_virtual_environment_pool.it
    vms     = data.proxmox_virtual_environment_vms.all.vms
    tagged  = data.proxmox_virtual_environment_vms.tagged.vms[*].vm_id
    named   = data.proxmox_virtual_environment_vms.named.vms[*].vm_id
    vm      = data.proxmox_virtual_environment_vm.one
    cts     = data.proxmox_virtual_environment_containers.all.containers
  }
}
"""


@pytest.fixture
def running() -> Iterator[lab.Running]:
    with lab.running(nodes=("pve1", "pve2")) as it:
        yield it


async def fill(running: lab.Running) -> None:
    async with lab_api(running) as api:
        await api.post("/pools", {"poolid": "apps", "comment": "all of them"})
        for vmid, node, more in (
            (100, "pve1", {"name": "web1", "tags": "web;blue", "pool": "apps"}),
            (101, "pve1", {"name": "db1"}),
            (102, "pve2", {"name": "web2", "tags": "web"}),
        ):
            upid = await api.post(f"/nodes/{node}/qemu", {"vmid": vmid, **more})
            await proxmox.wait_for(api, upid, timeout_s=60)


async def outputs(stack: Stack, *, bpg: bool) -> dict[str, Any]:
    await stack.run("apply", "-auto-approve", "-input=false", bpg=bpg)
    shown: dict[str, Any] = json.loads(await stack.run("output", "-json", "all", bpg=bpg))
    return shown


def test_data_sources_tell_what_is_there(engine: Engine, running: lab.Running, tmp_path: Path) -> None:
    async def scenario(stack: Stack) -> None:
        await fill(running)
        stack.write(SOURCES)
        await stack.init()
        own = await outputs(stack, bpg=False)
        assert own["version"]["version"] == own["older"]["version"] == "9.2.3"
        assert own["nodes"]["names"] == ["pve1", "pve2"]
        assert own["pools"]["pool_ids"] == ["apps"]
        assert [member["vm_id"] for member in own["pool"]["members"]] == [100]
        assert (own["tagged"], own["named"]) == ([100, 102], [100])
        assert own["vm"]["tags"] == ["blue", "web"]
        assert own["cts"] == []
        if bpg_binary() is not None:
            assert own == await outputs(stack, bpg=True)

    driven(engine, running, tmp_path, scenario)


def test_a_guest_that_is_not_there_is_an_error(engine: Engine, running: lab.Running, tmp_path: Path) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write('data "proxmox_virtual_environment_vm" "none" {\n node_name = "pve1"\n vm_id = 999\n}')
        await stack.init()
        said = await stack.plan(status=1)
        assert "There is no vm 999 on node pve1" in said

    driven(engine, running, tmp_path, scenario)
