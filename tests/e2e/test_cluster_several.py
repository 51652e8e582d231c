"""Several clusters in one repository, one of them on bare metal: each has its own files, plan and state."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster_repo import SCHEMATIC, ClusterRepo, cluster_on_lab
from tests.support.lab import proxmoxer_client

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[ClusterRepo]:
    with cluster_on_lab(tmp_path) as made:
        yield made


def _move_to(repo: ClusterRepo, name: str) -> None:
    """Move the cluster of the top folder below `clusters/`."""
    folder = repo.root / "clusters" / name
    folder.mkdir(parents=True)
    for file in ("cluster.yaml", "nodes.yaml"):
        (repo.root / file).rename(folder / file)


def _describe(repo: ClusterRepo, name: str, number: int) -> None:
    node = repo.node(number, name=f"{name}-1", controller=True, proxmox_node="pve1")
    repo.describe(nodes=[node], cluster_name=None, cluster_api_addr=f"{repo.network}.0.{10 + number}")
    _move_to(repo, name)


def test_clusters_of_one_repository_are_applied_side_by_side(repo: ClusterRepo) -> None:
    for number, name in enumerate(("blue", "green")):
        _describe(repo, name, number)
        repo.run("cluster", "configure", name)
    with ThreadPoolExecutor() as pool:
        words = [("apply", f"cluster:{name}", "--yes") for name in ("blue", "green")]
        for _ in pool.map(lambda one: repo.run(*one), words):
            pass
    assert [repo.actions(f"cluster:{name}") for name in ("blue", "green")] == [{}, {}]
    names = {one["name"] for one in repo.json("state", "list")["states"]}
    assert names >= {"cluster/blue/default", "cluster/green/default"}
    # What one destroys, the other keeps.
    repo.run("infra", "destroy", "--cluster", "blue", "--allow-destroy", "blue-1", "--yes")
    left = proxmoxer_client(repo.running).cluster.resources.get(type="vm")
    assert [one["name"] for one in left] == ["green-1"]
    assert repo.actions("cluster:green") == {}


def test_a_cluster_of_machines_is_described_and_configured_and_has_nothing_to_plan(
    repo: ClusterRepo,
) -> None:
    node: dict[str, Any] = {
        "name": "metal-1",
        "address": f"{repo.network}.1.50",
        "controller": True,
        "disk": "/dev/nvme0n1",
        "mac_addr": "bc:24:11:00:00:50",
        "schematic_id": SCHEMATIC,
    }
    fields = {"cluster_name": "metal", "node_cidr": f"{repo.network}.0.0/16"}
    fields["cluster_api_addr"] = f"{repo.network}.0.10"
    repo.write({"cluster.yaml": json.dumps(fields), "nodes.yaml": json.dumps({"nodes": [node]})})
    repo.run("cluster", "validate")
    assert "none: bare metal" in repo.run("cluster", "show").stdout
    repo.run("cluster", "configure")
    planned = repo.run("plan", "cluster:metal")
    assert "Nothing to change" in planned.stdout
    verified = repo.json("infra", "verify-nodes", status=1)
    assert [one["stage"] for one in verified["nodes"]] == ["unreachable"]
