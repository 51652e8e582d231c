"""Package repositories of nodes."""

from __future__ import annotations

from tests.support.parity import Case

from stackyard.clients import proxmox

__all__ = ["CASE", "CASES"]

FOLDER = "/etc/apt/sources.list.d"
TEXT = f"""
resource "proxmox_apt_repository" "security" {{
  node      = "pve1"
  file_path = "{FOLDER}/debian.sources"
  index     = 1
  enabled   = false
}}
resource "proxmox_virtual_environment_apt_repository" "enterprise" {{
  node      = "pve1"
  file_path = "{FOLDER}/pve-enterprise.sources"
  index     = 0
}}
resource "proxmox_apt_standard_repository" "free" {{
  node   = "pve1"
  handle = "no-subscription"
}}
resource "proxmox_virtual_environment_apt_standard_repository" "ceph" {{
  node   = "pve2"
  handle = "ceph-squid-no-subscription"
}}
data "proxmox_apt_repository" "security" {{
  node       = "pve1"
  file_path  = "{FOLDER}/debian.sources"
  index      = 1
  depends_on = [proxmox_apt_repository.security]
}}
data "proxmox_virtual_environment_apt_repository" "none" {{
  node      = "pve2"
  file_path = "/etc/apt/none.sources"
  index     = 10
}}
data "proxmox_apt_standard_repository" "free" {{
  node       = "pve1"
  handle     = "no-subscription"
  depends_on = [proxmox_apt_standard_repository.free]
}}
data "proxmox_virtual_environment_apt_standard_repository" "absent" {{
  node   = "pve2"
  handle = "no-subscription"
}}
output "repositories" {{
  value = [
    data.proxmox_apt_repository.security, data.proxmox_virtual_environment_apt_repository.none,
    data.proxmox_apt_standard_repository.free,
    data.proxmox_virtual_environment_apt_standard_repository.absent,
  ]
}}
"""
PREFIX = "proxmox_virtual_environment_"


async def _drift(api: proxmox.Client) -> None:
    for name, index, enabled in (("debian", 1, True), ("pve-enterprise", 0, False)):
        await api.post(
            "/nodes/pve1/apt/repositories",
            {"path": f"{FOLDER}/{name}.sources", "index": index, "enabled": enabled},
        )


CASE = Case(
    id="repositories",
    kinds=("apt_repository", "apt_standard_repository"),
    sources=("apt_repository", "apt_standard_repository"),
    text=TEXT,
    update={"  enabled   = false\n": "", "index     = 0\n": "index     = 0\n  enabled = false\n"},
    updated=("proxmox_apt_repository.security", f"{PREFIX}apt_repository.enterprise"),
    replace={
        "  index     = 1\n": "  index     = 0\n",
        '"ceph-squid-no-subscription"': '"ceph-squid-test"',
    },
    replaced=("proxmox_apt_repository.security", f"{PREFIX}apt_standard_repository.ceph"),
    imports={
        "proxmox_apt_repository.security": f"pve1,{FOLDER}/debian.sources,1",
        "proxmox_apt_standard_repository.free": "pve1,no-subscription",
        f"{PREFIX}apt_standard_repository.ceph": "pve2,ceph-squid-no-subscription",
    },
    drift=_drift,
    drifted=("proxmox_apt_repository.security", f"{PREFIX}apt_repository.enterprise"),
    hidden=("/access",),
    nothing={
        "apt_repository gone": "no call removes one",
        "apt_standard_repository gone": "no call removes one",
        "apt_standard_repository update": "every attribute replaces it",
        "apt_standard_repository drift": "no call changes one",
    },
)
# It shares a configuration with the settings of nodes.
CASES: tuple[Case, ...] = ()
