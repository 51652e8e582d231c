"""Jobs of the cluster, backups and replication, and rules of high availability, of guests that are there."""

from __future__ import annotations

from tests.support.parity import Case

from pvelab.seeds import STOCK_STORAGES, Seed, SeedCall, SeedGuest
from stackyard.clients import proxmox

__all__ = ["CASES"]

LONG = "proxmox_virtual_environment_"
JOBS = """
resource "proxmox_backup_job" "plain" {
  id       = "plain"
  schedule = "*-*-* 02:00"
  storage  = "local"
  all      = true
}
resource "proxmox_backup_job" "pooled" {
  id       = "pooled"
  schedule = "sun 03:00"
  storage  = "local"
  pool     = "team"
}
resource "proxmox_backup_job" "full" {
  id                        = "full"
  schedule                  = "sat 02:30"
  storage                   = "local"
  enabled                   = false
  node                      = "pve1"
  vmid                      = ["4201", "4200"]
  mode                      = "stop"
  compress                  = "zstd"
  mailto                    = ["one@example.com", "two@example.com"]
  mailnotification          = "failure"
  bwlimit                   = 1000
  ionice                    = 5
  pigz                      = 1
  zstd                      = 2
  prune_backups             = { keep-last = "3", keep-daily = "7" }
  remove                    = false
  notes_template            = "{{guestname}}"
  protected                 = true
  repeat_missed             = true
  script                    = "/usr/local/bin/hook"
  stdexcludes               = false
  fleecing                  = { enabled = true, storage = "local-lvm" }
  performance               = { max_workers = 2, pbs_entries_max = 2000 }
  pbs_change_detection_mode = "data"
  lockwait                  = 10
  stopwait                  = 5
  tmpdir                    = "/var/tmp"
}
data "proxmox_backup_jobs" "all" {
  depends_on = [proxmox_backup_job.plain, proxmox_backup_job.pooled, proxmox_backup_job.full]
}
resource "proxmox_replication" "plain" {
  id     = "4200-0"
  target = "pve2"
  type   = "local"
}
resource "proxmox_virtual_environment_replication" "full" {
  id       = "4201-0"
  target   = "pve2"
  type     = "local"
  comment  = "first"
  disable  = true
  rate     = 10.5
  schedule = "*/30"
}
data "proxmox_replication" "plain" { id = proxmox_replication.plain.id }
data "proxmox_virtual_environment_replication" "full" {
  id         = "4201-0"
  depends_on = [proxmox_virtual_environment_replication.full]
}
data "proxmox_replications" "all" {
  depends_on = [proxmox_replication.plain, proxmox_virtual_environment_replication.full]
}
output "jobs" {
  value = [
    data.proxmox_backup_jobs.all, data.proxmox_replication.plain,
    data.proxmox_virtual_environment_replication.full, data.proxmox_replications.all,
  ]
}
"""
RULES = """
resource "proxmox_haresource" "managed" {
  for_each    = toset(["vm:4200", "vm:4201", "ct:4202"])
  resource_id = each.key
  state       = "ignored"
}
resource "proxmox_harule" "near" {
  rule      = "near"
  type      = "node-affinity"
  comment   = "first"
  disable   = true
  nodes     = { pve1 = 10, pve2 = null }
  resources = [proxmox_haresource.managed["vm:4201"].resource_id]
  strict    = true
}
resource "proxmox_virtual_environment_harule" "apart" {
  rule      = "apart"
  type      = "resource-affinity"
  affinity  = "negative"
  resources = [for name in ["vm:4200", "ct:4202"] : proxmox_haresource.managed[name].resource_id]
}
"""
UPDATE = {
    'schedule                  = "sat 02:30"': 'schedule = "sat 04:30"',
    "enabled                   = false": "enabled = true",
    'node                      = "pve1"': "",
    'mailto                    = ["one@example.com", "two@example.com"]': "",
    "zstd                      = 2": "zstd = 4",
    'prune_backups             = { keep-last = "3", keep-daily = "7" }': 'prune_backups = { keep-all = "1" }',
    'fleecing                  = { enabled = true, storage = "local-lvm" }': "",
    "{ max_workers = 2, pbs_entries_max = 2000 }": "{ max_workers = 4 }",
    'notes_template            = "{{guestname}}"': "",
    'comment  = "first"': "",
    "disable  = true": "",
    "rate     = 10.5": "rate = 20",
    'schedule = "*/30"': 'schedule = "*/5"',
    'comment   = "first"': "",
    "nodes     = { pve1 = 10, pve2 = null }": "nodes = { pve3 = 1 }",
    'affinity  = "negative"': 'affinity = "positive"',
}


