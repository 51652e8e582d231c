"""A cluster of the lab from an API without nodes to everything reconciled, with a Git repository to apply."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.support.git_ssh import GitHost, serve_git
from tests.support.kubernetes import open_client
from tests.support.repositories import git, new_repository

from pvelab.kubernetes import RunningKubernetes
from pvelab.kubernetes.controllers import Controllers, LabNode, run_controllers
from stackyard.bootstrap import Presence, Step
from stackyard.bootstrap.kubernetes import (
    GitAccess,
    GitSource,
    KubernetesPlan,
    make_cloudflare,
    make_layers,
    make_sops_age,
    plan_steps,
)
from stackyard.clients.kubernetes import KubernetesClient, read_manifests
from stackyard.secrets import create_sops_file, new_identity
from stackyard.secrets.sops.rules import PathRule, RuleKind

__all__ = ["DATA", "FILES", "NODES", "Boot", "save", "start"]

DATA = Path(__file__).parent / "data" / "kubernetes"
NODES = ("cp-1", "worker-1")
FILES = {
    "clusters/prod/infrastructure/controllers/controller.yaml": """
apiVersion: apps/v1
kind: Deployment
metadata: {name: ingress, namespace: default}
spec:
  selector: {matchLabels: {app: ingress}}
  template:
    metadata: {labels: {app: ingress}}
    spec: {containers: [{name: ingress, image: "example.com/ingress:v1"}]}
""",
    "clusters/prod/infrastructure/configs/kustomization.yaml": "resources: [config.yaml]\n",
    "clusters/prod/infrastructure/configs/config.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: config, namespace: default}
data: {zone: example.com}
""",
}
APP = """
apiVersion: v1
kind: Secret
metadata: {name: app, namespace: default}
stringData: {password: hunter22}
"""


@dataclass
class Boot:
    """A cluster, its repository, and the steps that lead to it."""

    kube: RunningKubernetes
    controllers: Controllers
    client: KubernetesClient
    host: GitHost
    repository: Path
    identity: str
    reports: list[str]

    def source(self, *, private_key: str = "", known_hosts: str = "") -> GitSource:
        access = GitAccess(
            private_key=private_key or self.host.private_key, known_hosts=known_hosts or self.host.known_hosts
        )
        return GitSource(url=self.host.url(self.repository), access=access, interval="1h")

    async def open_client(self) -> KubernetesClient:
        return self.client

    def steps(self, source: GitSource, **changes: Any) -> list[Step]:
        """Return the steps of a plan, in an order in which they can be run one after the other."""
        secrets = (make_sops_age(self.identity), make_cloudflare("cf-t0ken-value"))
        plan = KubernetesPlan(
            nodes=NODES,
            network=read_manifests(DATA / "network.yaml"),
            flux=read_manifests(DATA / "flux.yaml"),
            source=source,
            layers=make_layers("clusters/prod"),
            secrets=tuple(row.make_object() for row in secrets),
            timeout_s=20.0,
        )
        plan = replace(plan, **changes)
        assert "cf-t0ken-value" not in repr(plan)
        planned = plan_steps(self.open_client, plan)
        names = [row.step.name for row in planned]
        assert all(names.index(name) < place for place, row in enumerate(planned) for name in row.after)
        return [row.step for row in planned]

    async def run(self, steps: list[Step]) -> list[str]:
        """Run the steps one after the other; return the names of those that had something to do."""
        done = []
        for step in steps:
            found = await step.look()
            assert found.presence is not Presence.UNKNOWN, found.reason
            if found.presence is Presence.ABSENT:
                self.reports.append(f"{step.name}: {found.reason}")
                await step.do(self.reports.append)
                await step.prove(self.reports.append)
                done.append(step.name)
        return done


@contextlib.asynccontextmanager
async def start(kube: RunningKubernetes, folder: Path) -> AsyncIterator[Boot]:
    recipient, identity = new_identity()
    repository = new_repository(folder / "repository")
    for name, text in FILES.items():
        path = repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    sealed = repository / "clusters/prod/apps/secret.yaml"
    sealed.parent.mkdir(parents=True)
    create_sops_file(
        sealed, APP.encode(), (recipient,), rule=PathRule(RuleKind.ENCRYPTED_REGEX, "^stringData$")
    )
    save(repository)
    nodes = tuple(LabNode(name=name) for name in NODES)
    async with (
        serve_git() as host,
        run_controllers(kube, nodes, folder=folder / "fetched") as controllers,
        open_client(kube) as client,
    ):
        yield Boot(kube, controllers, client, host, repository, identity, [])


def save(repository: Path) -> str:
    git(repository, "add", "--all")
    assert git(repository, "commit", "--quiet", "--message", "change").returncode == 0
    return git(repository, "rev-parse", "HEAD").stdout.strip()
