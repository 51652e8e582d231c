"""The check before a commit reads what git would commit: any name, any kind of entry, any way to stage it."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from tests.support.programs import write_program
from tests.support.repositories import commit, git, new_repository
from tests.support.secrets import keyring

from stackyard.clients.git.hook import install_check
from stackyard.secrets.check.scan import HOOK_CHECK, check_repository
from stackyard.secrets.vault.file import seal_whole

CLEAR = 'password = "hunter2-hunter2"\n'
TOKEN = "root@pam!tofu=3f2a9c1d-7b6e-4d5f-8a90-1b2c3d4e5f60"
STATE = json.dumps(
    {"version": 4, "terraform_version": "1.12.6", "serial": 3, "lineage": "x", "resources": []}
)
KEY = base64.b64encode(b"-----BEGIN ED25519 PRIVATE KEY-----\n" + b"MC4CAQAwBQYDK2VwBCIEIL" * 3).decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "repository")


def staged(folder: Path) -> list[str]:
    """Return where the check finds something in what is staged."""
    return [str(one.where) for one in asyncio.run(check_repository(folder, is_staged_only=True)).findings]


def stage(folder: Path, name: str | bytes, text: str) -> None:
    path = os.path.join(os.fsencode(folder), os.fsencode(name))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    assert git(folder, "add", "--all", "--force").returncode == 0


def sealed() -> str:
    return seal_whole(CLEAR.encode(), keyring()).decode()


def test_a_file_that_is_staged_in_clear_is_found_though_it_is_encrypted_by_now(folder: Path) -> None:
    stage(folder, "secrets.tfvars", CLEAR)
    (folder / "secrets.tfvars").write_text(sealed())
    assert staged(folder) == ["secrets.tfvars:1"]


def test_a_file_that_is_staged_encrypted_passes_though_it_is_in_clear_by_now(folder: Path) -> None:
    stage(folder, "secrets.tfvars", sealed())
    (folder / "secrets.tfvars").write_text(CLEAR)
    assert staged(folder) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a b/my vms.secret.tfvars", CLEAR),
        ("x.secret.yaml", "password: hunter2\n"),
        ("x.sops.json", '{"password": "hunter2"}'),
        ("secret.env", "PASSWORD=hunter2-hunter2\n"),
        ("terraform.tfstate", STATE),
        ("prod.tfstate.backup", STATE),
        ("renamed.json", STATE),
        ("tfplan", "PK\x03\x04 any"),
        ("a.tfplan", "PK\x03\x04 any"),
        (".env", "A=b\nexport DB_PASSWORD='kT7pQ2xZ9'\n"),
        ("prod.env", "API_TOKEN=kT7pQ2xZ9w\n"),
        (".vault_pass", "kT7pQ2xZ9\n"),
        ("kubeconfig", f"users:\n- name: admin\n  user:\n    client-key-data: {KEY}\n"),
        ("talosconfig", f"contexts:\n  home:\n    key: {KEY}\n"),
        ("keys.txt", "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" * 2 + "\n"),
        ("store.p12", "0\x82 any"),
    ],
)
def test_every_form_of_a_secret_is_found(folder: Path, name: str, text: str) -> None:
    stage(folder, name, text)
    assert [place.rpartition(":")[0] for place in staged(folder)] == [name]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".env.example", "DB_PASSWORD=kT7pQ2xZ9\n"),
        (".env", "DB_PASSWORD=${FROM_VAULT}\nPORT=8080\nTOKEN_FILE=/run/token\nAPI_TOKEN=\n"),
        ("empty.tfstate", ""),
        ("sealed.tfstate", '{"serial": 1, "lineage": "x", "encrypted_data": "Zm9v"}'),
        ("plan.md", "tfplan and terraform.tfstate are never committed\n"),
    ],
)
def test_what_only_looks_like_one_passes(folder: Path, name: str, text: str) -> None:
    stage(folder, name, text)
    assert staged(folder) == []


def test_a_state_for_tests_is_allowed_by_an_attribute(folder: Path) -> None:
    stage(folder, "tests/a.tfstate", STATE)
    stage(folder, "b.tfstate", STATE)
    stage(folder, ".gitattributes", "tests/*.tfstate stackyard-allow-secret\n")
    assert staged(folder) == ["b.tfstate:1"]


def test_a_state_that_is_too_large_to_be_read_is_found_by_its_name(folder: Path) -> None:
    stage(folder, "a.tfstate", "x" * (3 * 2**20))
    assert staged(folder) == ["a.tfstate:1"]


@pytest.mark.parametrize("name", ["a\nb", "it's", 'say "no"', "tab\there", "ünï ✓", "-rf"])
def test_any_name_is_read(folder: Path, name: str) -> None:
    stage(folder, name, TOKEN)
    assert staged(folder) == [f"{name}:1"]


def test_two_names_that_are_no_text_are_two_files(folder: Path) -> None:
    stage(folder, b"x\xff", TOKEN)
    stage(folder, b"x\xfe", "nothing\n")
    stage(folder, b"x\xfd", TOKEN)
    assert staged(folder) == ["x\\xfd:1", "x\\xff:1"]


def test_a_text_of_windows_is_read(folder: Path) -> None:
    (folder / "secrets.tfvars").write_bytes(CLEAR.encode("utf-16"))
    git(folder, "add", "--all")
    assert staged(folder) == ["secrets.tfvars:1"]


def test_a_file_that_is_moved_or_copied_to_a_promising_name_is_found(folder: Path) -> None:
    commit(folder, values__tfvars=CLEAR, other__tfvars=CLEAR)
    git(folder, "mv", "values.tfvars", "secrets.tfvars")
    stage(folder, "copy.secret.tfvars", CLEAR)
    assert staged(folder) == ["copy.secret.tfvars:1", "secrets.tfvars:1"]


def test_deleted_files_links_and_submodules_are_no_findings(folder: Path, tmp_path: Path) -> None:
    other = new_repository(tmp_path / "other")
    commit(other, leak=TOKEN)
    commit(folder, leak=TOKEN)
    git(folder, "rm", "-q", "leak")
    (folder / "secrets.tfvars").symlink_to("/etc/hostname")
    allowed = ("-c", "protocol.file.allow=always")
    assert git(folder, *allowed, "submodule", "add", "-q", str(other), "secrets.yaml").returncode == 0
    git(folder, "add", "--all")
    assert staged(folder) == []
    # A link that becomes a file is a new file.
    git(folder, "commit", "-qm", "link")
    (folder / "secrets.tfvars").unlink()
    stage(folder, "secrets.tfvars", CLEAR)
    assert staged(folder) == ["secrets.tfvars:1"]


def make_hooked(folder: Path) -> None:
    asyncio.run(install_check(folder, HOOK_CHECK))


def test_the_resolution_of_a_merge_is_checked(folder: Path) -> None:
    commit(folder, a="one\n")
    git(folder, "checkout", "-q", "-b", "side")
    commit(folder, a="two\n")
    git(folder, "checkout", "-q", "main")
    commit(folder, a="three\n")
    make_hooked(folder)
    assert git(folder, "merge", "side").returncode != 0
    stage(folder, "a", TOKEN)
    refused = git(folder, "commit", "-m", "merge")
    assert refused.returncode != 0
    assert "a:1" in refused.stderr
    stage(folder, "a", "four\n")
    assert git(folder, "commit", "-m", "merge").returncode == 0


def test_a_commit_of_one_file_checks_that_file_alone_in_a_worktree_with_its_own_hooks_folder(
    folder: Path, tmp_path: Path
) -> None:
    commit(folder, a="one\n", b="one\n")
    hooks = tmp_path / "my hooks"
    write_program(hooks / "pre-commit", f'echo ran >> "{tmp_path}/ran"')
    git(folder, "config", "core.hooksPath", str(hooks))
    tree = tmp_path / "a tree"
    assert git(folder, "worktree", "add", "-q", "-b", "tree", str(tree)).returncode == 0
    make_hooked(tree)
    assert (hooks / "pre-commit.before-stackyard").is_file()
    (tree / "a").write_text("two\n")
    (tree / "b").write_text(TOKEN)
    git(tree, "add", "b")
    assert git(tree, "commit", "-m", "one", "a").returncode == 0
    refused = git(tree, "commit", "-m", "other")
    assert refused.returncode != 0
    assert "b:1" in refused.stderr
    assert (tmp_path / "ran").read_text() == "ran\nran\n"


def test_a_thousand_files_are_checked_within_a_second(folder: Path) -> None:
    for number in range(1000):
        (folder / f"file {number}.yaml").write_text(f"name: web-{number}\n" * 40)
    subprocess.run(["git", "add", "--all"], cwd=folder, check=True, timeout=60)
    began = time.process_time()
    assert staged(folder) == []
    # Time of this process: others work on the same machine.
    assert time.process_time() - began < 1
