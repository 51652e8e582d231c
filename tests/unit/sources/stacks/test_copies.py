"""A stack that is copied by hand is caught where people forget to change something."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.support.stacks import git, make_repository

from stackyard.base.errors import InvalidInputError
from stackyard.sources.stacks.copies import CopyCheck
from stackyard.sources.stacks.isolation import check_isolation
from stackyard.sources.stacks.repository import find_stacks

A = "tofu/stacks/onprem/proxmox_atlas"
B = "tofu/stacks/onprem/proxmox_kyoto"
BACKEND = """terraform {
  backend "s3" {
    bucket = "states"
    key    = "onprem/proxmox_atlas.tfstate"
  }
}
"""
MAIN = """module "vm" {
  source = "../../../modules/vm"
  guests = var.resources
}

module "inventory" {
  source     = "../../../modules/inventory"
  guests     = module.vm.all
  stack_name = "proxmox_atlas"
}

locals {
  site = "onprem/proxmox_atlas"
}
"""
DATA = """target_node = "pve1"
resources = {
  web = {
    type = "vm"
    nodes = {
      web-1 = { vm_id = 1001 }
      web-2 = { vm_id = 1002 }
    }
  }
}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a repository in which somebody copied a stack with `cp -r`."""
    files = {f"{A}/backend.tf": BACKEND, f"{A}/main.tf": MAIN, f"{A}/vms.tfvars": DATA}
    modules = {f"tofu/modules/{one}/main.tf": "" for one in ("vm", "inventory")}
    folder = make_repository(tmp_path / "repo", {**files, **modules})
    shutil.copytree(folder / A, folder / B)
    return folder


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def found(root: Path, name: str = "onprem/proxmox_kyoto") -> list[tuple[str, str]]:
    repository = find_stacks(root)
    copies = CopyCheck(repository).check(repository.find(name))
    return [(one.kind.code, str(one.where)) for one in copies]


def test_a_key_that_was_not_changed_is_refused_with_the_line_to_change(root: Path) -> None:
    isolation = check_isolation(find_stacks(root))
    with pytest.raises(InvalidInputError) as caught:
        isolation.require("onprem/proxmox_kyoto")
    [finding] = caught.value.diagnostics
    assert finding.kind.code == "E-STACK-SHARED-STATE"
    assert f"Change `key` in {B}/backend.tf:4, which is not committed yet." in finding.detail
    git(root, "add", "--all")
    [finding] = check_isolation(find_stacks(root)).found.errors
    assert f"Change `key` in {A}/backend.tf:4 or {B}/backend.tf:4." in finding.detail
    replace(root / B / "backend.tf", "proxmox_atlas", "proxmox_kyoto")
    assert not list(check_isolation(find_stacks(root)).found)


def test_the_name_of_the_other_stack_in_the_code_is_found(root: Path) -> None:
    (root / B / "vms.tfvars").unlink()
    assert sorted(found(root)) == [
        ("W-STACK-COPIED-NAME", f"{B}/main.tf:13"),
        ("W-STACK-COPIED-NAME", f"{B}/main.tf:9"),
    ]
    replace(root / B / "main.tf", "proxmox_atlas", "proxmox_kyoto")
    assert found(root) == []


def test_the_first_stack_has_its_own_name(root: Path) -> None:
    (root / B / "vms.tfvars").unlink()
    assert found(root, "onprem/proxmox_atlas") == []


def test_guests_that_two_stacks_would_manage_are_found_with_their_lines(root: Path) -> None:
    replace(root / B / "main.tf", "proxmox_atlas", "proxmox_kyoto")
    replace(root / B / "vms.tfvars", "web-2 = { vm_id = 1002 }", "web-3 = { vm_id = 1003 }")
    assert found(root) == [("W-STACK-SAME-GUEST", f"{B}/vms.tfvars:6")]
    replace(root / B / "vms.tfvars", "1001", "2001")
    assert found(root) == []


def test_stacks_of_another_form_are_not_compared(root: Path) -> None:
    (root / B / "main.tf").write_text('module "other" {\n  source = "../../../modules/vm"\n}\n')
    assert found(root) == []


def test_the_older_form_of_data_and_json_are_read_too(root: Path) -> None:
    replace(root / B / "main.tf", "proxmox_atlas", "proxmox_kyoto")
    for stack in (A, B):
        (root / stack / "vms.tfvars").unlink()
        text = '{"resource_groups": {"dns": {"nodes": {"dns-1": {"id": 310, "ip": "10.0.0.2"}}}}}'
        (root / stack / "vms.tfvars.json").write_text(text)
    assert found(root) == [("W-STACK-SAME-GUEST", f"{B}/vms.tfvars.json:1")]
