"""Firewall options that a file leaves out stay as Proxmox has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.lab import proxmoxer_client
from tests.support.path import Yard, make_yard, provider_settings

from stackyard import lab
from stackyard.provider.resources.firewall import node_firewall

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]


@pytest.fixture(params=["builtin", pytest.param("bpg", marks=pytest.mark.bpg)])
def yard(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Yard]:
    """A site for a lab of one node."""
    env = provider_settings(request.param, tmp_path)
    with lab.running(nodes=("pve1",), data=tmp_path / "lab") as running:
        yield make_yard(running, tmp_path / "site", **env)


def write(yard: Yard, name: str, document: dict[str, Any]) -> None:
    """Write a file of `hypervisors/`."""
    (yard.folder / "hypervisors").mkdir(exist_ok=True)
    (yard.folder / "hypervisors" / f"{name}.yaml").write_text(yaml.safe_dump(document))


def differences(yard: Yard, target: str) -> dict[str, tuple[Any, Any]]:
    """Return what the plan of the options shows; it changes nothing else."""
    (change,) = yard.json("plan", target)["changes"]
    assert change["action"] == "update"
    return {one["attribute"]: (one["before"], one["after"]) for one in change["differences"]}


def expected(yard: Yard, plain: dict[str, tuple[Any, Any]], unset: dict[str, Any]) -> dict[str, Any]:
    """Return what a plan should show.

    bpg/proxmox reads null for an option that Proxmox does by itself, where the built-in provider reads what
    Proxmox does. So its first plan also writes each of those as it is.
    """
    if yard.env["STACKYARD_PROVIDER"] != "bpg":
        return plain
    said = {name: (None if name in unset else before, after) for name, (before, after) in plain.items()}
    return {name: (None, value) for name, value in unset.items()} | said


def test_options_that_are_left_out_stay_and_the_plan_shows_what_changes(yard: Yard) -> None:
    api = proxmoxer_client(yard.running)
    limit = "enable=1,burst=9,rate=2/minute"
    api.cluster.firewall.rules.post(type="in", action="ACCEPT", macro="SSH", enable=1)
    api.cluster.firewall.rules.post(type="in", action="ACCEPT", proto="tcp", dport="8006", enable=1)
    api.cluster.firewall.options.put(enable=1, policy_in="REJECT", ebtables=0, log_ratelimit=limit)
    write(yard, "home", {"api": "lab", "firewall": {"options": {"output_policy": "DROP"}}})
    permits = ("--allow-lockout", "pve1")
    unset = {"forward_policy": "ACCEPT", "output_policy": "ACCEPT"}
    assert differences(yard, "hypervisor:home") == expected(
        yard, {"output_policy": ("ACCEPT", "DROP")}, unset
    )
    yard.run("apply", "hypervisor:home", *permits)
    found = api.cluster.firewall.options.get()
    assert found.get("policy_forward", "ACCEPT") == "ACCEPT"
    assert found["policy_out"] == "DROP"
    assert (int(found["enable"]), found["policy_in"], int(found["ebtables"])) == (1, "REJECT", 0)
    assert "burst=9" in found["log_ratelimit"]
    assert yard.json("plan", "hypervisor:home")["has_changes"] is False

    # Whoever turns it off keeps it off, unless the file says `enabled`.
    api.cluster.firewall.options.put(enable=0)
    assert yard.json("plan", "hypervisor:home")["has_changes"] is False

    node = api.nodes("pve1").firewall.options
    node.put(enable=0)
    write(yard, "n1", {"node": "pve1", "firewall": {"options": {"nosmurfs": False}}})
    alone = dict(node_firewall.SETTINGS.attributes({}, node.get()))
    assert not alone.pop("enabled")
    assert differences(yard, "hypervisor:n1") == expected(yard, {"nosmurfs": (True, False)}, alone)
    yard.run("apply", "hypervisor:n1")
    found = node.get()
    assert (int(found["enable"]), int(found["nosmurfs"])) == (0, 0)
    kept = {**alone, "enabled": False, "nosmurfs": False}
    assert node_firewall.SETTINGS.attributes({}, found) == kept
    assert yard.json("drift", "hypervisor:n1")["has_drift"] is False


def test_an_import_writes_all_options_so_that_each_is_watched(yard: Yard) -> None:
    api = proxmoxer_client(yard.running)
    api.cluster.firewall.options.put(enable=1)
    yard.run("import", "hypervisor:home", "-H", "lab", "--leave", "storages")
    written = yaml.safe_load((yard.folder / "hypervisors" / "home.yaml").read_text())
    assert written["firewall"]["options"]["input_policy"] == "DROP"
    api.cluster.firewall.options.put(policy_in="ACCEPT")
    assert yard.json("drift", "hypervisor:home")["has_drift"] is True


def test_options_of_the_cluster_that_a_file_leaves_out_stay(yard: Yard) -> None:
    api = proxmoxer_client(yard.running)
    api.cluster.options.put(console="vv", migration="type=secure,network=10.31.0.0/16", bwlimit="clone=100")
    write(yard, "home", {"api": "lab", "options": {"keyboard": "de", "bandwidth_limit_move": 50}})
    shown = differences(yard, "hypervisor:home")
    # What Proxmox chooses itself is known after the apply.
    assert {name: one for name, one in shown.items() if name != "crs_ha"} == {
        "bandwidth_limit_move": (None, 50),
        "keyboard": (None, "de"),
    }
    yard.run("apply", "hypervisor:home")
    assert yard.json("plan", "hypervisor:home")["has_changes"] is False
    # What somebody sets besides is nobody's here.
    api.cluster.options.put(console="html5")
    assert yard.json("plan", "hypervisor:home")["has_changes"] is False
    found = api.cluster.options.get()
    assert (found["keyboard"], found["console"], found["migration"]["type"]) == ("de", "html5", "secure")
    assert sorted(found["bwlimit"].split(",")) == ["clone=100", "move=50"]
