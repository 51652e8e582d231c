"""A Talos cluster of the lab that runs, for tests of what comes after its boot."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.cluster_repo import ClusterRepo, cluster_on_lab

__all__ = ["NETWORK", "fault", "forget_vms", "member_names", "running_cluster"]

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
    """Bring a cluster up on a lab of its own; more fields are those of cluster.yaml."""
    with cluster_on_lab(folder) as repo:
        nodes = [
            repo.node(number, controller=number < controllers, proxmox_node=f"pve{number % 2 + 1}")
            for number in range(controllers + workers)
        ]
        repo.describe(nodes=nodes, **fields)
        repo.write({"network.yaml": NETWORK, "bootstrap.yaml": "network: {manifests: network.yaml}\n"})
        repo.run("cluster", "up", "--yes")
        yield repo


@contextlib.contextmanager
def fault(repo: ClusterRepo, how: str, vmid: int) -> Iterator[None]:
    """Let a machine go wrong for as long as the block runs."""
    name = repo.running.add_fault("talos", how=how, vmid=vmid)
    try:
        yield
    finally:
        repo.running.remove_fault(name)


def member_names(repo: ClusterRepo) -> set[str]:
    """Return the names of the nodes that say that they are members of etcd."""
    found = json.loads(repo.run("cluster", "nodes", "--json").stdout)
    return {one["name"] for one in found["nodes"] if one["etcd"] in ("member", "leader")}


def forget_vms(repo: ClusterRepo, names: tuple[str, ...]) -> None:
    """Describe nodes as machines of their own: their VMs stay, and nobody manages them."""
    row = ("name", "address", "controller", "disk", "mac_addr", "schematic_id")
    nodes = [repo.node(number, controller=number == 0) for number in range(len(names))]
    bare = [{key: value for key, value in one.items() if key in row} for one in nodes]
    gone = ("api_url", "node", "insecure", "api_token_id", "api_token_secret")
    repo.describe(nodes=bare, **{f"proxmox_{key}": None for key in gone})
