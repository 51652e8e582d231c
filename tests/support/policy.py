"""Repositories for the rules of modules and stacks: one that keeps every rule, to be changed in one place."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Mapping
from pathlib import Path

from tests.support.stacks import commit, git, write

from stackyard.policy.check import PolicyRequest, PolicyResult, check_policy
from stackyard.sources.stacks.repository import find_stacks

__all__ = ["MODULE", "STACK", "VAULT", "check", "good_repository", "rules_of"]

TODAY = datetime.date(2026, 11, 18)
VAULT = "$ANSIBLE_VAULT;1.1;AES256\n" + "6638643965323633\n" * 4
MODULE: dict[str, str | None] = {
    "main.tf": """terraform {
  required_providers {
    random = {
      source  = "hashicorp/random"
      version = "~> 3.6"
    }
  }
}

resource "random_pet" "this" {
  length = var.length
}
""",
    "variables.tf": """variable "length" {
  description = "How many words the name has."
  type        = number
}
""",
    "outputs.tf": """output "name" {
  description = "The name."
  value       = random_pet.this.id
}
""",
    "README.md": """# pet

Makes a name.

## Inputs

| Name | Description |
|------|-------------|
| `length` | How many words the name has. |

## Outputs

| Name | Description |
|------|-------------|
| `name` | The name. |
""",
}
LOCK = """provider "registry.opentofu.org/hashicorp/random" {
  version     = "3.6.2"
  constraints = "~> 3.6"
  hashes = [
    "h1:wmG0QFjQ2OfyPy6BB7mQ57WtoZZGGV07uAPQeDmIrAE=",
  ]
}
"""
STACK: dict[str, str | None] = {
    "main.tf": """module "pet" {
  source = "../../../modules/pet"
  length = var.length
}
""",
    "variables.tf": """variable "length" {
  description = "How many words."
  type        = number
}

variable "password" {
  description = "The password."
  type        = string
  sensitive   = true
}
""",
    "backend.tf": """terraform {
  backend "s3" {
    bucket = "states"
    key    = "onprem/a.tfstate"
  }
}
""",
    "providers.tf": """terraform {
  required_providers {
    random = {
      source  = "hashicorp/random"
      version = "~> 3.6"
    }
  }
}

provider "random" {}
""",
    "terraform.tfvars": "length = 2\n",
    "secrets.tfvars": VAULT,
    ".terraform.lock.hcl": LOCK,
}


def good_repository(root: Path, changed: Mapping[str, str | None] | None = None) -> Path:
    """Write and commit a repository that keeps every rule, with some files written or removed on top."""
    root.mkdir(parents=True, exist_ok=True)
    files = {f"modules/pet/{name}": text for name, text in MODULE.items()}
    files |= {f"stacks/onprem/a/{name}": text for name, text in STACK.items()}
    write(root, files)
    write(root, changed or {})
    git(root, "init", "--quiet", "--initial-branch", "main")
    commit(root)
    return root


def check(root: Path, *rules: str, base: str | None = None, today: datetime.date = TODAY) -> PolicyResult:
    """Check a repository against some rules, or all."""
    request = PolicyRequest(rules=rules, base=base, today=today)
    return asyncio.run(check_policy(find_stacks(root, may_be_empty=True), request))


def rules_of(result: PolicyResult) -> set[str]:
    """Return the rules that failed."""
    return {one.rule for one in result.errors}
