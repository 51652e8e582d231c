"""From an API without nodes to everything reconciled, with the lab's controllers and a real Git host."""

from __future__ import annotations

import asyncio
import base64
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.git_ssh import serve_git
from tests.support.kubernetes import always, open_client, run_kubernetes, wait_in_vain
from tests.support.kubernetes_boot import FILES, Boot, save, start
from tests.support.repositories import git

from pvelab.kubernetes import RunningKubernetes
from pvelab.kubernetes.controllers import LabNode, run_controllers
from stackyard.bootstrap import Presence
from stackyard.bootstrap.kubernetes import (
    NodesReadyStep,
    SecretsStep,
    list_flux_objects,
    make_kustomizations,
    make_layers,
    make_sops_age,
)
from stackyard.clients.kubernetes import (
    KubernetesClient,
    ObjectReference,
    has_condition,
)
from stackyard.secrets import new_identity

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
        done = await boot.run(steps)
        # What is only waited for may be there when it is looked for.
        waits = {"nodes-ready", "reconciled"}
        assert [name for name in done if name not in waits] == [
            step.name for step in steps if step.name not in waits
        ]
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
        # The node has a reason once the controllers have seen it.
        reasons: list[str] = []
        ready = client.wait_until(
            ObjectReference("v1", "Node", node),
            has_condition("Ready"),
            timeout_s=60.0,
            on_waiting=reasons.append,
        )
        seen = asyncio.create_task(ready)
        while not any("cni plugin" in reason for reason in reasons):
            assert not seen.done(), await seen
            await asyncio.sleep(0.01)
        seen.cancel()
        await asyncio.gather(seen, return_exceptions=True)
        step = NodesReadyStep(open_client=always(client), nodes=(node,))
        in_vain = wait_in_vain(lambda s: replace(step, timeout_s=s).prove(lambda _: None))
        assert "cni plugin not initialized" in await in_vain
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
