"""From cluster.yaml and nodes.yaml to nodes in maintenance mode, as the documentation of clusters has it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster_repo import ClusterRepo, cluster_on_lab
from tests.support.lab import proxmoxer_client
from tests.support.path import provider_settings
from tests.support.stack_repo import make_repo

from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

VMS = {
    'proxmox_virtual_environment_vm.talos_node["k8s-0"]',
    'proxmox_virtual_environment_vm.talos_node["k8s-1"]',
}


@pytest.fixture(
    params=[
        pytest.param(("builtin", Flavour.TOFU), id="builtin"),
        pytest.param(("bpg", Flavour.TOFU), marks=pytest.mark.bpg, id="bpg"),
        pytest.param(("builtin", Flavour.TERRAFORM), marks=pytest.mark.terraform, id="terraform"),
        pytest.param(
            ("bpg", Flavour.TERRAFORM), marks=[pytest.mark.terraform, pytest.mark.bpg], id="terraform-bpg"
        ),
    ]
)
def repo(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ClusterRepo]:
    with cluster_on_lab(tmp_path, *request.param) as made:
        yield made


def test_the_documented_flow_ends_with_nodes_in_maintenance_mode(repo: ClusterRepo) -> None:
    repo.run("cluster", "validate")
    assert "infrastructure/tofu/main.tf" in repo.json("cluster", "configure")["written"]
    assert repo.json("cluster", "configure")["written"] == []
    repo.run("infra", "fmt-check")
    repo.run("infra", "validate")
    repo.run("infra", "plan", "-detailed-exitcode", status=2)
    applied = repo.json("infra", "apply")
    assert applied["applied"] == {"add": 4, "change": 0, "remove": 0}
    verified = repo.json("infra", "verify-nodes")
    assert [(one["name"], one["stage"], one["has_install_disk"]) for one in verified["nodes"]] == [
        ("k8s-0", "maintenance", True),
        ("k8s-1", "maintenance", True),
    ]
    # The target is the same code and the same state.
    assert repo.actions("cluster:home") == {}
    assert repo.json("drift", "home")["has_drift"] is False
    listed = repo.json("infra", "state-list")["stdout"].split()
    assert set(listed) >= VMS
    other = "bpg" if repo.env["STACKYARD_PROVIDER"] == "builtin" else "builtin"
    if other == "builtin":
        assert repo.actions("cluster:home", "--provider", other) == {}
    repo.run("infra", "plan", "-detailed-exitcode")


def test_a_newer_version_exchanges_the_discs_of_running_nodes_without_a_permit(repo: ClusterRepo) -> None:
    repo.run("cluster", "configure")
    repo.run("infra", "apply-auto")
    repo.describe(talos_version="1.12.2")
    stale = repo.json("plan", "home", status=65)["error"]
    assert stale["code"] == "E-CLUSTER-STALE"
    # What is there can be looked at all the same.
    assert "talos_node" in repo.json("infra", "state-list")["stdout"]
    assert repo.json("cluster", "configure")["written"] == ["infrastructure/tofu/terraform.tfvars"]
    repo.run("infra", "apply-auto")
    api = proxmoxer_client(repo.running)
    for node, vm_id in (("pve1", 101), ("pve2", 102)):
        files = [row["volid"] for row in api.nodes(node).storage("local").content.get(content="iso")]
        assert len(files) == 1
        assert api.nodes(node).qemu(vm_id).config.get()["ide2"].startswith(files[0])
        assert "1.12.2" in files[0]
    assert repo.actions("home") == {}


@pytest.fixture
def configured(tmp_path: Path) -> Iterator[ClusterRepo]:
    with cluster_on_lab(tmp_path) as made:
        made.run("cluster", "configure")
        yield made


def test_a_change_by_hand_is_drift_and_is_put_right(configured: ClusterRepo) -> None:
    configured.run("apply", "home", "--yes")
    proxmoxer_client(configured.running).nodes("pve1").qemu(101).config.put(tags="mine")
    found = configured.json("drift", "home")
    assert [change["address"] for change in found["managed"]] == [
        'proxmox_virtual_environment_vm.talos_node["k8s-0"]'
    ]
    configured.run("apply", "home", "--yes")
    assert configured.json("drift", "home")["has_drift"] is False


def test_an_id_that_another_guest_has_is_refused_with_the_line_of_the_node(configured: ClusterRepo) -> None:
    proxmoxer_client(configured.running).nodes("pve1").qemu.post(vmid=101, name="stranger")
    refused = configured.json("plan", "home", status=3)["guard"]["refused"]
    assert [(one["code"], one["where"]["file"].rpartition("/")[2]) for one in refused] == [
        ("E-GUARD-UNMANAGED-GUEST", "nodes.yaml")
    ]
    error = configured.json("apply", "home", "--yes", status=1)["error"]
    assert error["code"] == "E-GUARD-REFUSED"


def test_nodes_that_the_token_cannot_make_are_refused_before_anything_is_made(
    configured: ClusterRepo,
) -> None:
    api = proxmoxer_client(configured.running)
    api.access.users.post(userid="weak@pve")
    secret = api.access.users("weak@pve").token("plan").post(privsep=0)["value"]
    api.access.acl.put(path="/", users="weak@pve", roles="PVEAuditor")
    configured.describe(proxmox_api_token_id="weak@pve!plan", proxmox_api_token_secret=secret)
    configured.run("cluster", "configure")
    refused = configured.run("plan", "home", status=3).stdout
    assert "VM.Allocate" in refused
    assert secret not in refused


def test_a_cluster_is_destroyed_by_the_names_of_its_nodes(configured: ClusterRepo) -> None:
    configured.run("apply", "home", "--yes")
    refused = configured.json("infra", "destroy", status=1)["error"]
    assert refused["code"] == "E-GUARD-REFUSED"
    assert "--allow-destroy" in refused["remedy"]
    configured.run("infra", "destroy", "--allow-destroy", "k8s-0,k8s-1")
    assert proxmoxer_client(configured.running).cluster.resources.get(type="vm") == []


def test_a_saved_plan_is_applied_with_the_arguments_that_the_original_took(configured: ClusterRepo) -> None:
    planned = configured.run("infra", "plan")
    # The code keeps the name of a resource that states of the original have; the user cannot change it.
    assert "newer name" not in planned.stdout + planned.stderr
    refused = configured.json("infra", "apply", "-parallelism=many", status=64)["error"]
    assert "-parallelism=10" in refused["detail"]
    refused = configured.json("infra", "apply", "-lock=false", status=64)["error"]
    assert refused["code"] == "E-STACK-ARGUMENT"
    configured.run("infra", "apply", "-auto-approve", "-parallelism=2", "--no-verify")
    configured.run("infra", "apply-auto", "-auto-approve", "-parallelism", "2", "--no-verify")
    assert configured.actions("home") == {}


def test_a_missing_age_key_stops_before_anything_is_made(configured: ClusterRepo) -> None:
    (configured.root / "age.key").unlink()
    refused = configured.json("apply", "home", "--yes", status=None)["error"]
    assert refused["code"] == "E-SECRETS-LOCKED"
    assert proxmoxer_client(configured.running).cluster.resources.get(type="vm") == []


def test_a_state_is_encrypted_by_an_apply_that_changes_nothing_else(configured: ClusterRepo) -> None:
    configured.run("infra", "apply-auto")
    passphrase: dict[str, Any] = {"state_encryption_passphrase": "sixteen-or-more-characters"}

    def refuse(code: str, **changes: Any) -> str:
        configured.describe(**{**passphrase, **changes})
        configured.run("cluster", "configure")
        refused = configured.json("plan", "cluster:home", status=1)["error"]
        assert refused["code"] == code
        return str(refused["remedy"])

    assert "state_encryption_passphrase_previous: none" in refuse("E-STATE-IN-CLEAR")
    configured.describe(**passphrase, state_encryption_passphrase_previous="none")
    configured.run("cluster", "configure")
    configured.run("infra", "apply-auto")
    wrong = {"state_encryption_passphrase": "another-one-of-some-length"}
    assert "state_encryption_passphrase_previous" in refuse("E-STATE-PASSPHRASE", **wrong)
    assert "state_encryption_passphrase" in refuse("E-STATE-PASSPHRASE", state_encryption_passphrase=None)
    # Without the previous way, only an encrypted state can be read.
    configured.describe(**passphrase)
    configured.run("cluster", "configure")
    assert configured.actions("home") == {}


def test_a_cluster_of_machines_needs_no_credentials(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "metal", {}, env=provider_settings("builtin", tmp_path))
    repo.run("cluster", "init", "--bare-metal")
    repo.run("cluster", "configure")
    assert repo.actions("cluster:kubernetes") == {}
    # Programs read what the engine writes; colours and warnings are not among it.
    assert repo.run("infra", "output", "-json").stdout == "{}\n"
    assert repo.json("infra", "validate")["stdout"] == "Success! The configuration is valid.\n"


def test_an_id_that_is_taken_after_the_plan_is_refused_and_nothing_is_made(configured: ClusterRepo) -> None:
    configured.run("infra", "plan")
    api = proxmoxer_client(configured.running)
    api.nodes("pve1").qemu.post(vmid=101, name="stranger")
    refused = configured.json("infra", "apply", status=1)["error"]
    assert refused["code"] == "E-GUARD-REFUSED"
    assert [one["name"] for one in api.cluster.resources.get(type="vm")] == ["stranger"]


def test_a_node_that_does_not_run_is_named_with_the_reason(configured: ClusterRepo) -> None:
    configured.run("apply", "home", "--yes")
    proxmoxer_client(configured.running).nodes("pve2").qemu(102).status.stop.post()
    found = configured.json("infra", "verify-nodes", status=1)["nodes"]
    assert [(one["name"], one["stage"]) for one in found] == [
        ("k8s-0", "maintenance"),
        ("k8s-1", "unreachable"),
    ]
    assert f"{configured.network}.1.11" in found[1]["reason"]
