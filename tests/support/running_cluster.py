"""A Talos cluster of the lab that runs, for tests of what comes after its boot."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.cluster_repo import ClusterRepo, cluster_on_lab

__all__ = ["NETWORK", "add_fault", "clear_faults", "member_names", "running_cluster"]

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


@contextlib.contextmanager
def running_cluster(
    folder: Path, *, controllers: int = 1, workers: int = 1, **fields: Any
) -> Iterator[ClusterRepo]:
    """Bring a cluster up on a lab of its own, with a network plugin; more fields are those of cluster.yaml."""
    with cluster_on_lab(folder) as repo:
        nodes = [
            repo.node(number, controller=number < controllers, proxmox_node=f"pve{number % 2 + 1}")
            for number in range(controllers + workers)
        ]
        repo.describe(nodes=nodes, **fields)
        repo.write({"network.yaml": NETWORK, "bootstrap.yaml": "network: {manifests: network.yaml}\n"})
        repo.run("cluster", "up", "--yes")
        yield repo


def add_fault(repo: ClusterRepo, name: str, how: str, vmid: int) -> None:
    """Let a machine go wrong until the fault is cleared."""
    repo.running.add_fault("talos", how=how, vmid=vmid, fault=name)


def clear_faults(repo: ClusterRepo) -> None:
    """Let all machines continue."""
    repo.running.clear_faults()


def member_names(repo: ClusterRepo) -> set[str]:
    """Return the names of the nodes that say that they are members of etcd."""
    found = json.loads(repo.run("cluster", "nodes", "--json").stdout)
    return {one["name"] for one in found["nodes"] if one["etcd"] in ("member", "leader")}