async def _drift(api: proxmox.Client) -> None:
    await api.put("/cluster/backup/full", {"vmid": "4200", "mode": "suspend", "delete": "script,lockwait"})
    await api.put("/cluster/backup/plain", {"prune-backups": "keep-last=1", "storage": "other"})
    await api.put("/cluster/replication/4201-0", {"rate": 3, "delete": "comment,disable"})
    await api.put(
        "/cluster/ha/rules/near",
        {"type": "node-affinity", "nodes": "pve2", "delete": "comment,disable"},
    )

    # bpg cannot put a rule into force again: it sends a 0, which Proxmox passes over.
    await api.put("/cluster/ha/rules/apart", {"type": "resource-affinity", "disable": True})


async def _remove(api: proxmox.Client) -> None:
    await api.delete("/cluster/backup/pooled")
    # Marked only: the node removes it a moment later.
    await api.delete("/cluster/replication/4200-0")
    await api.delete("/cluster/ha/rules/apart")


def _guest(vmid: int, kind: str, disk: str) -> SeedGuest:
    return SeedGuest(vmid=vmid, type=kind, config={disk: f"tank:vm-{vmid}-disk-0,size=1G"})


SEED = Seed(
    name="jobs",
    storages={
        **STOCK_STORAGES,
        "tank": {"type": "zfspool", "pool": "tank", "content": "images,rootdir"},
        "other": {"type": "dir", "path": "/srv/other", "content": "backup"},
    },
    guests=(_guest(4200, "qemu", "scsi0"), _guest(4201, "qemu", "scsi0"), SeedGuest(vmid=4202, type="lxc")),
    calls=(SeedCall(method="POST", path="/pools", parameters={"poolid": "team"}),),
)
CASES = (
    Case(
        id="jobs",
        kinds=("backup_job", "replication", "harule"),
        sources=("backup_jobs", "replication", "replications"),
        text=JOBS + RULES,
        update=UPDATE,
        updated=(
            "proxmox_backup_job.full",
            f"{LONG}replication.full",
            "proxmox_harule.near",
            f"{LONG}harule.apart",
        ),
        replace={
            'id       = "pooled"': 'id       = "other"',
            'id     = "4200-0"\n  target = "pve2"': 'id     = "4200-0"\n  target = "pve3"',
            'rule      = "near"': 'rule      = "close"',
        },
        replaced=("proxmox_backup_job.pooled", "proxmox_replication.plain", "proxmox_harule.near"),
        imports={
            "proxmox_backup_job.plain": "plain",
            "proxmox_backup_job.pooled": "pooled",
            "proxmox_backup_job.full": "full",
            "proxmox_replication.plain": "4200-0",
            f"{LONG}replication.full": "4201-0",
            "proxmox_harule.near": "near",
            f"{LONG}harule.apart": "apart",
        },
        drift=_drift,
        drifted=(
            "proxmox_backup_job.full",
            "proxmox_backup_job.plain",
            f"{LONG}replication.full",
            "proxmox_harule.near",
            f"{LONG}harule.apart",
        ),
        remove=_remove,
        removed=("proxmox_backup_job.pooled", "proxmox_replication.plain", f"{LONG}harule.apart"),
        hidden=("/nodes",),
        lab={"nodes": ("pve1", "pve2", "pve3"), "seed": SEED},
    ),
)
