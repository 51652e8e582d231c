"""`cluster remove-node` on the lab: etcd keeps its majority, and only what is named is destroyed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.lab import proxmoxer_client
from tests.support.running_cluster import running_cluster

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]


def test_control_planes_leave_etcd_before_their_vms_are_destroyed_the_lost_one_first(
    tmp_path: Path,
) -> None:
    with running_cluster(tmp_path, controllers=3) as repo:
        described = repo.json("cluster", "remove-node", "k8s-1", status=1)["error"]
        assert described["code"] == "E-CLUSTER-NODE-DESCRIBED"
        rows = [repo.node(0), repo.node(3, controller=False, proxmox_node="pve2")]
        repo.describe(nodes=rows)
        known = repo.json("cluster", "nodes")
        assert {one["name"] for one in known["strange_etcd_members"]} == {"k8s-1", "k8s-2"}
        proxmoxer_client(repo.running).nodes("pve1").qemu(103).status.stop.post()
        # With the lost one still counted, the others would be one of two.
        refused = repo.json("cluster", "remove-node", "k8s-1", "--yes", status=1)["error"]
        assert refused["code"] == "E-CLUSTER-UNHEALTHY"
        assert "k8s-2" in refused["detail"]
        removed = repo.json("cluster", "remove-node", "k8s-1", "k8s-2", "--yes")
        assert removed["vms_changed"] is True
        vms = proxmoxer_client(repo.running).cluster.resources.get(type="vm")
        assert {vm["name"] for vm in vms} == {"k8s-0", "k8s-3"}
        assert repo.json("cluster", "health", "--wait", "60")["is_healthy"] is True
        again = repo.json("cluster", "remove-node", "k8s-1", "k8s-2", "--yes")
        assert again["vms_changed"] is False
        assert repo.json("cluster", "up", "--yes")["has_changes"] is False


def test_a_node_under_another_name_at_the_same_address_does_not_hide_the_member_of_before(
    tmp_path: Path,
) -> None:
    with running_cluster(tmp_path, controllers=3, workers=0) as repo:
        renamed = repo.node(2, name="k8s-9", controller=True, vm_id=150, proxmox_node="pve1")
        rows = [repo.node(0), repo.node(1, controller=True, proxmox_node="pve2")]
        repo.describe(nodes=[*rows, renamed])
        words = ("--yes", "--allow-destroy", "k8s-2")
        refused = repo.json("cluster", "up", *words, status=1)["error"]
        assert refused["code"] == "E-ETCD-REMOVED-NODE"
        assert "k8s-2" in refused["detail"]
        removed = repo.json("cluster", "remove-node", "k8s-2", "--yes")
        assert removed["removed"][0]["was_etcd_member"] is True
        repo.json("cluster", "up", "--yes")
        assert repo.json("cluster", "health", "--wait", "60")["is_healthy"] is True
