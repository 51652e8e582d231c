"""`cluster up` where something is wrong: it says what, sends no secret to the wrong place, and continues."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster_network import NETWORK_FILES
from tests.support.cluster_repo import ClusterRepo, cluster_on_lab
from tests.support.forking import Forked, fork_program
from tests.support.lab import proxmoxer_client

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[ClusterRepo]:
    with cluster_on_lab(tmp_path) as made:
        made.write(NETWORK_FILES)
        yield made


def codes(ended: dict[str, Any]) -> set[str]:
    return {found["code"] for found in ended["error"]["diagnostics"]}


def outcomes(ended: dict[str, Any]) -> dict[str, str]:
    return {row["step"]: row["outcome"] for row in ended["steps"]}


def test_a_control_plane_node_that_never_comes_is_named_and_etcd_waits_for_it(repo: ClusterRepo) -> None:
    nodes = [repo.node(number, controller=True, proxmox_node="pve1") for number in range(3)]
    repo.describe(nodes=nodes)
    repo.add_fault("never-boots", 103)
    failed = repo.json("cluster", "up", "--yes", "--node-wait", "3", status=1)
    ended = outcomes(failed)
    steps = ("configure k8s-0", "configure k8s-1", "configure k8s-2", "etcd")
    assert [ended[step] for step in steps] == ["done", "done", "failed", "skipped"]
    assert "E-BOOTSTRAP-UNKNOWN" in codes(failed)
    assert "k8s-2" in failed["error"]["detail"]
    assert repo.list_etcds() == []
    shown = repo.run("cluster", "up", "--yes", "--node-wait", "1", status=1)
    assert "configure k8s-2" in shown.stdout
    assert "E-BOOTSTRAP-UNKNOWN" in shown.stdout
    repo.remove_fault("never-boots", 103)
    assert "failed" not in outcomes(repo.json("cluster", "up", "--yes")).values()
    assert len(repo.list_etcds()) == 1


def test_an_address_that_is_taken_stops_before_etcd_is_formed(repo: ClusterRepo) -> None:
    with socket.create_server((f"{repo.network}.0.10", 6443)):
        failed = repo.json("cluster", "up", "--yes", status=1)
    assert codes(failed) == {"E-CLUSTER-ADDRESS-TAKEN"}
    assert repo.list_etcds() == []
    repo.json("cluster", "up", "--yes")
    assert len(repo.list_etcds()) == 1


def test_nodes_of_another_cluster_are_left_alone(repo: ClusterRepo) -> None:
    repo.run("cluster", "up", "--yes")
    secrets = repo.root / "talos/talsecret.sops.yaml"
    kept = secrets.read_text()
    secrets.unlink()
    failed = repo.json("cluster", "up", "--yes", "--new-etcd", "home", "--node-wait", "2", status=1)
    assert "E-CLUSTER-FOREIGN-NODE" in codes(failed)
    secrets.write_text(kept)
    assert repo.json("cluster", "up", "--yes")["has_changes"] is False


def test_a_wrong_install_disk_is_said_with_the_disks_that_there_are(repo: ClusterRepo) -> None:
    repo.describe(nodes=[repo.node(0, disk="/dev/nvme0n1"), repo.node(1)])
    failed = repo.json("cluster", "up", "--yes", "--node-wait", "5", status=1)
    assert "E-CLUSTER-INSTALL-DISK" in codes(failed)
    assert "/dev/sda" in failed["error"]["detail"]
    repo.describe()
    repo.json("cluster", "up", "--yes")


def test_nodes_that_were_all_rebuilt_form_no_empty_cluster_by_themselves(repo: ClusterRepo) -> None:
    repo.run("cluster", "up", "--yes")
    repo.run("infra", "destroy", "--yes", "--allow-destroy", "k8s-0,k8s-1")
    failed = repo.json("cluster", "up", "--yes", "--node-wait", "60", status=1)
    assert "E-ETCD-LOST" in codes(failed)
    assert len(repo.list_etcds()) == 1
    refused = repo.json("cluster", "up", "--yes", "--new-etcd", "other", status=None)
    assert refused["error"]["code"] == "E-USAGE"
    ended = repo.json("cluster", "up", "--yes", "--new-etcd", "home")
    assert outcomes(ended)["etcd"] == "done"
    assert len(repo.list_etcds()) == 2


def test_vms_that_are_changed_are_changes(repo: ClusterRepo) -> None:
    repo.run("cluster", "up", "--yes")
    repo.describe(nodes=[repo.node(0), repo.node(1, vm_startup_order=7)])
    ended = repo.json("cluster", "up", "--yes")
    assert outcomes(ended)["vms"] == "done"
    assert ended["has_changes"] is True


def test_of_two_runs_at_once_the_second_waits_and_finds_nothing_to_do(repo: ClusterRepo) -> None:
    runs = [_start(repo) for _ in range(2)]
    assert [run.wait() for run in runs] == [0, 0]
    assert len(repo.list_etcds()) == 1
    assert repo.json("cluster", "up", "--yes")["has_changes"] is False
    holder = _start(repo)
    refused = repo.json("cluster", "up", "--yes", "--lock-wait", "0", status=None)
    holder.wait()
    if "error" in refused:
        assert refused["error"]["code"] == "E-CLUSTER-BUSY"


def _start(repo: ClusterRepo) -> Forked:
    with open(os.devnull, "r+b") as nothing:
        number = nothing.fileno()
        return fork_program(
            ("cluster", "up", "--yes"),
            streams=(number, number, number),
            cwd=repo.root,
            env={**os.environ, **repo.env},
        )


def test_a_member_of_etcd_that_was_taken_out_of_the_file_keeps_its_vm(repo: ClusterRepo) -> None:
    nodes = [repo.node(number, controller=True, proxmox_node="pve1") for number in range(3)]
    repo.describe(nodes=nodes)
    repo.run("cluster", "up", "--yes")
    repo.describe(nodes=nodes[:1])
    refused = repo.json("cluster", "up", "--yes", "--allow-destroy", "k8s-1,k8s-2", status=1)
    assert refused["error"]["code"] == "E-ETCD-REMOVED-NODE"
    assert "k8s-2" in refused["error"]["detail"]
    vms = proxmoxer_client(repo.running).cluster.resources.get(type="vm")
    assert "k8s-2" in {vm["name"] for vm in vms}
