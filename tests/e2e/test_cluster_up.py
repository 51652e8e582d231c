"""`cluster up` on the lab: from two files to nodes that are ready, again and again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cluster_repo import ClusterRepo, cluster_on_lab
from tests.support.forking import fork_program
from tests.support.judges import find_judge
from tests.support.lab import proxmoxer_client

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

NETWORK = """
    apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: network, namespace: kube-system}
    spec:
      selector: {matchLabels: {app: network}}
      template:
        metadata: {labels: {app: network}}
        spec:
          hostNetwork: true
          tolerations: [{operator: Exists}]
          containers:
            - name: agent
              image: registry.example.com/network:1
              volumeMounts: [{name: bin, mountPath: /host/opt/cni/bin}]
          volumes: [{name: bin, hostPath: {path: /opt/cni/bin}}]
"""


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[ClusterRepo]:
    with cluster_on_lab(tmp_path) as made:
        made.write({"network.yaml": NETWORK, "bootstrap.yaml": "network: {manifests: network.yaml}\n"})
        yield made


def test_a_cluster_comes_up_and_a_second_run_changes_nothing(repo: ClusterRepo, tmp_path: Path) -> None:
    first = repo.json("cluster", "up", "--yes")
    done = {row["step"] for row in first["steps"] if row["outcome"] == "done"}
    assert done >= {"configure k8s-0", "configure k8s-1", "etcd", "network"}
    second = repo.json("cluster", "up", "--yes")
    assert second["has_changes"] is False
    assert {row["outcome"] for row in second["steps"]} == {"present"}
    assert repo.json("cluster", "status")["is_healthy"] is True
    kubeconfig = tmp_path / "kubeconfig"
    repo.run("cluster", "kubeconfig", "--out", str(kubeconfig))
    assert kubeconfig.stat().st_mode & 0o777 == 0o600
    secrets = (repo.root / "talos/talsecret.sops.yaml").read_text()
    assert "ENC[" in secrets
    state = repo.json("infra", "state-list")["stdout"]
    assert "talos_node" in state
    assert "PRIVATE KEY" not in state


def test_a_run_that_is_killed_is_continued(repo: ClusterRepo) -> None:
    out, end = os.pipe()
    with open(os.devnull, "r+b") as nothing:
        streams = (nothing.fileno(), end, nothing.fileno())
        words = ("cluster", "up", "--yes", "--events")
        killed = fork_program(words, streams=streams, cwd=repo.root, env={**os.environ, **repo.env})
    os.close(end)
    with open(out, "rb") as events:
        assert any(b'"step":"etcd"' in line for line in events)
        killed.kill()
    killed.wait()
    ended = repo.json("cluster", "up", "--yes")
    assert {row["outcome"] for row in ended["steps"]} <= {"done", "present"}
    assert repo.json("cluster", "up", "--yes")["has_changes"] is False


def test_a_missing_key_stops_before_any_vm_exists(repo: ClusterRepo) -> None:
    (repo.root / "age.key").unlink()
    refused = repo.json("cluster", "up", "--yes", status=None)["error"]
    assert "age" in refused["detail"], refused
    assert proxmoxer_client(repo.running).cluster.resources.get(type="vm") == []


def test_secrets_that_are_missing_are_not_made_again_for_a_cluster_that_is_there(repo: ClusterRepo) -> None:
    repo.run("cluster", "up", "--yes")
    secrets = repo.root / "talos/talsecret.sops.yaml"
    kept = secrets.read_bytes()
    secrets.unlink()
    refused = repo.json("cluster", "up", "--yes", status=None)["error"]
    assert refused["code"] == "E-TALOS-SECRETS-ABSENT"
    assert not secrets.exists()
    secrets.write_bytes(kept)
    assert repo.json("cluster", "up", "--yes")["has_changes"] is False


@pytest.mark.judges("talosctl")
def test_talosctl_sees_the_members_of_etcd(repo: ClusterRepo, tmp_path: Path) -> None:
    talosctl = find_judge("talosctl")
    repo.run("cluster", "up", "--yes")
    config = tmp_path / "talosconfig"
    repo.run("cluster", "talosconfig", "--out", str(config))
    address = f"{repo.network}.1.10"
    words = [str(talosctl), "--talosconfig", str(config), "-n", address, "-e", address]
    members = subprocess.run([*words, "etcd", "members"], capture_output=True, text=True, timeout=60)
    assert members.returncode == 0, members.stderr
    assert "k8s-0" in members.stdout
