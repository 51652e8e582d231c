"""The layer below all guests: one command applies it; what is changed by hand is found and put right."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.lab import proxmoxer_client
from tests.support.pages import ROOT
from tests.support.path import Yard, make_yard, provider_settings

from stackyard import lab

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

EXAMPLE = ROOT / "examples" / "hypervisors"
TARGETS = ("hypervisor:home", "hypervisor:pve1", "hypervisor:pve2")
PERMIT = ("--yes", "--allow-network-reload", "pve1,pve2")


@pytest.fixture(params=["builtin", pytest.param("bpg", marks=pytest.mark.bpg)])
def yard(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Yard]:
    """The example of hypervisors, and a lab of its two nodes."""
    env = provider_settings(request.param, tmp_path)
    with lab.running(nodes=("pve1", "pve2"), data=tmp_path / "lab") as running:
        made = make_yard(running, tmp_path / "site", **env)
        shutil.rmtree(made.folder / "envs")
        shutil.copytree(EXAMPLE / "hypervisors", made.folder / "hypervisors", dirs_exist_ok=True)
        yield made


def test_one_command_applies_a_cluster_and_its_nodes_and_puts_right_what_was_changed(yard: Yard) -> None:
    yard.run("apply", "hypervisor:home", "--all", *PERMIT)
    for target in TARGETS:
        assert yard.json("plan", target)["has_changes"] is False, target
    api = proxmoxer_client(yard.running)
    api.storage("nas").put(content="iso")
    api.access.users("ben@pve").put(comment="by hand")
    api.cluster.firewall.options.put(policy_in="ACCEPT")
    api.cluster.backup("nightly").put(schedule="04:00")
    api.nodes("pve2").dns.put(search="other.example", dns1="9.9.9.9")
    yard.run("drift", "hypervisor:home", "--detailed-exitcode", status=2)
    yard.run("drift", "hypervisor:pve2", "--detailed-exitcode", status=2)
    yard.run("drift", "hypervisor:pve1", "--detailed-exitcode")
    found = yard.json("drift", "hypervisor:home", "--all", "--detailed-exitcode", status=2)
    assert [one["target"] for one in found["targets"]] == list(TARGETS)
    yard.run("apply", "hypervisor:home", "--all", *PERMIT)
    yard.run("drift", "hypervisor:home", "--all", "--detailed-exitcode")
    yard.run("plan", "hypervisor:home", "--all", "--detailed-exitcode")
    assert api.storage("nas").get()["content"].split(",") != ["iso"]
    assert api.cluster.firewall.options.get()["policy_in"] == "DROP"
    assert "comment" not in api.access.users("ben@pve").get()
