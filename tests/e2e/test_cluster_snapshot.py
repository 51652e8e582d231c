"""Snapshots of etcd on the lab: encrypted, checked, and what a cluster on new VMs is made of again."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.running_cluster import running_cluster

from stackyard.secrets.sops.age import new_identity

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

ALL = "k8s-0,k8s-1,k8s-2"


def test_a_lost_cluster_is_made_again_from_git_key_and_snapshot(tmp_path: Path) -> None:
    with running_cluster(tmp_path, controllers=3, workers=0) as repo:
        taken = repo.json("cluster", "snapshot", "--out", "home.snapshot.age")
        assert (repo.root / "home.snapshot.age").stat().st_mode & 0o777 == 0o600
        assert (repo.root / "home.snapshot.age").read_bytes().startswith(b"age-encryption.org/")
        assert len(taken["recipients"]) == 1
        # The network plugin is in the snapshot alone from here on.
        (repo.root / "bootstrap.yaml").unlink()
        refused = repo.json("cluster", "restore", "home.snapshot.age", status=1)["error"]
        assert refused["code"] == "E-CLUSTER-ETCD-EXISTS"
        repo.run("cluster", "destroy", "--yes", "--allow-destroy", ALL)
        repo.run("infra", "apply-auto")
        restored = repo.json("cluster", "restore", "home.snapshot.age")
        assert {row["outcome"] for row in restored["steps"]} <= {"done", "present"}
        assert repo.json("cluster", "health", "--wait", "60")["is_healthy"] is True


def test_a_snapshot_that_is_cut_off_or_of_another_key_is_refused_before_anything_is_changed(
    tmp_path: Path,
) -> None:
    with running_cluster(tmp_path, workers=0) as repo:
        repo.run("cluster", "snapshot", "--unencrypted", "--out", "plain")
        whole = (repo.root / "plain").read_bytes()
        (repo.root / "cut").write_bytes(whole[:-100])
        assert repo.json("cluster", "restore", "cut", status=65)["error"]["code"] == "E-CLUSTER-SNAPSHOT"
        (repo.root / "empty").write_bytes(b"")
        assert repo.json("cluster", "restore", "empty", status=65)["error"]["code"] == "E-CLUSTER-SNAPSHOT"
        other, _ = new_identity()
        repo.run("cluster", "snapshot", "--recipient", other, "--out", "other.age")
        locked = repo.json("cluster", "restore", "other.age", status=1)["error"]
        assert locked["code"] == "E-SECRETS-LOCKED"
        repo.run("cluster", "snapshot", "--out", "plain", status=64)
        assert (repo.root / "plain").read_bytes() == whole
