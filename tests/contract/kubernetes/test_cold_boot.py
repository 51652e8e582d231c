"""From an API without nodes to everything reconciled, with the lab's controllers and a real Git host."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.support.git_ssh import GitHost, serve_git
from tests.support.kubernetes import always, open_client, run_kubernetes
from tests.support.repositories import git, new_repository

from pvelab.kubernetes import RunningKubernetes
from pvelab.kubernetes.controllers import Controllers, LabNode, run_controllers
from stackyard.bootstrap import Presence, Step
from stackyard.bootstrap.kubernetes import (
    GitAccess,
    GitSource,
    KubernetesPlan,
    NodesReadyStep,
    SecretsStep,
    list_flux_objects,
    make_cloudflare,
    make_kustomizations,
    make_layers,
    make_sops_age,
    plan_steps,
)
from stackyard.clients.kubernetes import (
    KubernetesClient,
    ObjectReference,
    WaitTimeoutError,
    read_manifests,
)
from stackyard.secrets import create_sops_file, new_identity
from stackyard.secrets.sops.rules import PathRule, RuleKind

DATA = Path(__file__).parents[2] / "support" / "data" / "kubernetes"
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

    def steps(self, source: GitSource) -> list[Step]:
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


pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="there is no ssh on PATH")


@pytest.fixture(
    params=[
        "double",
        pytest.param("real", marks=[pytest.mark.judges("kube-apiserver"), pytest.mark.judges("etcd")]),
    ]
)
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunningKubernetes]:
    """An API with nothing in it."""
    with run_kubernetes(request.param, tmp_path / "kube") as running:
        yield running


async def test_a_cold_boot_ends_reconciled_and_a_second_run_changes_nothing(
    empty: RunningKubernetes, tmp_path: Path
) -> None:
    async with start(empty, tmp_path) as boot:
        steps = boot.steps(boot.source())
        assert await boot.run(steps) == [step.name for step in steps]
        for name, kind, version in (("ingress", "Deployment", "apps/v1"), ("config", "ConfigMap", "v1")):
            assert await boot.client.find(ObjectReference(version, kind, name, "default")) is not None
        app = await boot.client.get(ObjectReference("v1", "Secret", "app", "default"))
        assert base64.b64decode(app["data"]["password"]) == b"hunter22", "Flux has decrypted it"
        versions = [app["metadata"]["resourceVersion"], await _versions(boot)]
        assert await boot.run(boot.steps(boot.source())) == [], boot.reports[-5:]
        app = await boot.client.get(ObjectReference("v1", "Secret", "app", "default"))
        assert [app["metadata"]["resourceVersion"], await _versions(boot)] == versions
        assert not any("hunter22" in text or "cf-t0ken" in text for text in boot.reports)


async def _versions(boot: Boot) -> list[str]:
    found = []
    for reference in list_flux_objects(make_kustomizations(boot.source(), make_layers("clusters/prod"))):
        found.append(str((await boot.client.get(reference))["metadata"]["resourceVersion"]))
    return found


async def test_nodes_are_not_ready_before_there_is_a_network(kube: RunningKubernetes, tmp_path: Path) -> None:
    node = f"lonely-{tmp_path.name[-1]}"
    async with run_controllers(kube, (LabNode(name=node),), folder=tmp_path), open_client(kube) as client:
        step = NodesReadyStep(open_client=always(client), nodes=(node,), timeout_s=0.7)
        with pytest.raises(WaitTimeoutError, match="cni plugin not initialized"):
            await step.prove(lambda _: None)
        assert (await step.look()).presence is Presence.ABSENT


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("key", "Permission denied"),
        ("host", "Host key verification failed"),
        ("revision", "refs/heads/nowhere"),
        ("path", "kustomization path not found"),
        ("age", "no identity matched"),
    ],
)
async def test_a_wrong_key_host_revision_path_or_age_key_stays_not_ready_with_the_reason(
    broken: str, said: str, tmp_path: Path
) -> None:
    with run_kubernetes("double", tmp_path / "kube") as empty:
        async with start(empty, tmp_path) as boot, serve_git() as other:
            source = boot.source()
            if broken == "key":
                source = boot.source(private_key=other.private_key)
            elif broken == "host":
                source = boot.source(
                    known_hosts=other.known_hosts.replace(str(other.port), str(boot.host.port))
                )
            elif broken == "revision":
                source = replace(source, branch="nowhere")
            elif broken == "path":
                git(boot.repository, "rm", "-r", "--quiet", "clusters/prod/apps")
                save(boot.repository)
            else:
                boot.identity = new_identity()[1]
            running = asyncio.create_task(boot.run(boot.steps(source)))
            while not any(said in text for text in boot.reports):
                assert not running.done(), await running
                await asyncio.sleep(0.02)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            found = await boot.steps(source)[-1].look()
            assert found.presence is Presence.ABSENT
            assert "is not ready" in found.reason


async def test_a_correction_in_git_is_applied_and_what_it_removes_is_removed(tmp_path: Path) -> None:
    with run_kubernetes("double", tmp_path / "kube") as empty:
        async with start(empty, tmp_path) as boot:
            await boot.run(boot.steps(boot.source()))
            git(boot.repository, "rm", "--quiet", "-r", "clusters/prod/infrastructure/configs")
            path = boot.repository / "clusters/prod/infrastructure/configs/other.yaml"
            path.parent.mkdir(parents=True)
            path.write_text(
                FILES["clusters/prod/infrastructure/configs/config.yaml"].replace(
                    "name: config", "name: other"
                )
            )
            save(boot.repository)
            reconciled = boot.steps(boot.source())[-1]
            assert (await reconciled.look()).presence is Presence.ABSENT
            await reconciled.do(boot.reports.append)
            await reconciled.prove(boot.reports.append)
            assert await boot.client.find(ObjectReference("v1", "ConfigMap", "other", "default")) is not None
            assert await boot.client.find(ObjectReference("v1", "ConfigMap", "config", "default")) is None


async def test_an_api_that_is_away_leaves_a_step_unknown_and_never_absent(tmp_path: Path) -> None:
    with run_kubernetes("double", tmp_path) as kube:
        client = open_client(kube)
    client = KubernetesClient(client.access, replace(client._patience, away_s=0.1))
    async with client:
        secrets = (make_sops_age(new_identity()[1]).make_object(),)
        found = await SecretsStep(open_client=always(client), secrets=secrets).look()
    assert found.presence is Presence.UNKNOWN
    assert "did not answer" in found.reason
