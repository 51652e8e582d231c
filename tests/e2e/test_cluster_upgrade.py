"""Upgrades of Talos and Kubernetes on the lab: in order, and ended by the first node that is not well."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cluster_repo import ClusterRepo
from tests.support.running_cluster import fault, running_cluster

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]


def _versions(repo: ClusterRepo) -> list[str]:
    return [one["talos"] for one in repo.json("cluster", "nodes")["nodes"]]


def test_talos_is_upgraded_node_by_node_up_to_the_first_that_does_not_come_back(tmp_path: Path) -> None:
    with running_cluster(tmp_path, workers=2) as repo:
        rows = [repo.node(number, controller=number == 0, proxmox_node="pve1") for number in range(3)]
        repo.describe(nodes=rows, talos_version="1.14.0")
        refused = repo.json("cluster", "upgrade", status=65)["error"]
        assert refused["code"] == "E-CLUSTER-UPGRADE-PATH"
        secure = [*rows[:2], {**rows[2], "secureboot": True}]
        repo.describe(nodes=secure, talos_version="1.12.2")
        refused = repo.json("cluster", "upgrade", status=1)["error"]
        assert refused["code"] == "E-CLUSTER-SECURE-BOOT", "its new image would not be the one that it boots"
        assert _versions(repo) == ["1.12.1"] * 3
        repo.describe(nodes=rows, talos_version="1.12.2")
        planned = repo.json("cluster", "upgrade", "--dry-run")
        assert planned["nodes"][0]["changes"] == ["Talos 1.12.1 to 1.12.2"]
        with fault(repo, "never-boots", 102):
            ended = repo.json("cluster", "upgrade", "--timeout", "5", status=1)["error"]
            assert ended["code"] == "E-BOOTSTRAP-TIMEOUT"
            assert "k8s-1" in ended["detail"]
            unseen = repo.json("cluster", "upgrade", status=1)["error"]
            assert unseen["code"] == "E-CLUSTER-NODE-UNSEEN"
        repo.run("cluster", "health", "--wait", "60")
        assert _versions(repo) == ["1.12.2", "1.12.2", "1.12.1"]
        assert repo.json("cluster", "upgrade")["upgraded"] == ["k8s-2"]
        assert repo.json("cluster", "upgrade")["has_changes"] is False
        assert _versions(repo) == ["1.12.2", "1.12.2", "1.12.2"]


def test_kubernetes_is_upgraded_from_the_api_server_to_the_kubelets(tmp_path: Path) -> None:
    with running_cluster(tmp_path, kubernetes_version="1.35.0") as repo:
        rows = [repo.node(0), repo.node(1)]
        repo.describe(nodes=rows, kubernetes_version="1.35.1")
        # A change of the configuration leaves versions alone.
        drift = repo.json("cluster", "drift", "--node", "k8s-1")["nodes"][0]
        assert drift["changes"] == drift["left_to_upgrade"] != []
        assert repo.json("cluster", "apply-config")["has_changes"] is False
        upgraded = repo.json("cluster", "upgrade-kubernetes")["upgraded"]
        assert upgraded[0] == "k8s-0 kube-apiserver"
        assert upgraded[-2:] == ["k8s-0 kubelet", "k8s-1 kubelet"]
        nodes = repo.json("cluster", "nodes")["nodes"]
        assert {one["kubernetes"]["version"] for one in nodes} == {"1.35.1"}
        assert repo.json("cluster", "upgrade-kubernetes")["has_changes"] is False
        assert repo.json("cluster", "drift")["has_drift"] is False
        repo.describe(nodes=rows, kubernetes_version="1.33.0")
        refused = repo.json("cluster", "upgrade-kubernetes", status=65)["error"]
        assert refused["code"] == "E-CLUSTER-UPGRADE-PATH"
