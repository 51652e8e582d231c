"""Code of a pull request that could do more than plan is found; what the base branch has is trusted."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.gitops_repo import PullRepository

from stackyard.gitops.code_check import check_code
from stackyard.gitops.model import CodeFinding, CodeRisk
from stackyard.gitops.targets import find_changed_targets
from stackyard.sources.store import ChosenStore

BASE = """
terraform {
  backend "s3" {
    bucket = "states"
    key    = "web"
  }
  required_providers { proxmox = { source = "bpg/proxmox" } }
}
provider "proxmox" { endpoint = var.endpoint }
variable "endpoint" { type = string }
module "vm" { source = "acme/vm/proxmox" }
resource "terraform_data" "x" { input = file("${path.module}/motd.txt") }
"""
FILES = {
    "stacks/web/main.tf": BASE,
    "stacks/web/terraform.tfvars": 'endpoint = "https://pve.example.org:8006/"\n',
    "stacks/web/motd.txt": "hello\n",
    "stackyard.yaml": "roots: [stacks]\n",
}


async def find(folder: Path, change: dict[str, str | None]) -> dict[str, tuple[CodeFinding, ...]]:
    """Return what is found in a change of the base files, by target."""
    pull = PullRepository(folder)
    base = pull.commit(FILES)
    head = pull.commit(change, branch="work")
    checkouts = await pull.fetched()
    store = ChosenStore(base=folder / "store" / ".stackyard")
    async with checkouts.merge_result(base, head) as checkout:
        changes = await find_changed_targets(checkouts, checkout, base, store)
        assert changes.targets, "the change selects nothing"
        return dict(await check_code(checkouts, checkout, base, changes))


PROGRAM, SOURCE, ENGINE = CodeRisk.PROGRAM, CodeRisk.SOURCE, CodeRisk.ENGINE
PROVIDER, PATH = CodeRisk.PROVIDER, CodeRisk.PATH


def web(more: str) -> dict[str, str | None]:
    return {"stacks/web/more.tf": more}


@pytest.mark.parametrize(
    ("change", "risk", "detail"),
    [
        (web('data "external" "x" { program = ["sh", "-c", "id"] }\n'), PROGRAM, 'data "external" "x"'),
        (
            {"stacks/web/more.tf.json": '{"data": {"external": {"x": {"program": ["id"]}}}}'},
            PROGRAM,
            'data "external"',
        ),
        (web('check "c" {\n  data "external" "x" { program = ["id"] }\n}\n'), PROGRAM, 'data "external" "x"'),
        (
            web('resource "terraform_data" "y" {\n  provisioner "local-exec" { command = "id" }\n}\n'),
            PROGRAM,
            'provisioner "local-exec"',
        ),
        (web('data "http" "x" { url = "https://example.org" }\n'), PROVIDER, 'data "http" "x"'),
        (
            web('provider "proxmox" {\n  alias = "b"\n  endpoint = "https://e"\n}\n'),
            PROVIDER,
            'provider "proxmox"',
        ),
        (web('module "x" { source = "git::https://example.org/x.git" }\n'), SOURCE, "module git::"),
        (
            web('terraform {\n  required_providers { x = { source = "evil/x" } }\n}\n'),
            SOURCE,
            "provider evil/x",
        ),
        (web('resource "evil_thing" "x" {}\n'), SOURCE, "provider evil"),
        (web('terraform {\n  backend "s3" { endpoint = "https://e" }\n}\n'), ENGINE, "backend s3"),
        (web('terraform {\n  encryption {}\n}\n'), ENGINE, "encryption"),
        (web('output "x" { value = file("/etc/passwd") }\n'), PATH, "outside"),
        (web('output "x" { value = core::file("/etc/passwd") }\n'), PATH, "core::file"),
        (web('output "x" { value = file("${path.module}/../../.stackyard/site.key") }\n'), PATH, "outside"),
        (web('output "x" { value = file("${path.module}/../../../x") }\n'), PATH, "outside"),
        (web('output "x" { value = file(terraform_data.x.output) }\n'), PATH, "known only when it runs"),
        (web('data "local_file" "x" { filename = "/etc/passwd" }\n'), PATH, 'data "local_file" "x"'),
        (web("resource {{{ broken\n"), ENGINE, "cannot be read"),
        ({"stacks/web/motd.txt": "-> /etc/passwd"}, PATH, "a link to /etc/passwd"),
        ({"stacks/web/motd.txt": "-> ../../.stackyard/site.key"}, PATH, "a link to"),
        ({"stacks/web/.terraform/modules/modules.json": "{}", **web("# x\n")}, SOURCE, ".terraform"),
        ({"stacks/web/terraform.d/plugins/x": "x", **web("# x\n")}, SOURCE, "terraform.d"),
        ({"stacks/web/terraform.tfvars": 'endpoint = "https://evil.example"\n'}, PROVIDER, "endpoint"),
        ({"stacks/web/stack.yaml": "engine: terraform\n"}, ENGINE, "`engine`"),
        ({"stacks/web/stack.yaml": "var_files: [../../../../etc/x.tfvars]\n"}, PATH, "`var_files`"),
        ({"stackyard.yaml": "store: s3://evil/x\n", **web("# x\n")}, ENGINE, "`store`"),
    ],
)  # fmt: skip
async def test_new_code_that_could_do_more_than_plan_is_found(
    tmp_path: Path, change: dict[str, str | None], risk: CodeRisk, detail: str
) -> None:
    found = await find(tmp_path, change)
    seen = [(one.risk, one.detail) for one in found.get("stack:web", ())]
    assert any(one is risk and detail in text for one, text in seen), seen


@pytest.mark.parametrize(
    "change",
    [
        # A new stack like those that are there: its own key, and nothing else that is new.
        {
            "stacks/db/main.tf": BASE.replace('"web"', '"db"'),
            "stacks/db/motd.txt": "x\n",
            "stacks/db/terraform.tfvars": 'endpoint = "https://pve.example.org:8006/"\n',
        },
        web('resource "terraform_data" "y" {}\nmodule "again" { source = "acme/vm/proxmox" }\n'),
        web('module "near" { source = "../../modules/near" }\n') | {"modules/near/main.tf": "# nothing\n"},
        {"stacks/web/motd.txt": "other\n"},
        {"stacks/web/main.tf": BASE + 'resource "proxmox_virtual_environment_vm" "x" {}\n'},
    ],
)
async def test_what_the_base_branch_has_and_plain_changes_need_nobody(
    tmp_path: Path, change: dict[str, str | None]
) -> None:
    if "stacks/db/main.tf" in change:
        # The value is new in this file, and a provider takes it: that is for a person to see.
        found = await find(tmp_path, change)
        assert {one.detail for one in found.get("stack:db", ())} == {"endpoint, which a provider takes"}
        return
    assert await find(tmp_path, change) == {}
