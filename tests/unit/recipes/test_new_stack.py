"""A new stack is whole, has a state and secrets of its own, and changes nothing of the user's."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.support.stacks import git, make_repository, repository, write

from stackyard.base.errors import FileError, StackyardError
from stackyard.recipes.backend_choice import NewBackendError, derive_key
from stackyard.recipes.catalogue import UnknownRecipeError, list_recipes
from stackyard.recipes.module_files import ModuleStatus
from stackyard.recipes.new_stack import NewStack, NewStackRequest, make_stack
from stackyard.recipes.placeholders import placeholder
from stackyard.recipes.placement import NewNameError, StackExistsError
from stackyard.recipes.provider_locks import make_lock
from stackyard.secrets.base import SecretsLockedError
from stackyard.secrets.keyring import Keyring
from stackyard.secrets.protected_file import open_file
from stackyard.sources.stacks.facts import read_facts
from stackyard.sources.stacks.isolation import check_isolation
from stackyard.sources.stacks.repository import find_stacks

S3 = """terraform {{
  backend "s3" {{
    bucket       = "states"
    key          = "{0}" # <-- unique
    region       = "eu-central-1"
    use_lockfile = true
  }}
}}
"""
NO_PASSWORD = ("ANSIBLE_VAULT_PASSWORD", "ANSIBLE_VAULT_PASSWORD_FILE", "ANSIBLE_VAULT_IDENTITY_LIST")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home folder of a user who has no password, no key and no engine."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("STACKYARD_TOFU", str(tmp_path / "no-engine"))
    for name in (*NO_PASSWORD, "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    return folder


def new(root: Path, name: str, origin: str = "empty", **more: object) -> NewStack:
    return asyncio.run(make_stack(NewStackRequest(name=name, origin=origin, **more), root))  # type: ignore[arg-type]


def read(root: Path, name: str) -> str:
    return (root / name).read_text()


def secrets(root: Path, path: str) -> str:
    return open_file(root / path, Keyring()).plain.decode()


@pytest.mark.parametrize("origin", list_recipes())
def test_a_recipe_becomes_a_stack_without_findings(root: Path, origin: str) -> None:
    made = new(root, "onprem/a", origin)
    stacks = find_stacks(root)
    assert list(stacks.stacks) == ["onprem/a"]
    assert stacks.broken == {}
    assert not list(check_isolation(stacks).found)
    assert {"main.tf", "backend.tf", "secrets.tfvars", ".terraform.lock.hcl"} <= set(made.files)
    assert read(root, "tofu/stacks/onprem/a/secrets.tfvars").startswith("$ANSIBLE_VAULT;1.1;AES256")
    called = stacks.reader.tree.top
    assert all((Path(called) / "tofu/modules" / one.name / "README.md").is_file() for one in made.modules)


def test_the_password_that_is_made_is_private_outside_and_used_again(root: Path, home: Path) -> None:
    path = home / ".config/stackyard/vault-password"
    assert new(root, "a").secrets.new_file == path
    assert path.stat().st_mode & 0o777 == 0o600
    assert new(root, "b").secrets.new_file is None
    assert "Secrets of the stack b" in secrets(root, "tofu/stacks/b/secrets.tfvars")


def test_a_password_that_is_not_known_is_asked_for_and_nothing_is_made(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "password").write_text("one\n")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(tmp_path / "password"))
    new(root, "a")
    monkeypatch.delenv("ANSIBLE_VAULT_PASSWORD_FILE")
    with pytest.raises(SecretsLockedError, match="ANSIBLE_VAULT_PASSWORD_FILE is not set"):
        new(root, "b")
    assert not (root / "tofu/stacks/b").exists()


def test_rules_of_sops_are_used(root: Path) -> None:
    key = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
    write(root, {".sops.yaml": f"creation_rules:\n  - path_regex: secrets\\.tfvars$\n    age: {key}\n"})
    assert new(root, "a").secrets.kind == "sops"
    assert key in read(root, "tofu/stacks/a/secrets.tfvars")


def test_the_backend_is_that_of_the_stacks_beside_it_with_a_key_of_its_own(root: Path) -> None:
    write(root, {f"stacks/onprem/{one}/backend.tf": S3.format(f"onprem/{one}.tfstate") for one in "ab"})
    made = new(root, "onprem/c")
    assert made.place.path == "stacks/onprem/c"
    assert made.backend.key == "onprem/c.tfstate"
    expected = S3.format("onprem/c.tfstate").replace(" # <-- unique", "")
    assert read(root, "stacks/onprem/c/backend.tf") == expected
    assert not check_isolation(find_stacks(root)).found.errors


def test_stacks_that_do_not_agree_are_no_model(root: Path) -> None:
    other = S3.format("x/b").replace('"states"', '"others"')
    write(root, {"stacks/x/a/backend.tf": S3.format("x/a"), "stacks/x/b/backend.tf": other})
    assert new(root, "x/c").backend.reason == "the other stacks do not agree"
    assert 'backend "http" {}' in read(root, "stacks/x/c/backend.tf")


@pytest.mark.parametrize(
    ("kind", "before", "old", "expected"),
    [
        ("s3", "onprem/a.tfstate", "onprem/a", "onprem/new.tfstate"),
        ("s3", "prod/onprem/a/terraform.tfstate", "onprem/a", "prod/onprem/new/terraform.tfstate"),
        ("s3", "something.tfstate", "onprem/a", "onprem/new.tfstate"),
        ("s3", "a/a.tfstate", "a", "a/onprem/new.tfstate"),
        ("s3", "cloud/a.tfstate", "cloud/a", "onprem/new.tfstate"),
        ("pg", "onprem_a", "onprem/a", "onprem_new"),
        ("gcs", "states/onprem/a", "onprem/a", "states/onprem/new"),
        ("http", "https://host/state/a", "onprem/a", "https://host/state/new"),
    ],
)
def test_a_key_is_made_in_the_manner_of_the_other_one(
    kind: str, before: str, old: str, expected: str
) -> None:
    assert derive_key(kind, before, old, "onprem/new") == expected


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("../out", NewNameError),
        ("a b", NewNameError),
        ("a@b", NewNameError),
        ("", NewNameError),
        ("x/modules/y", NewNameError),
        ("x/a", StackExistsError),
        ("x/a/inner", NewNameError),
        ("x", NewNameError),
        ("x/file", StackExistsError),
        ("x/full", StackExistsError),
    ],
)
def test_a_name_that_cannot_be_is_refused_and_nothing_is_made(
    root: Path, name: str, error: type[StackyardError]
) -> None:
    write(root, {"stacks/x/a/main.tf": "", "stacks/x/file": "", "stacks/x/full/notes": ""})
    before = sorted(root.rglob("*"))
    with pytest.raises(error):
        new(root, name)
    assert sorted(root.rglob("*")) == before


def test_the_name_of_a_broken_stack_is_taken_too(root: Path) -> None:
    write(root, {"stacks/x/main.tf": "", "stacks/x/stack.yaml": "what: 1\n"})
    with pytest.raises(StackExistsError):
        new(root, "x")


def test_a_folder_that_cannot_be_written_is_an_error(root: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    root.chmod(0o500)
    with pytest.raises(FileError):
        new(root, "a")


@pytest.mark.parametrize(
    ("files", "name", "path", "modules"),
    [
        ({}, "g/a", "tofu/stacks/g/a", "tofu/modules"),
        ({"stacks/x/main.tf": ""}, "a", "stacks/a", "modules"),
        ({"tofu/stacks/x/main.tf": ""}, "tofu/stacks/deep/er/a", "tofu/stacks/deep/er/a", "tofu/modules"),
        ({"infrastructure/01-base/x/main.tf": ""}, "01-base/a", "infrastructure/01-base/a", "modules"),
        ({"stackyard.yaml": "roots: [live]\n", "live/x/main.tf": ""}, "a", "live/a", "modules"),
    ],
)
def test_a_stack_goes_where_the_others_are_and_finds_its_modules(
    root: Path, files: dict[str, str], name: str, path: str, modules: str
) -> None:
    write(root, files)
    made = new(root, name, "proxmox")
    assert (made.place.path, made.place.modules) == (path, modules)
    stacks = find_stacks(root)
    called = read_facts(stacks, stacks.find(made.place.name)).modules
    assert f"{modules}/proxmox_qemu_vm" in called


def test_a_layer_has_to_be_named_where_there_are_only_layers(root: Path) -> None:
    write(root, {"infrastructure/01-base/x/main.tf": ""})
    with pytest.raises(NewNameError, match="01-base"):
        new(root, "a")


def test_a_module_that_is_there_is_never_changed(root: Path) -> None:
    new(root, "a", "proxmox")
    changed = root / "tofu/modules/proxmox_qemu_vm/main.tf"
    changed.write_text("# mine\n")
    made = {one.name: one for one in new(root, "b", "proxmox").modules}
    assert made["proxmox_qemu_vm"].status is ModuleStatus.DIFFERS
    assert made["proxmox_qemu_vm"].changed == ("main.tf",)
    assert made["proxmox_lxc_container"].status is ModuleStatus.KEPT
    assert changed.read_text() == "# mine\n"


def test_files_that_git_ignores_are_named(root: Path) -> None:
    write(root, {".gitignore": "*.tfvars\n*.tfstate*\n"})
    made = new(root, "a")
    assert any("secrets.tfvars" in note for note in made.notes)
    lines = read(root, ".gitignore").splitlines()
    assert lines.count("*.tfstate*") == 1
    assert ".terraform/" in lines
    assert new(root, "b").ignored == ()


def test_it_works_outside_of_git(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    assert new(folder, "a").place.path == "tofu/stacks/a"


def test_something_else_is_neither_recipe_nor_stack(root: Path) -> None:
    with pytest.raises(UnknownRecipeError, match="proxmox"):
        new(root, "a", "proxmocks")


LOCK = """provider "registry.example.org/hashicorp/random" {
  version     = "3.6.0"
  constraints = "~> 3.6"
  hashes = [
    "h1:abc",
  ]
}
"""
CODE = """terraform {
  required_providers {
    random = {
      source  = "hashicorp/random"
      version = "~> 3.6"
    }
  }
}
module "inventory" {
  source     = "../../../modules/inventory"
  stack_name = "server_a"
}
locals {
  stack = "onprem/server_a"
  other = "server_b"
}
variable "token" {
  type      = string
  sensitive = true
}
"""


def make_model(root: Path) -> Path:
    folder = "tofu/stacks/onprem/server_a"
    write(
        root,
        {
            "tofu/modules/inventory/main.tf": 'variable "stack_name" { type = string }\n',
            f"{folder}/main.tf": CODE,
            f"{folder}/backend.tf": S3.format("onprem/server_a.tfstate"),
            f"{folder}/vms.tfvars": 'resources = { web = { nodes = { "web-1" = { vm_id = 301 } } } }\n',
            f"{folder}/.terraform.lock.hcl": LOCK,
            f"{folder}/README.md": "# The first server\n",
            f"{folder}/terraform.tfstate": "{}",
            f"{folder}/tfplan": "x",
            f"{folder}/.terraform/x": "x",
            ".gitignore": "local.auto.tfvars\n",
            f"{folder}/local.auto.tfvars": 'token = "mine"\n',
            f"{folder}/templates/a.tftpl": "x",
        },
    )
    return root / folder


def test_a_copy_has_a_key_a_name_and_secrets_of_its_own(root: Path) -> None:
    source = make_model(root)
    new(root, "onprem/x")
    (source / "secrets.tfvars").write_bytes((root / "tofu/stacks/onprem/x/secrets.tfvars").read_bytes())
    made = new(root, "onprem/server_c", "onprem/server_a")
    copied = {".terraform.lock.hcl", "README.md", "backend.tf", "main.tf", "templates/a.tftpl", "vms.tfvars"}
    assert set(made.files) == copied | {"secrets.tfvars"}
    assert made.backend.key == "onprem/server_c.tfstate"
    code = read(root, "tofu/stacks/onprem/server_c/main.tf")
    assert 'stack_name = "server_c"' in code
    assert 'stack = "onprem/server_c"' in code
    assert 'other = "server_b"' in code
    assert [str(one).rpartition("/")[2] for one in made.renamed] == ["main.tf:11", "main.tf:14"]
    assert 'token = "change-me"' in secrets(root, "tofu/stacks/onprem/server_c/secrets.tfvars")
    assert made.secrets.replace == ("token",)
    assert not check_isolation(find_stacks(root)).found.errors


def test_a_copy_in_another_folder_finds_its_modules_and_copies_secrets_when_asked(root: Path) -> None:
    source = make_model(root)
    new(root, "onprem/x")
    data = (root / "tofu/stacks/onprem/x/secrets.tfvars").read_bytes()
    (source / "secrets.tfvars").write_bytes(data)
    made = new(root, "d", "stack:onprem/server_a", with_secrets=True)
    assert 'source     = "../../modules/inventory"' in read(root, "tofu/stacks/d/main.tf")
    assert (root / "tofu/stacks/d/secrets.tfvars").read_bytes() == data
    assert made.secrets.kind == ""
    (source / "secrets.tfvars").write_text("token = 1\n")
    with pytest.raises(FileError, match="in clear"):
        new(root, "e", "onprem/server_a", with_secrets=True)


def test_a_key_that_is_not_in_the_files_of_the_stack_is_refused(root: Path) -> None:
    write(
        root,
        {
            "stacks/a/main.tf": 'terraform {\n  backend "s3" {}\n}\n',
            "stacks/a/stack.yaml": "backend_config: [../../b.hcl]\n",
            "b.hcl": 'bucket = "x"\nkey = "a"\n',
        },
    )
    with pytest.raises(NewBackendError, match="`a` keeps its state there"):
        new(root, "b", "a")
    assert new(root, "b", "a", backend="http").backend.type == "http"


def test_a_key_in_a_settings_file_of_the_stack_is_changed(root: Path) -> None:
    write(
        root,
        {
            "stacks/a/main.tf": 'terraform {\n  backend "s3" {}\n}\n',
            "stacks/a/stack.yaml": "backend_config: [b.hcl]\n",
            "stacks/a/b.hcl": 'bucket = "x"\nkey = "a.tfstate"\n',
        },
    )
    assert new(root, "b", "a").backend.key == "b.tfstate"
    assert read(root, "stacks/b/b.hcl") == 'bucket = "x"\nkey = "b.tfstate"\n'
    assert not check_isolation(find_stacks(root)).found.errors


def test_the_lock_file_takes_the_versions_of_other_stacks(root: Path) -> None:
    make_model(root)
    required = {"hashicorp/random": frozenset({"~> 3.6"}), "bpg/proxmox": frozenset({"~> 0.111"})}
    lock = asyncio.run(make_lock(find_stacks(root), required))
    assert (lock.locked, lock.served, lock.missing) == (("hashicorp/random",), ("bpg/proxmox",), ())
    assert LOCK in lock.text
    # Another constraint may need another version: only a registry knows, and there is no engine to ask it.
    lock = asyncio.run(make_lock(find_stacks(root), {"hashicorp/random": frozenset({"~> 3.7"})}))
    assert lock.missing == ("hashicorp/random",)
    assert lock.reason


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("string", '"change-me"'),
        (None, '"change-me"'),
        ("list(object({ a = string }))", "[]"),
        (
            "object({ a = string b = optional(object({ c = string }), {}) n = number })",
            '{\n  a = "change-me"\n  n = 0\n}',
        ),
        ("object({ a = object({ b = bool }), })", "{\n  a = {\n    b = false\n  }\n}"),
        ("object({", "{}"),
    ],
)
def test_a_placeholder_has_the_type_of_its_variable(kind: str | None, expected: str) -> None:
    assert placeholder(kind) == expected


def test_a_repository_that_is_committed_stays_committed(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "r", {"stacks/a/main.tf": "", ".gitignore": "x\n"})
    head = git(folder, "rev-parse", "HEAD")
    new(folder, "b")
    assert git(folder, "rev-parse", "HEAD") == head
    assert git(folder, "diff", "--cached", "--name-only") == ""
    assert ".stackyard-new" not in git(folder, "status", "--porcelain", "--untracked-files=all")
    assert repository(folder, {}).find("b").name == "b"


def test_a_cluster_that_does_not_answer_is_named_and_stops_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without credentials, nothing is asked.
    monkeypatch.setenv("PROXMOX_VE_ENDPOINT", "https://127.0.0.1:1")
    monkeypatch.delenv("PROXMOX_VE_API_TOKEN", raising=False)
    made = new(root, "a", "proxmox")
    assert made.notes == (
        "https://127.0.0.1:1 could not be asked for its nodes: check `pve1` in vms.tfvars.",
    )
    assert '"pve1"' in read(root, "tofu/stacks/a/vms.tfvars")
