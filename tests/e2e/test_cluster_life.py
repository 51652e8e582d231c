"""A cluster that runs, on the lab: what its nodes are, whether it is well, and changes node by node."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.running_cluster import fault, member_names, running_cluster

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

PROXY = "http://user:geheimnis@proxy.example"


def test_a_cluster_that_is_well_says_so_and_names_what_is_not(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as repo:
        nodes = {one["name"]: one for one in repo.json("cluster", "nodes")["nodes"]}
        assert nodes["k8s-0"]["etcd"] == "leader"
        assert nodes["k8s-1"]["etcd"] is None
        assert {one["kubernetes"]["is_ready"] for one in nodes.values()} == {True}
        assert repo.json("cluster", "health", "--wait", "60")["is_healthy"] is True
        with fault(repo, "certificate-expired", 102):
            found = repo.json("cluster", "health", status=1)
            assert found["is_healthy"] is False
            assert {one["part"] for one in found["problems"]} == {"k8s-1"}
            shown = repo.run("cluster", "nodes").stdout
            assert "unreachable" in shown
        assert repo.json("cluster", "health", "--wait", "60")["problems"] == []


def test_a_changed_file_is_drift_that_is_mended_node_by_node(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as repo:
        assert repo.json("cluster", "drift", "--detailed-exitcode")["has_drift"] is False
        repo.write(
            {
                "talos/patches/global/sysctls.yaml": "machine: {sysctls: {vm.max_map_count: '262144'}}\n",
                "talos/patches/worker/proxy.yaml": f"machine: {{env: {{http_proxy: '{PROXY}'}}}}\n",
            }
        )
        drift = repo.json("cluster", "drift", "--detailed-exitcode", status=2)
        modes = {one["name"]: one["mode"] for one in drift["nodes"]}
        assert modes == {"k8s-0": "NO_REBOOT", "k8s-1": "REBOOT"}
        shown = repo.run("cluster", "apply-config", "--dry-run")
        assert "vm.max_map_count: 262144" in shown.stdout
        assert "geheimnis" not in shown.stdout + shown.stderr
        assert repo.json("cluster", "drift")["has_drift"] is True
        applied = repo.json("cluster", "apply-config")
        assert applied["changed"] == ["k8s-0", "k8s-1"]
        assert repo.json("cluster", "drift")["has_drift"] is False
        assert repo.json("cluster", "apply-config")["has_changes"] is False


def test_nothing_is_changed_while_another_part_is_not_well(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as repo:
        patch = "machine: {sysctls: {vm.max_map_count: '262144'}}\n"
        repo.write({"talos/patches/controller/sysctls.yaml": patch})
        with fault(repo, "certificate-expired", 102):
            unseen = repo.json("cluster", "apply-config", status=1)["error"]
            assert unseen["code"] == "E-CLUSTER-NODE-UNSEEN"
            refused = repo.json("cluster", "apply-config", "--node", "k8s-0", status=1)["error"]
            assert refused["code"] == "E-CLUSTER-UNHEALTHY"
        assert "k8s-1" in refused["detail"]
        assert repo.json("cluster", "drift", "--node", "k8s-0")["has_drift"] is True


def test_a_node_that_does_not_come_back_ends_the_change_there(tmp_path: Path) -> None:
    with running_cluster(tmp_path, workers=2) as repo:
        repo.write({"talos/patches/worker/proxy.yaml": f"machine: {{env: {{http_proxy: '{PROXY}'}}}}\n"})
        with fault(repo, "never-boots", 102):
            ended = repo.json("cluster", "apply-config", "--timeout", "5", status=1)["error"]
            assert ended["code"] == "E-BOOTSTRAP-TIMEOUT"
            assert "k8s-1" in ended["detail"]
            assert repo.json("cluster", "drift", "--node", "k8s-2")["has_drift"] is True
        assert repo.json("cluster", "health", "--wait", "60")["is_healthy"] is True
        assert repo.json("cluster", "apply-config")["changed"] == ["k8s-2"]


def test_nodes_that_are_added_join_the_cluster_and_no_other_node_is_touched(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as repo:
        rows = [repo.node(0), repo.node(1)]
        more = [repo.node(number, controller=True, proxmox_node="pve1") for number in (2, 3)]
        repo.describe(nodes=[*rows, *more])
        ended = repo.json("cluster", "up", "--yes")
        outcomes = {row["step"]: row["outcome"] for row in ended["steps"]}
        names = [f"configure k8s-{number}" for number in range(4)]
        assert [outcomes[name] for name in names] == ["present", "present", "done", "done"]
        assert len(repo.list_etcds()) == 1, "they join the etcd that there is"
        assert member_names(repo) == {"k8s-0", "k8s-2", "k8s-3"}
        assert repo.json("cluster", "health")["is_healthy"] is True
