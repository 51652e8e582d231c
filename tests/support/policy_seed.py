"""A repository in the shape of the one that the rules come from: six modules, four stacks, its defects."""

from __future__ import annotations

from pathlib import Path

from tests.support.policy import VAULT
from tests.support.stacks import commit, git, write

__all__ = ["MODULES", "STACKS", "seed_repository"]

MODULES = (
    "ansible_inventory",
    "image_builder",
    "lxc_template_customizer",
    "proxmox_lxc",
    "proxmox_vm",
    "resource_normalizer",
)
STACKS = ("cloud/aws_kyoto", "cloud/cloudflare_alexandria", "cloud/netbird_samarkand", "onprem/proxmox_atlas")
_EXACT = """terraform {
  required_providers {
    proxmox = {
      source  = "bpg/proxmox"
      version = "0.86.0"
    }
  }
}
"""
_VARIABLE = 'variable "{name}" {{\n  description = "The {name}."\n  type        = {type}\n}}\n'
_OUTPUT = 'output "{name}" {{\n  description = "The {name}."\n  value       = {value}\n}}\n'
_LOCK = (
    'provider "registry.opentofu.org/{source}" {{\n  version = "{version}"\n  constraints = "~> 5.0"\n}}\n'
)


def _module_files() -> dict[str, str | None]:
    machine = _EXACT + '\nresource "%s" "this" {\n  node_name = var.node_name\n}\n'
    return {
        "ansible_inventory/main.tf": "terraform {\n  required_providers {\n    local = {\n"
        '      source  = "hashicorp/local"\n      version = "2.5.3"\n    }\n  }\n}\n\n'
        'resource "local_file" "inventory" {\n  filename = var.path\n  content  = "x"\n}\n',
        "ansible_inventory/variables.tf": _VARIABLE.format(name="path", type="string"),
        "image_builder/main.tf": machine % ("proxmox_virtual_environment_file",),
        "image_builder/variables.tf": _VARIABLE.format(name="node_name", type="string"),
        "image_builder/outputs.tf": _OUTPUT.format(
            name="file_id", value="proxmox_virtual_environment_file.this.id"
        ),
        "lxc_template_customizer/main.tf": machine % ("proxmox_virtual_environment_file",),
        "lxc_template_customizer/variables.tf": _VARIABLE.format(name="node_name", type="string")
        + _VARIABLE.format(name="template", type="any"),
        "lxc_template_customizer/outputs.tf": _OUTPUT.format(
            name="file_id", value="proxmox_virtual_environment_file.this.id"
        ),
        "proxmox_lxc/main.tf": machine % ("proxmox_virtual_environment_container",),
        "proxmox_lxc/variables.tf": _VARIABLE.format(name="node_name", type="string"),
        "proxmox_lxc/outputs.tf": _OUTPUT.format(
            name="id", value="proxmox_virtual_environment_container.this.id"
        ),
        "proxmox_vm/main.tf": machine % ("proxmox_virtual_environment_vm",),
        "proxmox_vm/variables.tf": _VARIABLE.format(name="node_name", type="string"),
        "proxmox_vm/outputs.tf": _OUTPUT.format(
            name="ipv4", value="proxmox_virtual_environment_vm.this.ipv4_addresses"
        ),
        "resource_normalizer/locals.tf": "locals {\n  flat = { for k, v in var.resources : k => v }\n}\n",
        "resource_normalizer/variables.tf": 'variable "resources" {\n  description = "The data."\n'
        "  # any: the keys differ by type\n  type = any\n}\n",
        "resource_normalizer/outputs.tf": _OUTPUT.format(name="vms", value="local.flat"),
    }


def _stack_files() -> dict[str, str | None]:
    atlas = "onprem/proxmox_atlas"
    found: dict[str, str | None] = {
        f"{atlas}/main.tf": 'module "vm" {\n  source    = "../../../modules/proxmox_vm"\n'
        "  node_name = var.node_name\n}\n",
        f"{atlas}/variables.tf": _VARIABLE.format(name="node_name", type="string"),
        f"{atlas}/providers.tf": _EXACT,
        f"{atlas}/schema.tfvars": 'node_name = "pve"\n',
        f"{atlas}/schema.secret.tfvars": VAULT,
        f"{atlas}/.terraform.lock.hcl": _LOCK.format(source="bpg/proxmox", version="0.86.0"),
    }
    for stack, provider in zip(STACKS, ("aws", "cloudflare", "netbird"), strict=False):
        source = {"aws": "hashicorp/aws"}.get(provider, f"{provider}/{provider}")
        found |= {
            f"{stack}/main.tf": f'resource "{provider}_thing" "this" {{\n  name = var.name\n}}\n',
            f"{stack}/variables.tf": _VARIABLE.format(name="name", type="string"),
            f"{stack}/providers.tf": f"terraform {{\n  required_providers {{\n    {provider} = {{\n"
            f'      source  = "{source}"\n      version = "~> 5.0"\n    }}\n  }}\n}}\n',
            f"{stack}/backend.tf": "# Local state: do not configure a remote backend.\n",
            f"{stack}/schema.tfvars": 'name = "x"\n',
            f"{stack}/schema.secret.tfvars": VAULT,
            f"{stack}/.terraform.lock.hcl": _LOCK.format(source=source, version="5.31.0"),
        }
    return found


def seed_repository(root: Path) -> Path:
    """Write and commit it."""
    write(root, {f"tofu/modules/{name}": text for name, text in _module_files().items()})
    write(root, {f"tofu/stacks/{name}": text for name, text in _stack_files().items()})
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ\n" * 2
    write(
        root,
        {
            "kubernetes/certs/tls.key": key,
            "docker/app/.env": "POSTGRES_USER=app\nPOSTGRES_DB=app\n",
            "docker/web/.env": "PORT=8080\n",
            "ansible/inventory.d/.gitignore": "*\n",
        },
    )
    git(root, "init", "--quiet", "--initial-branch", "main")
    commit(root)
    return root
