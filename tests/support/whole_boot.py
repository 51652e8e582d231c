"""A cluster whose `cluster up` has every step: datasets, VMs, Talos, network, secrets, a chart and Flux."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.cluster_network import NETWORK_FILES
from tests.support.cluster_repo import ClusterRepo, cluster_on_lab
from tests.support.git_ssh import serve_git_in_thread
from tests.support.kubernetes_boot import DATA, FILES
from tests.support.programs import write_program
from tests.support.repositories import commit, new_repository

from pvelab.truenas.datasets import Datasets

__all__ = ["WholeBoot", "whole_boot"]

_CHART = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: agent}
spec:
  replicas: 1
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: "example.com/agent:v1"}]}
"""
_APP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, namespace: default}\n"


@dataclass(frozen=True)
class WholeBoot:
    """The repository of the cluster, and what its owner keeps secret.

    Attributes:
        repo: The repository of the cluster.
        secrets: Values of the user, which no run may leave anywhere.
        inputs: The files of the user that have them.
    """

    repo: ClusterRepo
    secrets: tuple[bytes, ...]
    inputs: tuple[str, ...] = ("age.key", "deploy.key", "cluster.yaml")

    def list_datasets(self) -> list[str]:
        """Return the datasets that the TrueNAS of the lab has below its pool."""
        found = Datasets(self.repo.running.world).list_entries()
        return [one["id"] for one in found if "/" in one["id"]]


@contextlib.contextmanager
def whole_boot(folder: Path) -> Iterator[WholeBoot]:
    """Describe such a cluster on a lab of its own; helm prints a chart, and Flux applies a Git repository."""
    content = new_repository(folder / "content")
    for name, text in {**FILES, "clusters/prod/apps/app.yaml": _APP}.items():
        (content / name).parent.mkdir(parents=True, exist_ok=True)
        (content / name).write_text(text)
    commit(content)
    with serve_git_in_thread() as host, cluster_on_lab(folder, truenas_port=0) as repo:
        facts = repo.running.document()
        repo.describe(truenas_api_key=facts["truenas_api_key"])
        repo.env["PATH"] = str(_put_programs(folder / "programs"))
        (repo.root / "deploy.key").write_text(host.private_key)
        (repo.root / "known_hosts").write_text(host.known_hosts)
        shutil.copy(DATA / "flux.yaml", repo.root / "flux.yaml")
        bootstrap = f"""
            network: {{manifests: network.yaml}}
            storage:
              truenas: {facts["truenas_url"]}
              fingerprint: {repo.running.fingerprint}
              datasets: [{{name: tank/home}}, {{name: tank/home/volumes}}]
            charts: [{{name: agent, chart: "oci://example.com/agent", version: 1.0.0, namespace: agent}}]
            flux:
              manifests: flux.yaml
              url: {host.url(content)}
              deploy_key: deploy.key
              known_hosts: known_hosts
              folder: clusters/prod
            """
        repo.write({"network.yaml": NETWORK_FILES["network.yaml"], "bootstrap.yaml": bootstrap})
        identity = (repo.root / "age.key").read_bytes().strip()
        body = b"".join(host.private_key.encode().splitlines()[1:3])
        yield WholeBoot(repo, (identity, body, str(facts["truenas_api_key"]).encode()))


def _put_programs(programs: Path) -> Path:
    """Make a PATH with git, ssh, and a helm that prints a chart."""
    programs.mkdir()
    for name in ("git", "ssh", "sh"):
        if found := shutil.which(name):
            (programs / name).symlink_to(found)
    (programs / "chart.yaml").write_text(_CHART)
    wait_for_values = "while read -r line; do :; done\n"
    write_program(programs / "helm", f"{wait_for_values}{shutil.which('cat')} {programs / 'chart.yaml'}")
    return programs
