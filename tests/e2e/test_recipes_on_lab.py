"""A stack from the Proxmox recipe makes a VM and a container, with either provider."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.path import mirror_of
from tests.support.provider import bpg_binary, lab_table, require_bpg
from tests.support.recipes import STACK, make_recipe_repo
from tests.support.stack_repo import StackRepo

from stackyard import lab
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(120)]

_TARGET = f"stack:{STACK}"
_FILES = "debian-13.qcow2,debian-13-standard_13.1-2_amd64.tar.zst"


def _apply_and_destroy(repo: StackRepo, running: lab.Running, *options: str) -> None:
    assert repo.json("apply", _TARGET, *options)["applied"] == {"add": 4, "change": 0, "remove": 0}
    guests = {int(key): one for key, one in lab_table(running, "guests").items()}
    assert {key: one["status"] for key, one in guests.items()} == {1001: "running", 1002: "running"}
    config = guests[1001]["config"]
    assert config["machine"] == "q35"
    assert config["bios"] == "ovmf"
    repo.run("plan", _TARGET, "--detailed-exitcode", *options)
    repo.run("destroy", _TARGET, "--allow-destroy", f"web-1,dns-1,{_FILES}", *options)
    assert lab_table(running, "guests") == {}


def test_a_vm_and_a_container_of_the_recipe_are_applied_unchanged_and_destroyed(tmp_path: Path) -> None:
    with lab.running() as running:
        repo = make_recipe_repo(tmp_path / "repo", running)
        _apply_and_destroy(repo, running)


def test_the_recipe_does_the_same_with_bpg(tmp_path: Path) -> None:
    require_bpg()
    binary = bpg_binary()
    assert binary is not None
    with lab.running() as running:
        repo = make_recipe_repo(tmp_path / "repo", running)
        mirror = mirror_of(binary, real_engine(Flavour.TOFU).path, tmp_path / "mirror")
        repo.env |= {"STACKYARD_TOFU_CONFIG": str(mirror)}
        _apply_and_destroy(repo, running, "--provider", "bpg")
