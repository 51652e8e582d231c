"""Files and images in datastores, pools of guests, and pools of ZFS and Ceph."""

from __future__ import annotations

import asyncio

from tests.support.parity import Case
from tests.support.provider import lab_api

from stackyard import lab
from stackyard.clients import proxmox

__all__ = ["CASES"]

# The lab stands in for servers of other machines, and gives what it downloads a size of its own.
FILES = """
resource "proxmox_download_file" "image" {
  node_name    = "pve1"
  datastore_id = "local"
  content_type = "iso"
  url          = "https://images.example.org/small.img"
}
resource "proxmox_virtual_environment_download_file" "named" {
  node_name          = "pve2"
  datastore_id       = "local"
  content_type       = "import"
  url                = "https://images.example.org/other.img"
  file_name          = "other.qcow2"
  checksum           = "CHECKSUM"
  checksum_algorithm = "sha256"
  upload_timeout     = 60
}
resource "proxmox_oci_image" "plain" {
  node_name    = "pve1"
  datastore_id = "local"
  reference    = "docker.io/library/debian:13"
}
resource "proxmox_virtual_environment_oci_image" "named" {
  node_name           = "pve2"
  datastore_id        = "local"
  reference           = "registry.example.org:5000/team/web-app:1.2"
  file_name           = "web.tar"
  overwrite           = false
  overwrite_unmanaged = true
  upload_timeout      = 30
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
  node_name      = "pve2"
  datastore_id   = "local"
  timeout_upload = 100
  source_raw {
    data      = "#cloud-config"
    file_name = "vendor.yaml"
    resize    = 100
  }
}
resource "proxmox_virtual_environment_pool" "plain" { pool_id = "plain" }
resource "proxmox_virtual_environment_pool" "noted" {
  pool_id = "noted"
  comment = "of the test"
}
data "proxmox_file" "image" {
  node_name    = "pve1"
  datastore_id = "local"
  content_type = "iso"
  file_name    = proxmox_download_file.image.file_name
}
data "proxmox_virtual_environment_file" "web" {
  node_name    = "pve2"
  datastore_id = "local"
  content_type = "vztmpl"
  file_name    = proxmox_virtual_environment_oci_image.named.file_name
}
data "proxmox_files" "all" {
  node_name    = "pve1"
  datastore_id = "local"
  depends_on   = [
    proxmox_download_file.image, proxmox_oci_image.plain, proxmox_virtual_environment_file.snippet
  ]
}
data "proxmox_files" "some" {
  node_name       = "pve1"
  datastore_id    = "local"
  content_type    = "vztmpl"
  file_name_regex = "^debian_[0-9]+"
  depends_on      = [proxmox_oci_image.plain]
}
data "proxmox_hardware_pci" "usual" { node_name = "pve1" }
data "proxmox_hardware_pci" "cards" {
  node_name           = "pve1"
  pci_class_blacklist = []
  filters = {
    id        = "0000:0"
    class     = "02"
    vendor_id = "0x8086"
    device_id = "15"
  }
}
output "file" { value = data.proxmox_file.image }
output "web" { value = data.proxmox_virtual_environment_file.web }
output "all" { value = data.proxmox_files.all }
output "some" { value = data.proxmox_files.some }
output "usual" { value = data.proxmox_hardware_pci.usual }
output "cards" { value = data.proxmox_hardware_pci.cards }
output "image" { value = proxmox_oci_image.plain }
""".replace("CHECKSUM", "ab" * 32)
LONG = "proxmox_virtual_environment_"


async def _remove_file(api: proxmox.Client, node: str, volume: str) -> None:
    upid = await api.delete(f"/nodes/{node}/storage/local/content/{proxmox.quote(volume)}")
    if upid:
        await proxmox.wait_for(api, upid, timeout_s=60)


async def _drift_files(api: proxmox.Client) -> None:
    await api.put("/pools", {"poolid": "noted", "comment": "of somebody else"})


async def _remove_files(api: proxmox.Client) -> None:
    await _remove_file(api, "pve1", "local:iso/small.img")
    await _remove_file(api, "pve2", "local:vztmpl/web.tar")
    await _remove_file(api, "pve1", "local:snippets/user-data.yaml")
    await api.delete("/pools", {"poolid": "plain"})


POOLS = """
resource "proxmox_node_disk_zfs" "plain" {
  node_name     = "pve1"
  name          = "plain"
  devices       = ["/dev/sda"]
  raidlevel     = "single"
  cleanup_disks = true
}
resource "proxmox_node_disk_zfs" "full" {
  node_name      = "pve2"
  name           = "tank"
  devices        = ["/dev/sda", "/dev/sdb", "/dev/sdc"]
  raidlevel      = "draid"
  ashift         = 13
  compression    = "zstd"
  draid_config   = { data = 1, spares = 1 }
  add_storage    = true
  cleanup_config = true
}
resource "proxmox_ceph_pool" "plain" {
  node_name = "pve1"
  name      = "plain"
}
resource "proxmox_ceph_pool" "full" {
  node_name         = "pve2"
  name              = "full"
  application       = "rgw"
  crush_rule        = "replicated_rule"
  size              = 2
  min_size          = 1
  pg_num            = 64
  pg_num_min        = 16
  pg_autoscale_mode = "off"
  target_size       = "100G"
  target_size_ratio = 0.25
  add_storages      = true
  remove_storages   = true
  force_destroy     = true
}
data "proxmox_ceph_status" "cluster" { depends_on = [proxmox_ceph_pool.plain, proxmox_ceph_pool.full] }
data "proxmox_ceph_status" "node" {
  node_name  = "pve2"
  depends_on = [proxmox_ceph_pool.plain, proxmox_ceph_pool.full]
}
output "cluster" { value = data.proxmox_ceph_status.cluster }
output "node" { value = data.proxmox_ceph_status.node }
output "zfs" { value = proxmox_node_disk_zfs.full }
output "ceph" { value = proxmox_ceph_pool.plain }
"""


