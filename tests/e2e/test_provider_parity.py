"""Applied with one provider and planned with the other, nothing changes: both ways, for each resource.

STACKYARD_TEST_BPG names the binary of the real bpg/proxmox; without it these tests are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.engine import engine
from tests.support.provider import Stack, driven, require_bpg
from tests.support.web import served

from stackyard import lab
from stackyard.engine.version import Engine

__all__ = ["engine"]

pytestmark = [pytest.mark.bpg, pytest.mark.timeout(600)]

POOLS = """
resource "proxmox_virtual_environment_pool" "plain" { pool_id = "plain" }
resource "proxmox_virtual_environment_pool" "noted" {
  pool_id = "noted"
  comment = "of the test"
}
"""


HA = """
resource "proxmox_virtual_environment_vm" "one" {
  node_name = "pve1"
  vm_id     = 101
  started   = false
}
resource "proxmox_virtual_environment_vm" "two" {
  node_name = "pve2"
  vm_id     = 102
  started   = false
}
resource "proxmox_virtual_environment_vm" "three" {
  node_name = "pve1"
  vm_id     = 103
  started   = false
}
resource "proxmox_haresource" "three" {
  resource_id = "vm:${proxmox_virtual_environment_vm.three.vm_id}"
  state       = "ignored"
}
resource "proxmox_haresource" "one" {
  resource_id  = "vm:${proxmox_virtual_environment_vm.one.vm_id}"
  state        = "stopped"
  comment      = "the first"
  failback     = false
  max_restart  = 3
  max_relocate = 1
}
resource "proxmox_virtual_environment_haresource" "two" {
  resource_id = "vm:${proxmox_virtual_environment_vm.two.vm_id}"
  state       = "stopped"
}
resource "proxmox_harule" "apart" {
  rule      = "apart"
  type      = "resource-affinity"
  affinity  = "negative"
  comment   = "never both"
  resources = [
    proxmox_haresource.one.resource_id, proxmox_virtual_environment_haresource.two.resource_id,
  ]
}
resource "proxmox_virtual_environment_harule" "home" {
  rule      = "home"
  type      = "node-affinity"
  nodes     = { pve1 = 2, pve2 = null }
  strict    = true
  resources = [proxmox_haresource.three.resource_id]
}
"""

FILES = """
variable "images" { type = string }
resource "proxmox_download_file" "image" {
  node_name    = "pve1"
  datastore_id = "local"
  content_type = "iso"
  url          = "${var.images}/small.img"
}
resource "proxmox_virtual_environment_download_file" "named" {
  node_name    = "pve2"
  datastore_id = "local"
  content_type = "import"
  url          = "${var.images}/small.img"
  file_name    = "other.qcow2"
  checksum           = filesha256("${path.module}/images/small.img")
  checksum_algorithm = "sha256"
  upload_timeout     = 60
}
resource "proxmox_virtual_environment_file" "snippet" {
  node_name    = "pve1"
  datastore_id = "local"
  content_type = "snippets"
  source_raw {
    data      = "#cloud-config\\npackage_update: true\\n"
    file_name = "user-data.yaml"
  }
}
resource "proxmox_virtual_environment_file" "guessed" {
  node_name    = "pve2"
  datastore_id = "local"
  source_raw {
    data      = "#cloud-config"
    file_name = "vendor.yaml"
    resize    = 100
  }
}
resource "proxmox_virtual_environment_file" "iso" {
  node_name    = "pve1"
  datastore_id = "local"
  content_type = "iso"
  source_file {
    path      = "${path.module}/images/small.img"
    file_name = "uploaded.iso"
  }
}
"""


@pytest.fixture
def running() -> Iterator[lab.Running]:
    require_bpg()
    with lab.running(nodes=("pve1", "pve2"), ssh_port=0) as it:
        yield it


CASES = [
    pytest.param(POOLS, id="pools"),
    pytest.param(HA, id="ha"),
    pytest.param(FILES, id="files"),
]


@pytest.mark.parametrize("text", CASES)
@pytest.mark.parametrize("first", ["built-in", "bpg"])
def test_what_one_provider_applies_the_other_leaves_alone(
    engine: Engine, running: lab.Running, tmp_path: Path, first: str, text: str
) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(text)
        await stack.init()
        stack.variables["images"] = url
        bpg_first = first == "bpg"
        await stack.apply(bpg=bpg_first)
        assert "No changes" in await stack.plan(status=0, bpg=not bpg_first)
        # What the other one refreshed must still please the first.
        await stack.run("apply", "-refresh-only", "-auto-approve", "-input=false", bpg=not bpg_first)
        assert "No changes" in await stack.plan(status=0, bpg=bpg_first)
        await stack.destroy(bpg=not bpg_first)

    images = tmp_path / "images"
    images.mkdir()
    (images / "small.img").write_bytes(b"QFI\xfb" + b"\0" * 4096)
    with served(images) as url:
        driven(engine, running, tmp_path, scenario)


CHANGES = [
    pytest.param(
        HA,
        {
            'comment      = "the first"': "",
            "failback     = false": "failback = true",
            "max_relocate = 1": "max_relocate = 2",
            'comment   = "never both"': "disable = true",
            "strict    = true": "",
            "nodes     = { pve1 = 2, pve2 = null }": "nodes = { pve1 = null }",
        },
        id="ha",
    ),
]


@pytest.mark.parametrize(("text", "changes"), CHANGES)
@pytest.mark.parametrize("second", ["built-in", "bpg"])
def test_what_one_provider_changes_the_other_leaves_alone(
    engine: Engine, running: lab.Running, tmp_path: Path, second: str, text: str, changes: dict[str, str]
) -> None:
    changed = text
    for before, after in changes.items():
        assert before in changed
        changed = changed.replace(before, after)

    async def scenario(stack: Stack) -> None:
        stack.write(text)
        await stack.init()
        by_bpg = second == "bpg"
        await stack.apply(bpg=not by_bpg)
        stack.write(changed)
        await stack.apply(bpg=by_bpg)
        assert "No changes" in await stack.plan(status=0, bpg=not by_bpg)
        await stack.destroy(bpg=by_bpg)

    driven(engine, running, tmp_path, scenario)
