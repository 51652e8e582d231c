"""`cluster destroy` on the lab: no node has to answer, and what was not wiped is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.lab import proxmoxer_client
from tests.support.running_cluster import fault, forget_vms, running_cluster

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

BOTH = ("--allow-destroy", "k8s-0,k8s-1")


def test_vms_are_destroyed_though_no_node_answers(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as repo:
        with fault(repo, "unreachable", 101), fault(repo, "unreachable", 102):
            refused = repo.json("cluster", "destroy", "--yes", status=1)["error"]
            assert refused["code"] == "E-GUARD-REFUSED"
            assert "--allow-destroy k8s-0,k8s-1" in refused["remedy"]
            destroyed = repo.json("cluster", "destroy", "--yes", *BOTH)
            assert destroyed["not_wiped"] == []
            assert proxmoxer_client(repo.running).cluster.resources.get(type="vm") == []
        secrets = (repo.root / "talos/talsecret.sops.yaml").read_bytes()
        # What was destroyed by name is not missed: the next cluster has an etcd of its own.
        repo.run("cluster", "up", "--yes")
        assert repo.json("cluster", "health", "--wait", "60")["is_healthy"] is True
        assert (repo.root / "talos/talsecret.sops.yaml").read_bytes() == secrets


def test_machines_that_are_no_vms_are_wiped_and_those_that_are_not_are_named(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as repo:
        forget_vms(repo, ("k8s-0", "k8s-1"))
        refused = repo.json("cluster", "destroy", "--yes", "--allow-destroy", "k8s-0", status=3)["error"]
        assert refused["code"] == "E-CLUSTER-WIPE"
        assert "k8s-1" in refused["detail"]
        with fault(repo, "certificate-expired", 102):
            ended = repo.json("cluster", "destroy", "--yes", *BOTH, status=1)
            assert [one["name"] for one in ended["not_wiped"]] == ["k8s-1"]
        again = repo.json("cluster", "destroy", "--yes", *BOTH)
        assert again["not_wiped"] == []
        stages = {one["stage"] for one in repo.json("cluster", "nodes")["nodes"]}
        assert stages == {"maintenance"}
