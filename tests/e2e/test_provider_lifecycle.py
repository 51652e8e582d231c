"""Networks, SDN objects and files under real engines: made, changed, moved, imported, removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import engine
from tests.support.provider import Stack, driven, lab_api
from tests.support.web import served

from stackyard import lab
from stackyard.engine.version import Engine

__all__ = ["engine"]

EVERYTHING = """
variable "images" { type = string }
resource "proxmox_network_linux_bridge" "lan" {
  node_name = "pve1"
  name      = "vmbr5"
  comment   = "%(comment)s"
}
resource "proxmox_network_linux_vlan" "tagged" {
  node_name = "pve1"
  name      = "eno1.50"
  comment   = proxmox_network_linux_bridge.lan.id
}
resource "proxmox_sdn_zone_vlan" "zone" {
  id     = "vlans"
  bridge = proxmox_network_linux_bridge.lan.name
}
resource "proxmox_sdn_vnet" "net" {
  id    = "net5"
  zone  = proxmox_sdn_zone_vlan.zone.id
  tag   = %(tag)s
  alias = "%(comment)s"
}
resource "proxmox_sdn_subnet" "sub" {
  vnet = proxmox_sdn_vnet.net.id
  cidr = "10.50.0.0/24"
}
resource "proxmox_sdn_applier" "all" {
  depends_on = [proxmox_sdn_subnet.sub]
  lifecycle {
    replace_triggered_by = [proxmox_sdn_vnet.net]
  }
}
resource "proxmox_download_file" "image" {
  node_name    = "pve1"
  datastore_id = "local"
  content_type = "iso"
  url          = "${var.images}/a.img"
}
resource "proxmox_virtual_environment_pool" "noted" {
  pool_id = "noted"
  comment = "${proxmox_download_file.image.id} of ${proxmox_download_file.image.size} bytes"
}
resource "proxmox_virtual_environment_file" "iso" {
  node_name    = "pve1"
  datastore_id = "local"
  source_file {
    path      = "images/a.img"
    file_name = "b.iso"
  }
}
"""
FIRST, SECOND = {"comment": "first", "tag": 50}, {"comment": "second", "tag": 51}
IDS = {
    "proxmox_network_linux_bridge.lan": "pve1:vmbr5",
    "proxmox_network_linux_vlan.tagged": "pve1:eno1.50",
    "proxmox_sdn_zone_vlan.zone": "vlans",
    "proxmox_sdn_vnet.net": "net5",
    "proxmox_sdn_subnet.sub": "net5/vlans-10.50.0.0-24",
    "proxmox_virtual_environment_pool.noted": "noted",
}
OLD_NAME = """
resource "proxmox_virtual_environment_sdn_zone_simple" "zone" { id = "moves" }
"""
NEW_NAME = """
resource "proxmox_sdn_zone_simple" "zone" { id = "moves" }
moved {
  from = proxmox_virtual_environment_sdn_zone_simple.zone
  to   = proxmox_sdn_zone_simple.zone
}
"""


@pytest.fixture
def running() -> Iterator[lab.Running]:
    with lab.running(nodes=("pve1",)) as it:
        yield it


async def listed(running: lab.Running, path: str) -> list[Any]:
    async with lab_api(running) as api:
        found: list[Any] = await api.get(path)
        return found


def test_everything_is_made_changed_imported_and_removed(
    engine: Engine, running: lab.Running, tmp_path: Path
) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.img").write_bytes(b"an image")

    async def scenario(stack: Stack) -> None:
        stack.variables["images"] = url
        stack.write(EVERYTHING % FIRST)
        await stack.init()
        assert "9 added, 0 changed, 0 destroyed" in await stack.apply()
        noted = (await stack.values("proxmox_virtual_environment_pool.noted"))["comment"]
        assert noted == "local:iso/a.img of 8 bytes"

        stack.write(EVERYTHING % SECOND)
        assert "1 added, 2 changed, 1 destroyed" in await stack.apply()
        (vnet,) = await listed(running, "/cluster/sdn/vnets")
        assert (vnet["tag"], vnet["alias"]) == (51, "second")

        for address, given in IDS.items():
            await stack.run("state", "rm", address)
            await stack.run("import", "-input=false", address, given)
        await stack.unchanged()

        await stack.destroy()
        assert await listed(running, "/cluster/sdn/zones") == []
        assert await listed(running, "/pools") == []
        assert "vmbr5" not in {one["iface"] for one in await listed(running, "/nodes/pve1/network")}
        assert await listed(running, "/nodes/pve1/storage/local/content") == []

    with served(tmp_path / "images") as url:
        driven(engine, running, tmp_path, scenario)


def test_a_state_moves_to_the_newer_name(engine: Engine, running: lab.Running, tmp_path: Path) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(OLD_NAME)
        await stack.init()
        said = await stack.apply()
        assert "is called proxmox_sdn_zone_simple now" in " ".join(said.split())
        stack.write(NEW_NAME)
        assert "0 added, 0 changed, 0 destroyed" in await stack.apply()
        assert (await stack.values("proxmox_sdn_zone_simple.zone"))["id"] == "moves"

    driven(engine, running, tmp_path, scenario)
