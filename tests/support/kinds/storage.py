"""Definitions of storages of every type that bpg has."""

from __future__ import annotations

from tests.support.parity import Case

from stackyard.clients import proxmox

__all__ = ["CASES"]

TEXT = """
resource "proxmox_storage_directory" "plain" {
  id   = "plain-dir"
  path = "/srv/plain"
}
resource "proxmox_virtual_environment_storage_directory" "full" {
  id               = "full-dir"
  path             = "/srv/full"
  nodes            = ["pve1"]
  content          = ["images", "iso", "backup"]
  preallocation    = "off"
  shared           = false
  disable          = true
  create_base_path = false
  create_subdirs   = false
  backups {
    max_protected_backups = 5
    keep_last             = 3
    keep_daily            = 7
  }
}
resource "proxmox_storage_nfs" "plain" {
  id     = "plain-nfs"
  server = "10.0.0.20"
  export = "/export/plain"
}
resource "proxmox_virtual_environment_storage_nfs" "full" {
  id                       = "full-nfs"
  server                   = "10.0.0.20"
  export                   = "/export/full"
  nodes                    = ["pve1", "pve2"]
  content                  = ["images", "backup"]
  options                  = "vers=4.2"
  preallocation            = "metadata"
  snapshot_as_volume_chain = true
  backups { keep_all = true }
}
resource "proxmox_storage_cifs" "plain" {
  id       = "plain-cifs"
  server   = "10.0.0.30"
  share    = "plain"
  username = "reader"
  password = "first-password"
}
resource "proxmox_virtual_environment_storage_cifs" "full" {
  id                       = "full-cifs"
  server                   = "10.0.0.30"
  share                    = "full"
  username                 = "writer"
  password                 = "second-password"
  domain                   = "EXAMPLE"
  subdirectory             = "/inside"
  content                  = ["iso"]
  options                  = "noserverino"
  preallocation            = "full"
  snapshot_as_volume_chain = false
  backups { keep_weekly = 4 }
}
resource "proxmox_storage_lvm" "plain" {
  id           = "plain-lvm"
  volume_group = "vg1"
}
resource "proxmox_virtual_environment_storage_lvm" "full" {
  id                   = "full-lvm"
  volume_group         = "vg2"
  nodes                = ["pve2"]
  content              = ["images"]
  wipe_removed_volumes = true
  shared               = true
}
resource "proxmox_storage_lvmthin" "plain" {
  id           = "plain-thin"
  volume_group = "vg1"
  thin_pool    = "pool"
}
resource "proxmox_virtual_environment_storage_lvmthin" "full" {
  id           = "full-thin"
  volume_group = "vg2"
  thin_pool    = "pool"
  nodes        = ["pve1"]
  content      = ["images"]
}
resource "proxmox_storage_zfspool" "plain" {
  id       = "plain-zfs"
  zfs_pool = "rpool/plain"
}
resource "proxmox_virtual_environment_storage_zfspool" "full" {
  id             = "full-zfs"
  zfs_pool       = "rpool/full"
  nodes          = ["pve1"]
  content        = ["rootdir"]
  thin_provision = true
  blocksize      = "32k"
}
resource "proxmox_storage_zfspool" "thick" {
  id             = "thick-zfs"
  zfs_pool       = "rpool/thick"
  thin_provision = false
}
"""
# bpg cannot take an optional property away: it sends nothing of it, and finds it again.
UPDATE = {
    'preallocation    = "off"': 'preallocation    = "metadata"',
    'nodes            = ["pve1"]': 'nodes            = ["pve1", "pve2"]',
    "shared           = false": "shared           = true",
    "disable          = true": "",
    "create_base_path = false": "",
    "keep_daily            = 7": "keep_monthly = 2",
    'options                  = "vers=4.2"': 'options = "vers=4.1"',
    "backups { keep_all = true }": "backups { keep_last = 1 }",
    'content                  = ["iso"]': 'content = ["iso", "vztmpl"]',
    'preallocation            = "full"': 'preallocation = "falloc"',
    "wipe_removed_volumes = true": "",
    "shared               = true": "",
    'thin_pool    = "pool"\n  nodes        = ["pve1"]': 'thin_pool    = "pool"\n  nodes = ["pve2"]',
    'blocksize      = "32k"': 'blocksize      = "64k"',
}
LONG = "proxmox_virtual_environment_storage_"
UPDATED = tuple(f"{LONG}{kind}.full" for kind in ("directory", "nfs", "cifs", "lvm", "lvmthin", "zfspool"))
REPLACE = {
    'path = "/srv/plain"': 'path = "/srv/other"',
    'export = "/export/plain"': 'export = "/export/other"',
    '"first-password"': '"third-password"',
    'id           = "plain-lvm"\n  volume_group = "vg1"': 'id = "plain-lvm"\n  volume_group = "vg3"',
    'id           = "plain-thin"': 'id           = "other-thin"',
    '"rpool/plain"': '"rpool/other"',
}
REPLACED = tuple(
    f"proxmox_storage_{kind}.plain" for kind in ("directory", "nfs", "cifs", "lvm", "lvmthin", "zfspool")
)


