"""A repository with many stacks: four environments, local modules in two levels, chains of ten in the order.

For the other programs that the bench runs beside ours, each stack also has a `stack.tm.hcl` (Terramate) and a
`terragrunt.hcl` where that is asked for; ours reads neither.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.stacks import commit, git, write

__all__ = ["stack_name", "write_large_repository"]

_ENVIRONMENTS = ("dev", "stage", "prod", "lab")
_CHAIN = 10
_MAIN = """terraform {{
  backend "s3" {{
    bucket = "states"
    key    = "{environment}/{name}.tfstate"
  }}
}}

module "app" {{
  source = "../../../modules/m{module}"
  size   = var.size
}}
"""
_VARIABLES = 'variable "size" {\n  type    = number\n  default = 1\n}\n'
_OUTPUTS = 'output "id" {\n  value = module.app.id\n}\n'
_PROVIDERS = (
    'terraform {\n  required_providers {\n    random = {\n      source = "hashicorp/random"\n    }\n  }\n}\n'
)
_MODULE = """variable "size" {{
  type = number
}}

module "inner" {{
  source = "../inner{number}"
  size   = var.size
}}

output "id" {{
  value = module.inner.id
}}
"""
_INNER = """variable "size" {
  type = number
}

resource "terraform_data" "machine" {
  input = { size = var.size, motd = file("${path.module}/motd.txt") }
}

output "id" {
  value = terraform_data.machine.id
}
"""


def stack_name(number: int) -> str:
    """Return the name of a stack."""
    return f"{_ENVIRONMENTS[number % len(_ENVIRONMENTS)]}/s{number:04}"


def write_large_repository(
    root: Path, stacks: int, *, four_files: bool = False, for_others: bool = False
) -> None:
    """Write a repository, and a branch with one commit that touches one module and one file of values.

    Args:
        root: Where.
        stacks: How many stacks.
        four_files: Whether each stack has four files of code instead of one.
        for_others: Whether Terramate and Terragrunt find the stacks too.
    """
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "--quiet", "--initial-branch", "main")
    git(root, "config", "gc.auto", "0")
    modules = max(stacks // 10, 1)
    files: dict[str, str | None] = {}
    for number in range(modules):
        files[f"modules/m{number}/main.tf"] = _MODULE.format(number=number)
        files[f"modules/inner{number}/main.tf"] = _INNER
        files[f"modules/inner{number}/motd.txt"] = f"module {number}\n"
    for number in range(stacks):
        files |= _stack(number, modules, four_files=four_files, for_others=for_others)
    if for_others:
        files["terramate.tm.hcl"] = "terramate {\n  config {\n  }\n}\n"
    write(root, files)
    commit(root)
    git(root, "checkout", "--quiet", "-b", "feature")
    changed: dict[str, str | None] = {
        "modules/inner0/main.tf": f"{_INNER}\n# changed\n",
        f"stacks/{stack_name(1)}/terraform.tfvars": "size = 9\n",
    }
    write(root, changed)
    commit(root)
    git(root, "repack", "-a", "-d", "--quiet")


def _stack(number: int, modules: int, *, four_files: bool, for_others: bool) -> dict[str, str | None]:
    name = stack_name(number)
    environment, own = name.split("/")
    folder = f"stacks/{name}"
    main = _MAIN.format(environment=environment, name=own, module=number % modules)
    found: dict[str, str | None] = {f"{folder}/terraform.tfvars": f"size = {number}\n"}
    if four_files:
        parts = {"main": main, "variables": _VARIABLES, "outputs": _OUTPUTS, "providers": _PROVIDERS}
        found |= {f"{folder}/{part}.tf": text for part, text in parts.items()}
    else:
        found[f"{folder}/main.tf"] = f"{main}\n{_VARIABLES}"
    after = stack_name(number - 1) if number % _CHAIN else ""
    if after:
        found[f"{folder}/stack.yaml"] = f"after: [{after}]\n"
    if for_others:
        earlier = f'\n  after = ["/stacks/{after}"]' if after else ""
        found[f"{folder}/stack.tm.hcl"] = f'stack {{\n  name = "{name}"{earlier}\n}}\n'
        needed = f'dependencies {{\n  paths = ["../../{after}"]\n}}\n' if after else ""
        found[f"{folder}/terragrunt.hcl"] = f'terraform {{\n  source = "."\n}}\n{needed}'
    return found
