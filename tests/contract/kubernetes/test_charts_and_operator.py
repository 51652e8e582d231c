"""What comes before Flux or brings it: charts with kinds of their own, and the flux-operator."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.flux_operator import OPERATOR, run_flux_operator
from tests.support.kubernetes import run_kubernetes
from tests.support.kubernetes_boot import DATA, start

from pvelab.kubernetes import RunningKubernetes
from stackyard.bootstrap import Presence
from stackyard.bootstrap.kubernetes import ChartPlan, make_flux_instance
from stackyard.clients.kubernetes import ApplyOptions, ObjectReference, parse_manifests, read_manifests

CHART = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: zones.net.example.com}
spec:
  group: net.example.com
  scope: Cluster
  names: {kind: Zone, listKind: ZoneList, plural: zones, singular: zone}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: net.example.com/v1
kind: Zone
metadata: {name: home}
---
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
ZONES = "apiVersion: net.example.com/v1\nkind: Zone\nmetadata: {name: away}\n"

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


async def test_charts_come_before_flux_in_their_namespaces_and_a_second_run_changes_nothing(
    empty: RunningKubernetes, tmp_path: Path
) -> None:
    charts = (
        ChartPlan(name="net", namespace="net-system", objects=parse_manifests(CHART)),
        # Its kind is one of the chart before it: only the API server knows that it is in no namespace.
        ChartPlan(name="zones", namespace="zones", objects=parse_manifests(ZONES), after=("net",)),
    )
    async with start(empty, tmp_path) as boot:
        steps = boot.steps(boot.source(), charts=charts)
        done = await boot.run(steps)
        assert done.index("chart-net") < done.index("chart-zones") < done.index("flux")
        agent = ObjectReference("apps/v1", "Deployment", "agent", "net-system")
        assert await boot.client.find(agent) is not None
        for name in ("home", "away"):
            zone = await boot.client.get(ObjectReference("net.example.com/v1", "Zone", name))
            assert "namespace" not in zone["metadata"]
        assert await boot.run(steps) == [], boot.reports[-3:]


async def test_a_chart_that_a_helm_release_has_taken_over_is_left_to_it(
    empty: RunningKubernetes, tmp_path: Path
) -> None:
    charts = (ChartPlan(name="net", namespace="net-system", objects=parse_manifests(CHART)),)
    async with start(empty, tmp_path) as boot:
        steps = boot.steps(boot.source(), charts=charts)
        await boot.run(steps)
        agent, taken = parse_manifests(CHART)[-1], ApplyOptions(manager="helm-controller", force=True)
        spec = {**agent["spec"], "replicas": 2}
        await boot.client.apply(
            {**agent, "metadata": {"name": "agent", "namespace": "net-system"}, "spec": spec}, taken
        )
        step = next(one for one in steps if one.name == "chart-net")
        assert (await step.look()).presence is Presence.ABSENT
        labels = {"owner": "helm", "name": "net", "status": "deployed"}
        metadata = {"name": "sh.helm.release.v1.net.v1", "namespace": "net-system", "labels": labels}
        release = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "helm.sh/release.v1"}
        await boot.client.apply(release, taken)
        assert await boot.run(steps) == []
        found = await boot.client.get(ObjectReference("apps/v1", "Deployment", "agent", "net-system"))
        assert found["spec"]["replicas"] == 2


async def test_the_operator_brings_flux_from_one_object(empty: RunningKubernetes, tmp_path: Path) -> None:
    flux = read_manifests(DATA / "flux.yaml")
    async with start(empty, tmp_path) as boot, run_flux_operator(empty, flux):
        steps = boot.steps(
            boot.source(),
            operator=parse_manifests(OPERATOR),
            flux=(make_flux_instance(version="2.7.x", components=("source-controller",)),),
        )
        done = await boot.run(steps)
        assert done.index("flux-operator") < done.index("flux") < done.index("reconciled")
        operator = ObjectReference("apps/v1", "Deployment", "flux-operator", "flux-system")
        assert await boot.client.find(operator) is not None
        assert await boot.run(steps) == [], boot.reports[-3:]
