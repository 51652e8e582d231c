"""The inventory as users and Ansible meet it: published by apply, read by the real ansible-inventory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import real_engine
from tests.support.path import Yard, make_yard

from stackyard import lab
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

BIN = Path(sys.executable).parent
WEB: dict[str, Any] = {
    "name": "web",
    "vmid": 500,
    "preset": "vm-xsmall",
    "image": "debian-12",
    "tags": ["app_shop", "on-call"],
}
DNS: dict[str, Any] = {
    "name": "dns",
    "type": "ct",
    "vmid": 501,
    "image": "debian-13-ct",
    "cores": 1,
    "memory": 512,
    "disk": 4,
}


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    engine = real_engine(Flavour.TOFU)
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        made = make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(engine.path))
        made.write_env("t", [WEB, DNS])
        yield made


def ansible(yard: Yard, source: str) -> dict[str, Any]:
    env = {**os.environ, **yard.env, "PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(yard.folder)}
    ended = subprocess.run(
        [str(BIN / "ansible-inventory"), "-i", source, "--list"],
        cwd=yard.folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "WARNING" not in ended.stderr, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def test_apply_publishes_what_ansible_reads(yard: Yard) -> None:
    applied = yard.json("apply", "t")
    where = applied["inventory"]["where"]
    found = ansible(yard, where)
    addresses = {guest["name"]: guest["addresses"] for guest in applied["guests"]}
    assert found["_meta"]["hostvars"]["web"]["ansible_host"] in addresses["web"]
    assert found["shop"]["hosts"] == found["on_call"]["hosts"] == ["web"]
    assert found["containers"]["hosts"] == ["dns"]
    yard.run("inventory", "script", "t", "--out", "inventory.sh")
    assert ansible(yard, "inventory.sh")["_meta"] == found["_meta"]
    shown = yard.json("inventory", "show", "t")
    assert shown["freshness"] == "current"
    document = Path(where).parent / "ansible_inventory.json"
    assert yard.json("inventory", "validate", str(document))["guests"] == 2


def test_an_input_that_was_not_applied_yet_is_owed_and_cannot_be_published(yard: Yard) -> None:
    yard.run("apply", "t")
    yard.write_env("t", [WEB, DNS, {**WEB, "name": "more", "vmid": 502}])
    assert yard.json("inventory", "show", "t")["freshness"] == "apply owed"
    error = yard.json("inventory", "publish", "t", status=65)["error"]
    assert error["code"] == "E-INVENTORY-INCOMPLETE"
    assert [found["code"] for found in error["diagnostics"]] == ["E-INVENTORY-MISSING"]
    assert "more" not in yard.json("inventory", "show", "t")["inventory"]["vms"]
    yard.run("apply", "t")
    assert yard.json("inventory", "show", "t")["freshness"] == "current"


def test_before_the_first_apply_there_is_no_inventory_and_one_is_told_so(yard: Yard) -> None:
    error = yard.json("inventory", "show", "t", status=65)["error"]
    assert "No inventory of t was published" in error["detail"]
    assert yard.json("inventory", "render", "t", status=65)["error"]["code"] == "E-INVENTORY-INCOMPLETE"
