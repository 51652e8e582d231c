"""A repository with one Talos cluster whose VMs are on a lab, and the program run in it."""

from __future__ import annotations

import contextlib
import json
import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.path import provider_settings
from tests.support.stack_repo import StackRepo, make_repo
from tests.support.talos import free_network

from stackyard import lab
from stackyard.engine.version import Flavour
from stackyard.secrets.sops.age import new_identity

__all__ = ["SCHEMATIC", "ClusterRepo", "cluster_on_lab"]

SCHEMATIC = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"
_CONTENT = b"""customization:
    systemExtensions:
        officialExtensions:
            - siderolabs/qemu-guest-agent
"""


class ClusterRepo(StackRepo):
    """A repository with the cluster `home`: a controller on pve1 and a worker on pve2."""

    running: lab.Running
    network: str

    def describe(self, *, nodes: list[dict[str, Any]] | None = None, **changes: Any) -> None:
        """Write cluster.yaml and nodes.yaml; a field that is None is left out."""
        token_id, _, secret = self.running.api_token.partition("=")
        fields = {
            "cluster_name": "home",
            "node_cidr": f"{self.network}.0.0/16",
            "cluster_api_addr": f"{self.network}.0.10",
            "cluster_pod_cidr": "10.42.0.0/16",
            "cluster_svc_cidr": "10.43.0.0/16",
            "talos_version": "1.12.1",
            "talos_factory": self.running.factory_url,
            "proxmox_api_url": self.running.url,
            "proxmox_node": "pve1",
            "proxmox_insecure": True,
            "proxmox_api_token_id": token_id,
            "proxmox_api_token_secret": secret,
            "cloudflare_domain": "example.com",
            **changes,
        }
        said = {name: value for name, value in fields.items() if value is not None}
        # JSON is YAML.
        self.write({"cluster.yaml": "".join(f"{key}: {json.dumps(value)}\n" for key, value in said.items())})
        rows = [self.node(0), self.node(1)] if nodes is None else nodes
        self.write({"nodes.yaml": f"nodes: {json.dumps(rows)}\n"})

    def node(self, number: int, **changes: Any) -> dict[str, Any]:
        """Return a node; the first is the controller."""
        return {
            "name": f"k8s-{number}",
            "address": f"{self.network}.1.{10 + number}",
            "controller": number == 0,
            "disk": "/dev/sda",
            "mac_addr": f"bc:24:11:00:00:{number + 1:02x}",
            "schematic_id": SCHEMATIC,
            "proxmox_node": f"pve{number + 1}",
            "vm_id": 101 + number,
            "vm_memory": 2048,
            "vm_cores": 2,
            **changes,
        }

    def add_fault(self, how: str, vmid: int, **fields: Any) -> None:
        """Let a machine of the lab go wrong in one way."""
        body = {"kind": "talos", "name": f"{how}-{vmid}", "how": how, "vmid": vmid, **fields}
        self._ask_lab("POST", "/faults", json.dumps(body).encode())

    def remove_fault(self, how: str, vmid: int) -> None:
        """End a fault."""
        self._ask_lab("DELETE", f"/faults/{how}-{vmid}")

    def _ask_lab(self, method: str, path: str, data: bytes | None = None) -> None:
        headers = {
            "Authorization": f"PVEAPIToken={self.running.api_token}",
            "Content-Type": "application/json",
        }
        request = urllib.request.Request(
            f"{self.running.url}/_lab{path}", data=data, headers=headers, method=method
        )
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        urllib.request.urlopen(request, timeout=30, context=context).close()

    def list_etcds(self) -> list[str]:
        """Return every etcd that was ever formed on the lab: each accepted bootstrap makes one."""
        return sorted(self.running.world.store.items("talos_etcd"))


@contextlib.contextmanager
def cluster_on_lab(
    folder: Path, provider: str = "builtin", flavour: Flavour = Flavour.TOFU, **options: Any
) -> Iterator[ClusterRepo]:
    """Run a lab with an image factory, and describe a cluster on it.

    Args:
        folder: Where the repository and what the provider needs are made.
        provider: `builtin` or `bpg`.
        flavour: The engine that the program runs.
        options: More options of the lab.
    """
    network = free_network()
    chosen = {"nodes": ("pve1", "pve2"), "guest_network": f"{network}.0.0/16", "factory_port": 0, **options}
    with lab.running(**chosen) as running:
        request = urllib.request.Request(f"{running.factory_url}/schematics", data=_CONTENT, method="POST")
        urllib.request.urlopen(request, timeout=30).close()
        plain = make_repo(folder / "repo", {}, env=provider_settings(provider, folder, flavour))
        repo = ClusterRepo(root=plain.root, env=plain.env)
        repo.running, repo.network = running, network
        (repo.root / "age.key").write_text(f"{new_identity()[1]}\n")
        repo.describe()
        yield repo
