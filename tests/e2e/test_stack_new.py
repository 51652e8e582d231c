"""New stacks on a lab: they keep every rule, are planned at once, and are never half made."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.stack_repo import StackRepo, make_repo

from stackyard import lab
from stackyard.recipes.catalogue import list_recipes

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(120)]

STACKS = "tofu/stacks"
# Providers of these come from a registry, which a test does not ask.
OTHERS = {"aws": "hashicorp/aws", "oci": "oracle/oci", "talos": "siderolabs/talos"}


@pytest.fixture
def repo(tmp_path: Path) -> StackRepo:
    """Return a repository of a user who has neither a password nor a key."""
    home = tmp_path / "home"
    home.mkdir()
    return make_repo(tmp_path / "repo", {}, env={"HOME": str(home)})


def use_lab(repo: StackRepo, running: lab.Running) -> None:
    repo.env |= {
        "PROXMOX_VE_ENDPOINT": running.url,
        "PROXMOX_VE_API_TOKEN": running.api_token,
        "PROXMOX_VE_INSECURE": "true",
    }


def test_a_new_stack_keeps_every_rule_and_is_planned_and_copied(repo: StackRepo) -> None:
    with lab.running(nodes=("alpha", "beta")) as running:
        use_lab(repo, running)
        made = repo.json("stack", "new", "onprem/server_a", "--from", "proxmox")
        assert made["hook"]
        assert made["notes"] == ["The guests are on alpha, of the nodes alpha, beta: see vms.tfvars."]
        assert made["backend"]["type"] == "http"
        repo.run("stack", "new", "onprem/nothing", "--from", "empty")
        repo.commit("two stacks")
        assert repo.json("policy", "check")["findings"] == []
        planned = repo.actions("stack:onprem/server_a")
        assert set(planned.values()) == {"create"}
        assert 'module.vm["web-1"].proxmox_virtual_environment_vm.this' in planned
        repo.run("plan", "stack:onprem/nothing")
        made = repo.json("stack", "new", "onprem/server_b", "--from", "onprem/server_a")
        # The guests of the other one are in the data, and each would manage them.
        assert {one["code"] for one in made["findings"]} == {"W-STACK-SAME-GUEST"}
        repo.commit("a copy")
        assert repo.json("policy", "check")["findings"] == []
        warned = repo.run("plan", "stack:onprem/server_b").stderr
        assert "is also in the stack `onprem/server_a`" in warned
        assert f"{STACKS}/onprem/server_b/vms.tfvars:" in warned


def test_every_recipe_keeps_the_rules_but_for_providers_that_no_registry_was_asked_for(
    repo: StackRepo,
) -> None:
    for name in list_recipes():
        made = repo.json("stack", "new", f"all/{name}", "--from", name)
        assert bool(made["lock"]["missing"]) is (name not in ("proxmox", "empty")), made["lock"]
    repo.commit("all recipes")
    found = repo.json("policy", "check", status=1)["findings"]
    assert {one["rule"] for one in found} == {"M3"}
    assert all("not in the lock file" in one["detail"] for one in found), found
    assert {one["where"]["file"].split("/")[3] for one in found} == {*list_recipes()} - {"proxmox", "empty"}


def test_the_recipe_of_copying_by_hand_is_caught_where_people_forget(repo: StackRepo) -> None:
    repo.run("stack", "new", "onprem/server_a", "--from", "empty")
    folder = repo.root / STACKS / "onprem"
    key = 'terraform {\n  backend "local" {\n    path = "../server_a.tfstate"\n  }\n}\n'
    name = 'locals {\n  stack = "server_a"\n}\n'
    (folder / "server_a/backend.tf").write_text(key)
    (folder / "server_a/name.tf").write_text(name)
    repo.commit("a stack")
    shutil.copytree(folder / "server_a", folder / "server_b")
    refused = repo.json("plan", "stack:onprem/server_b", status=65)["error"]
    assert "server_b/backend.tf:3, which is not committed yet" in refused["diagnostics"][0]["detail"]
    (folder / "server_b/backend.tf").write_text(key.replace("server_a", "server_b"))
    warned = repo.run("plan", "stack:onprem/server_b").stderr
    assert f'({STACKS}/onprem/server_b/name.tf:2) is "server_a"' in warned
    (folder / "server_b/name.tf").write_text(name.replace("server_a", "server_b"))
    assert "server_a" not in repo.run("plan", "stack:onprem/server_b").stderr


_KILLED = """
import os, signal, sys
from stackyard.cli.main import main
from stackyard.recipes import new_stack

name, count = sys.argv[1], [int(sys.argv[2])]
real = getattr(new_stack, name)

def killed(*given, **more):
    count[0] -= 1
    if count[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*given, **more)

setattr(new_stack, name, killed)
main(sys.argv[3:])
"""


@pytest.mark.parametrize(("step", "count"), [("write_tree", 4), ("move_folder", 2)])
def test_a_command_that_is_killed_leaves_no_half_stack_and_can_be_repeated(
    repo: StackRepo, step: str, count: int
) -> None:
    words = ("stack", "new", "onprem/a", "--from", "proxmox")
    ended = subprocess.run(
        [sys.executable, "-c", _KILLED, step, str(count), *words],
        cwd=repo.root,
        env={**os.environ, **repo.env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert not (repo.root / STACKS).exists()
    modules = repo.root / "tofu/modules"
    present = sorted(one.name for one in modules.iterdir()) if modules.is_dir() else []
    assert len(present) == (0 if step == "write_tree" else count)
    assert all((modules / one / "README.md").is_file() for one in present), "a module is half made"
    assert ".stackyard-new" not in repo.git("status", "--porcelain", "-uall")
    made = repo.json(*words)
    assert sorted(one["name"] for one in made["modules"] if one["status"] == "kept") == present
    assert not list(repo.root.glob(".stackyard-new-*"))


def test_the_hook_is_left_out_when_asked_and_outside_of_git(repo: StackRepo, tmp_path: Path) -> None:
    assert repo.json("stack", "new", "a", "--from", "empty", "--no-hook")["hook"] is None
    assert not (repo.root / ".git/hooks/pre-commit").exists()
    outside = StackRepo(root=tmp_path / "outside", env=repo.env)
    outside.root.mkdir()
    ended = outside.run("stack", "new", "a", "--from", "empty")
    assert "is not in a git repository" in ended.stdout
    inside = repo.json("init", "site", "--no-hook")
    assert inside["hook"] is None
    assert repo.json("init", "other")["hook"] == str(repo.root / ".git/hooks/pre-commit")
    hooks = tmp_path / "hooks for all"
    (tmp_path / "home/.gitconfig").write_text(f'[core]\n\thooksPath = "{hooks}"\n')
    ended = repo.run("stack", "new", "c", "--from", "empty")
    assert f"share the hooks in {hooks}" in ended.stdout
    assert not hooks.exists()
    refused = repo.run("stack", "new", "b", "--from", "empty", "--copy-secrets", status=64)
    assert "--copy-secrets" in refused.stderr
