"""The state of a cluster: encrypted, with another passphrase, and in clear again, by the generated code."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.resolved_clusters import make_cluster

from stackyard.engine.version import Flavour
from stackyard.path.clusters.initialise import engine_secrets
from stackyard.render.cluster import render_infrastructure
from stackyard.render.cluster.values import collect_secrets

FIRST, SECOND = "the-first-passphrase", "the-second-passphrase"
NEW, PREVIOUS = "state_encryption_passphrase", "state_encryption_passphrase_previous"
OWN = 'resource "terraform_data" "own" {\n  input = "a value"\n}\n'


def run(
    flavour: Flavour, folder: Path, *args: str, secrets: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run an engine in the folder that these secrets give, with its state in a file."""
    cluster = make_cluster(folder, proxmox=None, nodes=[], state=None, secrets=secrets)
    for name, data in render_infrastructure(cluster).items():
        # No provider is needed without VMs.
        if name.startswith("tofu/") and name != "tofu/versions.tf":
            text = data.decode().replace('  backend "http" {}\n', "")
            (folder / name.removeprefix("tofu/")).write_text(text)
    (folder / "own.tf").write_text(OWN)
    base = {"PATH": os.environ["PATH"], "HOME": str(folder), "TF_CLI_CONFIG_FILE": os.devnull}
    env = {**base, **engine_secrets(collect_secrets(cluster))}
    program = real_engine(flavour).path
    return subprocess.run([program, *args], cwd=folder, env=env, capture_output=True, text=True, check=False)


def apply(folder: Path, **secrets: str) -> str:
    """Apply; return the state as it is in the file."""
    done = run(Flavour.TOFU, folder, "apply", "-auto-approve", secrets=secrets)
    assert done.returncode == 0, done.stdout + done.stderr
    return (folder / "terraform.tfstate").read_text()


def plan(folder: Path, **secrets: str) -> int:
    return run(Flavour.TOFU, folder, "plan", "-detailed-exitcode", secrets=secrets).returncode


@pytest.mark.tofu
@pytest.mark.timeout(120)
def test_a_state_is_encrypted_gets_another_passphrase_and_is_decrypted(tmp_path: Path) -> None:
    run(Flavour.TOFU, tmp_path, "init", secrets={})
    assert "a value" in apply(tmp_path)
    assert plan(tmp_path, **{NEW: FIRST}) == 1
    encrypted = apply(tmp_path, **{NEW: FIRST, PREVIOUS: "none"})
    assert "a value" not in encrypted
    assert plan(tmp_path, **{NEW: FIRST}) == 0
    assert apply(tmp_path, **{NEW: SECOND, PREVIOUS: FIRST}) != encrypted
    assert plan(tmp_path, **{NEW: FIRST}) == 1
    assert "a value" in apply(tmp_path, **{PREVIOUS: SECOND})
    assert plan(tmp_path) == 0


@pytest.mark.terraform
@pytest.mark.timeout(60)
def test_terraform_stops_before_it_writes_a_state_in_clear(tmp_path: Path) -> None:
    done = run(Flavour.TERRAFORM, tmp_path, "init", "-no-color", secrets={NEW: FIRST})
    assert done.returncode == 1
    assert '"encryption" are not expected' in done.stderr