async def _drift(api: proxmox.Client) -> None:
    await api.put("/storage/full-dir", {"prune-backups": "keep-last=9", "delete": "preallocation"})
    await api.put("/storage/full-nfs", {"delete": "options"})
    await api.put("/storage/full-cifs", {"content": "iso,images"})
    await api.put("/storage/full-lvm", {"delete": "saferemove,shared"})
    await api.put("/storage/full-thin", {"delete": "nodes"})
    await api.put("/storage/full-zfs", {"sparse": False})


async def _remove(api: proxmox.Client) -> None:
    for name in ("dir", "nfs", "cifs", "lvm", "thin", "zfs"):
        await api.delete(f"/storage/plain-{name}")


BACKUP_SERVER = """
resource "proxmox_storage_pbs" "plain" {
  id        = "plain-pbs"
  server    = "10.0.0.40"
  datastore = "plain"
  username  = "reader@pbs"
  password  = "first-password"
}
resource "proxmox_virtual_environment_storage_pbs" "full" {
  id                      = "full-pbs"
  server                  = "10.0.0.40"
  datastore               = "full"
  username                = "writer@pbs"
  password                = "second-password"
  namespace               = "team"
  nodes                   = ["pve1"]
  content                 = ["backup"]
  fingerprint             = "FINGERPRINT"
  generate_encryption_key = true
  backups { keep_last = 3 }
}
resource "proxmox_storage_pbs" "keyed" {
  id             = "keyed-pbs"
  server         = "10.0.0.40"
  datastore      = "keyed"
  username       = "writer@pbs"
  password       = "second-password"
  encryption_key = jsonencode({
    kdf         = null
    created     = "2026-01-01T00:00:00Z"
    modified    = "2026-01-01T00:00:00Z"
    data        = "c2VjcmV0"
    fingerprint = "01:02:03:04:05:06:07:08"
  })
}
""".replace("FINGERPRINT", ":".join(["ab"] * 32))


async def _drift_pbs(api: proxmox.Client) -> None:
    await api.put("/storage/full-pbs", {"fingerprint": ":".join(["ef"] * 32), "prune-backups": "keep-last=9"})


async def _remove_pbs(api: proxmox.Client) -> None:
    await api.delete("/storage/plain-pbs")
    await api.delete("/storage/full-pbs")


CASES = (
    Case(
        id="storage",
        kinds=(
            "storage_cifs",
            "storage_directory",
            "storage_lvm",
            "storage_lvmthin",
            "storage_nfs",
            "storage_zfspool",
        ),
        text=TEXT,
        update=UPDATE,
        updated=UPDATED,
        replace=REPLACE,
        replaced=REPLACED,
        imports={
            "proxmox_storage_directory.plain": "plain-dir",
            f"{LONG}directory.full": "full-dir",
            "proxmox_storage_nfs.plain": "plain-nfs",
            "proxmox_storage_lvm.plain": "plain-lvm",
            f"{LONG}lvm.full": "full-lvm",
            "proxmox_storage_lvmthin.plain": "plain-thin",
            f"{LONG}lvmthin.full": "full-thin",
            "proxmox_storage_zfspool.plain": "plain-zfs",
            f"{LONG}zfspool.full": "full-zfs",
        },
        # Nobody knows whether the block of backups is to be written.
        unread=(f"{LONG}directory.full",),
        drift=_drift,
        drifted=UPDATED,
        remove=_remove,
        removed=REPLACED,
        hidden=("/nodes",),
        nothing={"storage_cifs import": "its password cannot be read, so that an import plans a replacement"},
    ),
    Case(
        id="storage-pbs",
        kinds=("storage_pbs",),
        text=BACKUP_SERVER,
        update={
            ":".join(["ab"] * 32): ":".join(["cd"] * 32),
            "backups { keep_last = 3 }": "backups { keep_daily = 3 }",
        },
        updated=(f"{LONG}pbs.full",),
        replace={'datastore = "plain"': 'datastore = "other"', "generate_encryption_key = true": ""},
        replaced=("proxmox_storage_pbs.plain", f"{LONG}pbs.full"),
        drift=_drift_pbs,
        drifted=(f"{LONG}pbs.full",),
        remove=_remove_pbs,
        removed=("proxmox_storage_pbs.plain", f"{LONG}pbs.full"),
        hidden=("/nodes",),
        nothing={"storage_pbs import": "its password cannot be read, so that an import plans a replacement"},
        bpg_cannot={"update": ("still indicated an unknown value", "generated_encryption_key")},
    ),
)
