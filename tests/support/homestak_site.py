"""Sites in the two layouts of homestak: names, keys and blank values as its examples have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["NEWEST", "WITH_ENVS", "write_layout"]

_SITE = """\
defaults:
  gateway: ""
  dns_servers: []
  domain: ""
  timezone: Europe/Berlin
  host_user: root
  packages: [htop, curl]
  vm_user: homestak
  server_url: ""
  bridge: vmbr0
"""
_SECRETS = """\
api_tokens: {}
passwords:
  vm_root: ""
ssh_keys: {}
auth:
  signing_key: ""
"""
_POSTURE = """\
auth: {method: network}
ssh: {port: 22, permit_root_login: "yes", password_authentication: "yes"}
sudo: {nopasswd: true}
fail2ban: {enabled: false}
packages: [strace]
"""
_SPEC = """\
schema_version: 1
access:
  posture: dev
  users:
    - {name: homestak, sudo: true}
platform:
  packages: [htop]
"""

NEWEST = {
    "site.yaml": _SITE,
    "secrets.yaml": _SECRETS,
    "hosts/.gitkeep": "",
    "nodes/.gitkeep": "",
    "postures/dev.yaml": _POSTURE,
    "presets/vm-small.yaml": "cores: 2\nmemory: 2048\ndisk: 10\n",
    "presets/vm-large.yaml": "cores: 4\nmemory: 8192\ndisk: 40\n",
    "specs/base.yaml": _SPEC,
    "manifests/n1-push.yaml": """\
schema_version: 2
name: n1-push
description: one guest
pattern: flat
nodes:
  - {name: edge, type: vm, spec: base, preset: vm-small, image: debian-12, vmid: 99001}
""",
}

WITH_ENVS = {
    "site.yaml": _SITE.replace("host_user", "ssh_user")
    .replace("vm_user", "automation_user")
    .replace("server_url", "spec_server"),
    "secrets.yaml": _SECRETS.replace('  signing_key: ""\n', '  site_token: ""\n  node_tokens: {}\n'),
    "nodes/.gitkeep": "",
    "envs/dev.yaml": """\
posture: dev
vmid_base: 10000
vms:
  - {name: web, template: plain, ip: dhcp}
  - {name: db, template: plain, cores: 1, disk: 12}
""",
    "envs/k8s.yaml": "posture: dev\n",
    "vms/plain.yaml": "preset: small\nimage: debian-12\npackages: [htop]\n",
    "vms/presets/small.yaml": "cores: 2\nmemory: 2048\ndisk: 10\n",
    "postures/dev.yaml": """\
ssh_port: 22
ssh_permit_root_login: "yes"
ssh_password_authentication: "yes"
sudo_nopasswd: true
fail2ban_enabled: false
packages: [strace]
""",
    "v2/postures/dev.yaml": _POSTURE,
    "v2/presets/vm-small.yaml": "cores: 2\nmemory: 2048\ndisk: 10\n",
    "v2/specs/base.yaml": _SPEC,
    "manifests/n1-basic.yaml": """\
schema_version: 2
name: n1-basic
nodes:
  - {name: test, type: vm, spec: base, preset: vm-small, image: debian-12, vmid: 99900}
""",
    "manifests/old.yaml": """\
name: old
levels:
  - {name: test, vm_preset: small, vmid: 99901, image: debian-12}
""",
}


def write_layout(folder: Path, files: dict[str, str]) -> Path:
    """Write a site, and return its folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder
