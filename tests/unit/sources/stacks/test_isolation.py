"""Two stacks never share a state, and none reads another's without saying so."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.stacks import repository

from stackyard.sources.stacks.isolation import check_isolation

S3 = 'terraform {{\n  backend "s3" {{\n    bucket = "{0}"\n    key    = "{1}"\n  }}\n}}\n'


def codes(root: Path, files: dict[str, str]) -> list[tuple[str, str]]:
    found = check_isolation(repository(root, dict(files)))
    return [(one.kind.code, one.detail) for one in found]


def test_two_stacks_with_one_key_are_an_error_that_names_both(tmp_path: Path) -> None:
    files = {"stacks/a/main.tf": S3.format("x", "k"), "stacks/b/main.tf": S3.format("x", "k")}
    [(code, detail)] = codes(tmp_path, {**files, "stacks/c/main.tf": S3.format("y", "k")})
    assert code == "E-STACK-SHARED-STATE"
    assert "`a` (stacks/a/main.tf:2)" in detail
    assert "`b` (stacks/b/main.tf:2)" in detail


@pytest.mark.parametrize(
    ("one", "other", "is_shared"),
    [
        ('backend "http" { address = "https://s/x" }', 'backend "http" { address = "https://s/x/" }', True),
        ('backend "http" { address = "https://s/x" }', 'backend "http" { address = "https://s/y" }', False),
        ('backend "local" { path = "../x.tfstate" }', 'backend "local" { path = "../x.tfstate" }', True),
        ('backend "local" {}', 'backend "local" {}', False),
        ('backend "s3" { key = var.k }', 'backend "s3" { key = var.k }', False),
        ('backend "s3" {}', 'backend "s3" {}', False),
        ('backend "gcs" { bucket = "b" }', 'backend "gcs" { bucket = "b" }', True),
        ('backend "pg" { conn_str = "p" }', 'backend "pg" { conn_str = "p", schema_name = "x" }', False),
    ],
)
def test_a_state_is_told_by_where_it_is(tmp_path: Path, one: str, other: str, is_shared: bool) -> None:
    other = other.replace(", ", "\n")
    files = {
        "stacks/a/main.tf": f"terraform {{\n{one}\n}}\n",
        "stacks/b/main.tf": f"terraform {{\n{other}\n}}\n",
    }
    assert bool(codes(tmp_path, files)) is is_shared


def test_backend_config_files_count(tmp_path: Path) -> None:
    code = 'terraform {\n  backend "s3" {}\n}\n'
    files = {
        **{f"stacks/{name}/main.tf": code for name in "ab"},
        **{f"stacks/{name}/stack.yaml": "backend_config: [../../b.hcl]\n" for name in "ab"},
        "b.hcl": 'bucket = "x"\nkey = "same"\n',
    }
    assert [code for code, _ in codes(tmp_path, files)] == ["E-STACK-SHARED-STATE"]


def test_a_key_outside_of_the_parent_folder_is_a_warning(tmp_path: Path) -> None:
    files = {
        "stacks/onprem/proxmox_server_A_gpu/backend.tf": S3.format("x", "onprem/proxmox_server_A.tfstate"),
        "stacks/cloud/aws/backend.tf": S3.format("x", "elsewhere/aws.tfstate"),
        "stacks/top/backend.tf": S3.format("x", "any.tfstate"),
    }
    [(code, detail)] = codes(tmp_path, files)
    assert code == "W-STACK-KEY"
    assert "`cloud/aws`" in detail


def test_reading_the_state_of_another_stack_has_to_be_said(tmp_path: Path) -> None:
    read = (
        'data "terraform_remote_state" "net" {\n  backend = "s3"\n'
        '  config = { bucket = "x", key = "net" }\n}\n'
    )
    files = {"stacks/net/main.tf": S3.format("x", "net"), "stacks/app/main.tf": read}
    [(code, detail)] = codes(tmp_path, files)
    assert code == "E-STACK-UNDECLARED-READ"
    assert "`app`" in detail
    assert "`net` (stacks/net/main.tf:2)" in detail
    assert codes(tmp_path, {"stacks/app/stack.yaml": "after: [net]\n"}) == []
