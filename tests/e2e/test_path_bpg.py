"""The real bpg/proxmox provider and a pinned endpoint: no other server gets the token."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import real_engine
from tests.support.path import Yard, make_yard, mirror_of

from stackyard import lab
from stackyard.engine.version import Flavour
from stackyard.path.environment import EnvironmentSource
from stackyard.path.provider_environment import bpg_environment

pytestmark = [pytest.mark.bpg, pytest.mark.tofu, pytest.mark.timeout(300)]

DNS: dict[str, Any] = {
    "name": "dns",
    "type": "ct",
    "vmid": 501,
    "image": "debian-13-ct",
    "cores": 1,
    "memory": 512,
    "disk": 4,
}
VERSION = """
terraform {
  required_providers { proxmox = { source = "bpg/proxmox" } }
}
data "proxmox_virtual_environment_version" "it" {}
output "release" { value = data.proxmox_virtual_environment_version.it.release }
"""


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    named = os.environ.get("STACKYARD_TEST_BPG")
    if not named:
        pytest.skip("no bpg/proxmox provider: name its binary in STACKYARD_TEST_BPG")
    engine = real_engine(Flavour.TOFU)
    settings = mirror_of(Path(named).absolute(), engine.path, tmp_path / "bpg")
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        env = {"STACKYARD_TOFU": str(engine.path), "STACKYARD_TOFU_CONFIG": str(settings)}
        made = make_yard(running, tmp_path / "site", STACKYARD_PROVIDER="bpg", **env)
        made.write_env("t", [DNS])
        yield made


def test_a_pinned_endpoint_is_verified_by_the_real_provider(yard: Yard) -> None:
    yard.run("apply", "t", "--no-verify")
    assert yard.json("plan", "t")["changes"] == []


def test_a_server_in_the_place_of_the_pinned_one_never_gets_the_token(yard: Yard, tmp_path: Path) -> None:
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / "main.tf").write_text(VERSION)

    def engine(verb: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [yard.env["STACKYARD_TOFU"], verb, "-input=false", "-no-color"],
            cwd=folder,
            env={"TF_CLI_CONFIG_FILE": yard.env["STACKYARD_TOFU_CONFIG"], "HOME": str(tmp_path), **env},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    begun = engine("init")
    assert begun.returncode == 0, begun.stdout + begun.stderr
    resolved = EnvironmentSource.find(str(yard.folder)).resolve("t", None)
    given = dict(asyncio.run(bpg_environment(resolved, folder)))
    right = engine("plan", **given)
    assert right.returncode == 0, right.stderr
    with lab.running(nodes=("pve1",)) as other:
        wrong = engine("plan", **{**given, "PROXMOX_VE_ENDPOINT": other.url})
        assert wrong.returncode == 1
        assert "failed to verify certificate" in wrong.stderr
        assert other.world.journal.count == 0


def test_the_real_provider_logs_in_as_openssh_s_settings_say(yard: Yard, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    node = yard.folder / "nodes" / "lab.yaml"
    said = [line for line in node.read_text().splitlines() if not line.startswith(("ssh_user", "ssh_port"))]
    node.write_text("\n".join(said) + "\n")
    config = home / ".ssh" / "config"
    config.write_text(f"Host 127.0.0.1\n  User root\n  Port {yard.running.ssh_port}\n")
    config.chmod(0o600)
    own = yard.with_env(HOME=str(home))
    own.write_env("t", [{"name": "web", "vmid": 500, "preset": "vm-xsmall", "image": "debian-12"}])
    # Its user data is a snippet, which the provider writes over SSH.
    own.run("apply", "t", "--no-verify")
    assert own.guests()[500]["config"]["cicustom"]
    assert own.json("plan", "t")["guard"]["warnings"] == []
    config.write_text(f"{config.read_text()}  ProxyJump bastion\n")
    own.write_env("u", [{"name": "app", "vmid": 501, "preset": "vm-xsmall", "image": "debian-12"}])
    (warning,) = own.json("plan", "u")["guard"]["warnings"]
    assert warning["code"] == "W-PROVIDER-SSH"
    assert (warning["where"]["file"], "`ProxyJump`" in warning["detail"]) == ("envs/u.yaml", True)
    builtin = own.with_env(STACKYARD_PROVIDER="builtin")
    assert builtin.json("plan", "u")["guard"]["warnings"] == []
