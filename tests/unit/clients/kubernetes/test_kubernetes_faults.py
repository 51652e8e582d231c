"""What the client does when an API server is away, busy, untrusted, or has forgotten."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
import yarl
from tests.support.kubernetes import open_client, run_kubernetes
from tests.support.tcp_gate import TcpGate, run_gate

from pvelab.kubernetes import Authority, RunningKubernetes
from pvelab.kubernetes.permissions import User
from stackyard.clients.kubernetes import (
    KubernetesClient,
    KubernetesLoginError,
    KubernetesUnreachableError,
    ObjectReference,
    Patience,
    Selection,
    WatchChange,
    has_condition,
    is_present,
    parse_kubeconfig,
)

MAPS = Selection(api_version="v1", kind="ConfigMap", namespace="default")


@pytest.fixture
def kube(tmp_path: Path) -> Iterator[RunningKubernetes]:
    with run_kubernetes("double", tmp_path) as running:
        yield running


@contextlib.contextmanager
def gated(kube: RunningKubernetes) -> Iterator[tuple[RunningKubernetes, TcpGate]]:
    port = yarl.URL(kube.url).port
    assert port is not None
    with run_gate(port) as gate:
        yield dataclasses.replace(kube, url=f"https://127.0.0.1:{gate.port}"), gate


def make_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


async def next_event(events: object, change: WatchChange) -> str:
    async for event in events:  # type: ignore[attr-defined]
        if event.change is change:
            return str(event.object.get("metadata", {}).get("name", ""))
    raise AssertionError("a watch has no end")


async def test_an_api_server_that_is_away_is_named_with_the_request_after_the_patience(
    kube: RunningKubernetes,
) -> None:
    with gated(kube) as (through, gate):
        access = parse_kubeconfig(through.make_kubeconfig())
        async with KubernetesClient(access, Patience(away_s=0.3)) as client:
            await client.apply(make_map("a"))
            gate.shut()
            with pytest.raises(
                KubernetesUnreachableError, match=r"GET /api/v1/namespaces/default/configmaps/a"
            ):
                await client.get(ObjectReference("v1", "ConfigMap", "a", "default"))


async def test_a_request_waits_for_an_api_server_that_comes_back(kube: RunningKubernetes) -> None:
    with gated(kube) as (through, gate):
        async with open_client(through) as client:
            await client.find_kind("v1", "ConfigMap")
            gate.shut()
            applying = asyncio.create_task(client.apply(make_map("late")))
            while gate.refused == 0:
                await asyncio.sleep(0.01)
            gate.open()
            assert (await applying).reference.name == "late"


async def test_a_watch_misses_nothing_while_its_connection_is_broken(kube: RunningKubernetes) -> None:
    with gated(kube) as (through, gate):
        async with (
            open_client(through) as watcher,
            open_client(kube) as writer,
            contextlib.aclosing(watcher.watch(MAPS)) as events,
        ):
            await next_event(events, WatchChange.LISTED)
            await writer.apply(make_map("first"))
            assert await next_event(events, WatchChange.ADDED) == "first"
            gate.shut()
            waiting = asyncio.create_task(next_event(events, WatchChange.ADDED))
            await writer.apply(make_map("second"))
            while gate.refused == 0:
                await asyncio.sleep(0.01)
            gate.open()
            assert await asyncio.wait_for(waiting, 10.0) == "second"


async def test_a_watch_that_is_too_old_lists_again_and_reports_what_is_gone(kube: RunningKubernetes) -> None:
    assert kube.api is not None
    with gated(kube) as (through, gate):
        async with open_client(through) as watcher, open_client(kube) as writer:
            await writer.apply(make_map("doomed"))
            async with contextlib.aclosing(watcher.watch(MAPS)) as events:
                await next_event(events, WatchChange.LISTED)
                gate.shut()
                waiting = asyncio.create_task(next_event(events, WatchChange.DELETED))
                while gate.refused == 0:
                    await asyncio.sleep(0.01)
                await writer.delete(ObjectReference("v1", "ConfigMap", "doomed", "default"))
                kube.api.cluster.store.compact()
                gate.open()
                assert await asyncio.wait_for(waiting, 10.0) == "doomed"


async def test_a_wait_survives_an_api_server_that_restarts(kube: RunningKubernetes) -> None:
    with gated(kube) as (through, gate):
        async with open_client(through) as watcher, open_client(kube) as writer:
            reference = ObjectReference("v1", "ConfigMap", "late", "default")
            started = asyncio.Event()
            wait = watcher.wait_until(
                reference, is_present(), timeout_s=10.0, on_waiting=lambda _: started.set()
            )
            waiting = asyncio.create_task(wait)
            await started.wait()
            gate.shut()
            await writer.apply(make_map("late"))
            gate.open()
            assert (await waiting)["metadata"]["name"] == "late"


async def test_a_client_of_another_cluster_is_refused_at_login(kube: RunningKubernetes) -> None:
    access = parse_kubeconfig(kube.make_kubeconfig())
    stranger = dataclasses.replace(access, certificate_pem=None, key_pem=None, token="a-wrong-token")
    async with KubernetesClient(stranger, Patience(away_s=0.1)) as client:
        with pytest.raises(KubernetesLoginError) as caught:
            await client.read_version()
    assert "a-wrong-token" not in caught.value.detail
    assert "expired" in caught.value.remedy


async def test_a_token_logs_in_as_its_user(kube: RunningKubernetes) -> None:
    assert kube.api is not None
    kube.api.tokens["a-good-token"] = User(name="robot", groups=("system:masters",))
    access = parse_kubeconfig(kube.make_kubeconfig())
    robot = dataclasses.replace(access, certificate_pem=None, key_pem=None, token="a-good-token")
    async with KubernetesClient(robot, Patience(away_s=0.1)) as client:
        assert await client.read_version() == "v1.36.3"


async def test_a_server_that_another_authority_signed_is_not_trusted(kube: RunningKubernetes) -> None:
    access = parse_kubeconfig(Authority.make().make_kubeconfig(kube.url))
    async with KubernetesClient(access, Patience(away_s=0.1)) as client:
        with pytest.raises(KubernetesUnreachableError, match="certificate"):
            await client.read_version()


def test_a_condition_of_an_earlier_generation_does_not_count() -> None:
    judge = has_condition("Ready").judge
    row = {"type": "Ready", "status": "True", "observedGeneration": 1}
    obj = {"metadata": {"generation": 2}, "status": {"conditions": [row]}}
    assert "earlier version" in judge(obj)
    assert judge({**obj, "metadata": {"generation": 1}}) == ""
