"""What a cold boot needs is away for a while: the run says so, and the next one continues."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.support.kubernetes import run_kubernetes
from tests.support.kubernetes_boot import Boot, start
from tests.support.tcp_gate import TcpGate, run_gate

from pvelab.kubernetes import RunningKubernetes
from stackyard.bootstrap import Presence
from stackyard.bootstrap.kubernetes import GitSource
from stackyard.clients.kubernetes import (
    KubernetesClient,
    KubernetesUnreachableError,
    Patience,
    parse_kubeconfig,
)

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="there is no ssh on PATH")


@pytest.fixture
def kube(tmp_path: Path) -> Iterator[RunningKubernetes]:
    """An API with nothing in it."""
    with run_kubernetes("double", tmp_path / "kube") as running:
        yield running


def open_through(kube: RunningKubernetes, gate: TcpGate, away_s: float) -> KubernetesClient:
    text = kube.make_kubeconfig().replace(f":{urlsplit(kube.url).port}", f":{gate.port}")
    return KubernetesClient(parse_kubeconfig(text), Patience(answer_s=20.0, away_s=away_s))


@pytest.mark.parametrize("name", ["flux", "sync", "reconciled"])
async def test_an_api_that_goes_away_within_a_step_of_flux_is_named_and_the_next_run_continues(
    name: str, kube: RunningKubernetes, tmp_path: Path
) -> None:
    with run_gate(urlsplit(kube.url).port or 0) as gate:
        async with start(kube, tmp_path) as boot, open_through(kube, gate, 0.2) as client:
            boot.client = client
            steps = boot.steps(boot.source())
            names = [step.name for step in steps]
            await boot.run(steps[: names.index(name)])

            def break_off(reason: str) -> None:
                boot.reports.append(reason)
                gate.shut()

            with pytest.raises(KubernetesUnreachableError, match="did not answer"):
                await steps[names.index(name)].do(break_off)
            found = await steps[names.index(name)].look()
            assert found.presence is Presence.UNKNOWN
            gate.open()
            # The source may be fetched again after the outage, and the rest be reconciled by then.
            left = names[min(names.index(name), names.index("sync")) :]
            assert set(await boot.run(steps)) <= set(left)
            assert await boot.run(steps) == []


async def test_an_api_that_is_away_for_seconds_only_delays_the_run(
    kube: RunningKubernetes, tmp_path: Path
) -> None:
    with run_gate(urlsplit(kube.url).port or 0) as gate:
        async with start(kube, tmp_path) as boot, open_through(kube, gate, 30.0) as client:
            boot.client = client
            running = asyncio.create_task(boot.run(boot.steps(boot.source())))
            await _until(boot, running, "GitRepository")
            gate.shut()
            while gate.refused == 0:
                assert not running.done(), await running
                await asyncio.sleep(0.02)
            gate.open()
            assert "reconciled" in await running


async def _until(boot: Boot, running: asyncio.Task[list[str]], said: str) -> None:
    while not any(said in text for text in boot.reports):
        assert not running.done(), await running
        await asyncio.sleep(0.02)


def source_behind(boot: Boot, gate: TcpGate) -> GitSource:
    there, here = str(boot.host.port), str(gate.port)
    source = boot.source(known_hosts=boot.host.known_hosts.replace(there, here))
    return replace(source, url=source.url.replace(there, here))


async def test_a_git_host_that_is_away_is_named_and_flux_continues_when_it_is_back(
    kube: RunningKubernetes, tmp_path: Path
) -> None:
    async with start(kube, tmp_path) as boot:
        with run_gate(boot.host.port) as gate:
            gate.shut()
            steps = boot.steps(source_behind(boot, gate))
            running = asyncio.create_task(boot.run(steps))
            await _until(boot, running, "unable to clone")
            gate.open()
            assert "reconciled" in await running
            gate.shut()
            found = await steps[-1].look()
            assert found.presence is Presence.UNKNOWN, "everything is ready, and may be of an earlier commit"
            assert f"127.0.0.1:{gate.port}" in found.reason
            assert "cannot be reached" in found.reason
            proving = asyncio.create_task(steps[-1].prove(boot.reports.append))
            while not any("cannot be reached" in text for text in boot.reports):
                assert not proving.done()
                await asyncio.sleep(0.02)
            gate.open()
            await proving