def _set_up_ceph(running: lab.Running) -> None:
    async def set_up() -> None:
        async with lab_api(running) as api:
            await api.post("/nodes/pve1/ceph/init")
            for node in ("pve1", "pve2"):
                upid = await api.post(f"/nodes/{node}/ceph/mon/{node}")
                await proxmox.wait_for(api, upid, timeout_s=60)

    # The loop of the lab is that of another thread.
    asyncio.run_coroutine_threadsafe(set_up(), running.loop).result(timeout=60)


async def _drift_pools(api: proxmox.Client) -> None:
    upid = await api.put("/nodes/pve1/ceph/pool/full", {"pg_num": 32, "size": 3, "min_size": 2})
    await proxmox.wait_for(api, upid, timeout_s=60)


async def _remove_pools(api: proxmox.Client) -> None:
    for path, params in (
        ("/nodes/pve1/ceph/pool/plain", {}),
        ("/nodes/pve1/disks/zfs/plain", {"cleanup-disks": True}),
    ):
        await proxmox.wait_for(api, await api.delete(path, params), timeout_s=60)


CASES = (
    Case(
        id="files",
        kinds=("download_file", "file", "oci_image", "pool"),
        sources=("file", "files", "hardware_pci"),
        text=FILES,
        lab={"ssh_port": 0},
        update={
            "upload_timeout     = 60": "upload_timeout     = 90",
            "upload_timeout      = 30": "upload_timeout      = 40",
            "timeout_upload = 100": "timeout_upload = 200",
            'comment = "of the test"': "",
        },
        updated=(
            f"{LONG}download_file.named",
            f"{LONG}oci_image.named",
            f"{LONG}file.guessed",
            f"{LONG}pool.noted",
        ),
        replace={
            "small.img": "large.img",
            "debian:13": "debian:14",
            'datastore_id = "local"\n  content_type = "snippets"': (
                'datastore_id = "local"\n  content_type = "snippets"\n  file_mode = "0600"'
            ),
            "#cloud-config\\npackage_update: true": "#cloud-config\\npackage_update: false",
            'pool_id = "plain"': 'pool_id = "other"',
        },
        replaced=(
            "proxmox_download_file.image",
            "proxmox_oci_image.plain",
            f"{LONG}file.snippet",
            f"{LONG}pool.plain",
        ),
        imports={
            f"{LONG}download_file.named": "pve2/local:import/other.qcow2",
            "proxmox_oci_image.plain": "pve1/local:vztmpl/debian_13.tar",
            f"{LONG}file.snippet": "pve1/local:snippets/user-data.yaml",
            f"{LONG}pool.noted": "noted",
        },
        # Where a file came from is in no answer.
        unread=(f"{LONG}download_file.named", "proxmox_oci_image.plain", f"{LONG}file.snippet"),
        drift=_drift_files,
        drifted=(f"{LONG}pool.noted",),
        remove=_remove_files,
        removed=(
            "proxmox_download_file.image",
            f"{LONG}oci_image.named",
            f"{LONG}file.snippet",
            f"{LONG}pool.plain",
        ),
        hidden=("/nodes",),
        nothing={
            "download_file drift": "a changed file is replaced; `test_provider_files.py` shows it",
            "file drift": "Proxmox tells nothing of the content of a file",
            "oci_image drift": "a changed image is replaced; `test_task_objects.py` shows it",
        },
        bpg_cannot={"import proxmox_oci_image.plain": ("Import Not Implemented",)},
        bpg_replaces=(f"{LONG}download_file.named", f"{LONG}file.snippet"),
    ),
    Case(
        id="pools",
        kinds=("ceph_pool", "node_disk_zfs"),
        sources=("ceph_status",),
        text=POOLS,
        prepare=_set_up_ceph,
        update={
            "cleanup_disks = true": "cleanup_disks = true\n  cleanup_config = true",
            "pg_num            = 64": "pg_num            = 128",
            'pg_autoscale_mode = "off"': 'pg_autoscale_mode = "warn"',
            '"100G"': '"200G"',
            "target_size_ratio = 0.25": "",
            "force_destroy     = true": "",
        },
        updated=("proxmox_node_disk_zfs.plain", "proxmox_ceph_pool.full"),
        replace={
            'devices       = ["/dev/sda"]': 'devices       = ["/dev/sdd"]',
            'name      = "plain"\n}': 'name      = "other"\n}',
        },
        replaced=("proxmox_node_disk_zfs.plain", "proxmox_ceph_pool.plain"),
        imports={
            "proxmox_node_disk_zfs.plain": "pve1/plain",
            "proxmox_ceph_pool.plain": "pve1/plain",
        },
        # What a pool is made of is in no answer.
        unread=("proxmox_node_disk_zfs.plain",),
        drift=_drift_pools,
        drifted=("proxmox_ceph_pool.full",),
        remove=_remove_pools,
        removed=("proxmox_node_disk_zfs.plain", "proxmox_ceph_pool.plain"),
        hidden=("/nodes",),
        nothing={"node_disk_zfs drift": "Proxmox tells nothing of a pool that a configuration sets"},
    ),
)
