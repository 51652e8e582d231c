"""A repository of stacks for a lab, laid out as its users do: modules, data files, a vaulted file each."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.secrets import VAULT_ENV, keyring
from tests.support.stack_repo import StackRepo, make_repo

from stackyard import lab
from stackyard.secrets.vault.file import seal_whole

__all__ = ["CLOUD", "VAULT", "A", "B", "ansible_inventory", "make_lab_repo", "vms", "write_secrets"]

A = "onprem/proxmox_server_A_gpu"
B = "onprem/proxmox_server_B_no_gpu"
CLOUD = "cloud/aws_global"
VAULT = {name: value for name, value in VAULT_ENV.items() if name.startswith("ANSIBLE_")}

_REQUIRED = 'terraform {\n  required_providers {\n    proxmox = { source = "bpg/proxmox" }\n  }\n}\n'
_VM_VARIABLES = """
variable "name" { type = string }
variable "vm_id" { type = number }
variable "node" { type = string }
variable "tags" { type = list(string) }
variable "memory" { type = number }
variable "user" { type = object({ username = string, password = string }) }
"""
_VM = """
resource "proxmox_virtual_environment_vm" "this" {
  name      = var.name
  vm_id     = var.vm_id
  node_name = var.node
  tags      = var.tags
  memory { dedicated = var.memory }
  agent {
    enabled = true
    timeout = "2s"
  }
  disk {
    interface    = "scsi0"
    datastore_id = "local-lvm"
    size         = 2
  }
  initialization {
    datastore_id = "local-lvm"
    user_account {
      username = var.user.username
      password = var.user.password
    }
    ip_config {
      ipv4 { address = "dhcp" }
    }
  }
  network_device { bridge = "vmbr0" }
}
"""
_LXC = """
resource "proxmox_virtual_environment_container" "this" {
  vm_id        = var.vm_id
  node_name    = var.node
  tags         = var.tags
  unprivileged = true
  memory { dedicated = var.memory }
  operating_system {
    template_file_id = "local:vztmpl/debian-12.tar.zst"
    type             = "debian"
  }
  disk {
    datastore_id = "local-lvm"
    size         = 1
  }
  initialization {
    hostname = var.name
    ip_config {
      ipv4 { address = "dhcp" }
    }
  }
  network_interface { name = "veth0" }
}
"""
_MAIN = """
provider "proxmox" {
  endpoint  = var.proxmox_connection.url
  api_token = var.proxmox_connection.api_token
  insecure  = true
}
locals {
  nodes = merge([
    for app, group in var.resource_groups : {
      for host, node in group.nodes : host => {
        type = group.type, id = node.id, tags = concat([app], group.tags), memory = group.memory
      } if group.enabled
    }
  ]...)
}
module "vm" {
  source   = "../../../modules/proxmox_qemu_vm"
  for_each = { for host, one in local.nodes : host => one if one.type == "qemu" }
  name     = each.key
  vm_id    = each.value.id
  node     = var.target_node
  tags     = each.value.tags
  memory   = each.value.memory
  user     = var.user_credentials["dev"]
}
module "lxc" {
  source   = "../../../modules/proxmox_lxc_container"
  for_each = { for host, one in local.nodes : host => one if one.type == "lxc" }
  name     = each.key
  vm_id    = each.value.id
  node     = var.target_node
  tags     = each.value.tags
  memory   = each.value.memory
  user     = var.user_credentials["dev"]
}
"""
_VARIABLES = """
variable "target_node" { type = string }
variable "resource_groups" {
  type = map(object({
    enabled = bool
    type    = string
    tags    = list(string)
    memory  = optional(number, 256)
    nodes   = map(object({ id = number }))
  }))
}
variable "proxmox_connection" {
  type      = object({ url = string, api_token = string })
  sensitive = true
}
variable "user_credentials" {
  type      = map(object({ username = string, password = string }))
  sensitive = true
}
"""
_BACKEND = 'terraform {\n  backend "http" {}\n}\n'


def vms(node: str, groups: Mapping[str, tuple[str, Mapping[str, int]]], **more: int) -> str:
    """Return a `vms.tfvars`: groups by name, each with its type and the ids of its guests."""
    lines = [f'target_node = "{node}"', "resource_groups = {"]
    for name, (kind, nodes) in groups.items():
        ids = ", ".join(f'"{host}" = {{ id = {number} }}' for host, number in nodes.items())
        own = "".join(f", {key} = {value}" for key, value in more.items())
        lines.append(
            f'  {name} = {{ enabled = true, type = "{kind}", tags = ["managed"]{own}, nodes = {{ {ids} }} }}'
        )
    return "\n".join([*lines, "}", ""])


def write_secrets(
    repo: StackRepo, stack: str, running: lab.Running, *, password: str, token: str = ""
) -> str:
    """Write the vaulted file of a stack; return what is in it."""
    text = (
        f'proxmox_connection = {{ url = "{running.url}", api_token = "{token or running.api_token}" }}\n'
        f'user_credentials = {{ dev = {{ username = "dev", password = "{password}" }} }}\n'
    )
    path = repo.root / "tofu/stacks" / stack / "secrets.tfvars"
    path.write_bytes(seal_whole(text.encode(), keyring()))
    return text


def _module(body: str, kind: str) -> dict[str, str]:
    output = f'output "id" {{ value = proxmox_virtual_environment_{kind}.this.vm_id }}\n'
    return {"main.tf": _REQUIRED + body, "variables.tf": _VM_VARIABLES, "outputs.tf": output}


def make_lab_repo(folder: Path, running: lab.Running, **env: str) -> StackRepo:
    """Make the repository: two Proxmox stacks for the two nodes of a lab, and one of a cloud."""
    files = {
        **{f"tofu/modules/proxmox_qemu_vm/{name}": text for name, text in _module(_VM, "vm").items()},
        **{
            f"tofu/modules/proxmox_lxc_container/{name}": text
            for name, text in _module(_LXC, "container").items()
        },
        f"tofu/stacks/{CLOUD}/main.tf": 'variable "instances" { type = map(string) }\n'
        'resource "terraform_data" "instance" {\n  for_each = var.instances\n  input = each.value\n}\n',
        f"tofu/stacks/{CLOUD}/backend.tf": _BACKEND,
        f"tofu/stacks/{CLOUD}/resources.tfvars": 'instances = { "edge-01" = "t4g.nano" }\n',
    }
    data = {
        A: vms(
            "pve1", {"web": ("qemu", {"web-vm-01": 301, "web-vm-02": 302}), "dns": ("lxc", {"dns-01": 310})}
        ),
        B: vms("pve2", {"batch": ("lxc", {"batch-01": 410})}),
    }
    for stack, values in data.items():
        files |= {
            f"tofu/stacks/{stack}/main.tf": _REQUIRED + _MAIN,
            f"tofu/stacks/{stack}/variables.tf": _VARIABLES,
            f"tofu/stacks/{stack}/backend.tf": _BACKEND,
            f"tofu/stacks/{stack}/vms.tfvars": values,
        }
    repo = make_repo(folder, files, env={**VAULT, **env})
    for stack in data:
        write_secrets(repo, stack, running, password="first-Password-1")
    repo.commit("secrets")
    return repo


def ansible_inventory(folder: Path, *sources: str) -> str:
    """Return what the real Ansible reads from inventories."""
    words = [word for source in sources for word in ("-i", source)]
    program = Path(sys.executable).parent / "ansible-inventory"
    ended = subprocess.run(
        [str(program), *words, "--list"],
        cwd=folder,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "WARNING" not in ended.stderr, ended.stderr
    return ended.stdout
