"""Two configurations of the built-in provider in one run, each with a cluster of its own."""

from __future__ import annotations

from pathlib import Path

from tests.support.engine import engine
from tests.support.provider import Stack, driven, lab_table

from stackyard import lab
from stackyard.engine.version import Engine

__all__ = ["engine"]

TEXT = """
provider "proxmox" {
  alias    = "other"
  endpoint = "%s"
  username = "%s"
  password = "%s"
  insecure = true
}
resource "proxmox_virtual_environment_pool" "here" {
  pool_id = "apps"
  comment = "here"
}
resource "proxmox_virtual_environment_pool" "there" {
  provider = proxmox.other
  pool_id  = "apps"
  comment  = "there"
}
data "proxmox_virtual_environment_nodes" "here" {}
data "proxmox_virtual_environment_nodes" "there" { provider = proxmox.other }
output "nodes" {
  value = [
    data.proxmox_virtual_environment_nodes.here.names,
    data.proxmox_virtual_environment_nodes.there.names,
  ]
}
"""


def test_each_configuration_works_on_its_own_cluster(engine: Engine, tmp_path: Path) -> None:
    with lab.running(nodes=("pve1",)) as here, lab.running(nodes=("other1",)) as there:

        async def scenario(stack: Stack) -> None:
            stack.write(TEXT % (there.url, there.username, there.password))
            await stack.init()
            await stack.apply()
            assert lab_table(here, "pools")["apps"]["comment"] == "here"
            assert lab_table(there, "pools")["apps"]["comment"] == "there"
            said = await stack.run("output", "-json", "nodes")
            assert said.replace("\n", "").replace(" ", "") == '[["pve1"],["other1"]]'
            await stack.destroy()
            assert lab_table(here, "pools") == lab_table(there, "pools") == {}

        driven(engine, here, tmp_path, scenario)
