"""What the double does beyond the contract: what kubectl asks of it, and the end of a namespace."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.judges import find_judge
from tests.support.kubernetes import open_client, run_kubernetes

from pvelab.kubernetes import RunningKubernetes
from pvelab.kubernetes.controllers import LabNode, run_controllers
from pvelab.kubernetes.snapshot import restore_snapshot, take_snapshot
from stackyard.clients.kubernetes import (
    ApplyOptions,
    Change,
    FieldConflictError,
    ObjectReference,
    has_condition,
    is_gone,
    parse_manifests,
)

MANIFEST = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: default}
data: {a: "%s"}
"""


@pytest.fixture
def kube(tmp_path: Path) -> Iterator[RunningKubernetes]:
    with run_kubernetes("double", tmp_path / "kube") as running:
        yield running


@pytest.mark.judges("kubectl")
def test_kubectl_applies_reads_and_deletes(kube: RunningKubernetes, tmp_path: Path) -> None:
    kubectl = find_judge("kubectl")
    config = tmp_path / "config"
    config.write_text(kube.make_kubeconfig())

    def run(*words: str, text: str = "") -> str:
        argv = [str(kubectl), "--kubeconfig", str(config), "--cache-dir", str(tmp_path / "cache"), *words]
        done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout + done.stderr

    apply = ("apply", "--server-side", "--validate=false", "-f", "-")
    assert "configmap/settings serverside-applied" in run(*apply, text=MANIFEST % "1")
    assert "conflict with" in run(*apply, "--field-manager=other", text=MANIFEST % "2")
    assert run("get", "configmap", "settings", "-o", "jsonpath={.data.a}") == "1"
    assert "default" in run("get", "ns", "-o", "name")
    run("label", "configmap", "settings", "tier=front")
    assert "configmap/settings" in run("get", "configmaps", "-l", "tier=front", "-o", "name")
    assert 'configmap "settings" deleted' in run("delete", "configmap", "settings")


async def test_a_namespace_goes_with_everything_in_it(kube: RunningKubernetes, tmp_path: Path) -> None:
    namespace = ObjectReference("v1", "Namespace", "doomed")
    async with open_client(kube) as client, run_controllers(kube, folder=tmp_path):
        for kind, metadata in (
            ("Namespace", {"name": "doomed"}),
            ("ConfigMap", {"name": "inside", "namespace": "doomed"}),
        ):
            await client.apply({"apiVersion": "v1", "kind": kind, "metadata": metadata})
        await client.delete(namespace)
        await client.wait_until(namespace, is_gone(), timeout_s=10.0)
        assert await client.find(ObjectReference("v1", "ConfigMap", "inside", "doomed")) is None


async def test_a_snapshot_restores_objects_their_managers_and_never_a_version_twice(
    kube: RunningKubernetes,
) -> None:
    assert kube.api is not None
    store = kube.api.cluster.store
    settings = ObjectReference("v1", "ConfigMap", "settings", "default")
    (obj,) = parse_manifests(MANIFEST % "1")
    async with open_client(kube) as client:
        await client.apply(obj)
        kept = take_snapshot(store)
        await client.delete(settings)
        await client.apply({**obj, "metadata": {"name": "later", "namespace": "default"}})
        version = store.version
        restore_snapshot(store, kept)
        assert store.version > version
        assert (await client.get(settings))["data"] == {"a": "1"}
        assert await client.find(ObjectReference("v1", "ConfigMap", "later", "default")) is None
        assert (await client.apply(obj)).change is Change.UNCHANGED
        with pytest.raises(FieldConflictError, match="stackyard"):
            await client.apply({**obj, "data": {"a": "2"}}, ApplyOptions(manager="other"))


async def test_a_node_that_has_left_is_unknown_and_comes_back_as_it_was(
    kube: RunningKubernetes, tmp_path: Path
) -> None:
    node = LabNode(name="worker-1")
    async with open_client(kube) as client, run_controllers(kube, (node,), folder=tmp_path) as controllers:
        reference = ObjectReference("v1", "Node", "worker-1")
        reasons: list[str] = []
        waiting = asyncio.create_task(
            client.wait_until(reference, has_condition("Ready"), timeout_s=10.0, on_waiting=reasons.append)
        )
        for change, said in (("", "cni plugin"), ("leave", "stopped posting"), ("join", "cni plugin")):
            reasons.clear()
            if change == "leave":
                controllers.leave(node.name)
            elif change == "join":
                controllers.join(node)
            while not any(said in reason for reason in reasons):
                assert not waiting.done()
                await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
