"""Which steps a cluster needs from its first API server to everything reconciled, and in which order."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.bootstrap.kubernetes.flux import (
    NAMESPACE,
    KustomizationLayer,
    list_flux_objects,
    make_git_repository,
    make_git_secret,
    make_kustomizations,
)
from stackyard.bootstrap.kubernetes.git_source import GitSource, read_revision
from stackyard.bootstrap.kubernetes.reconciled import ReconciledStep
from stackyard.bootstrap.kubernetes.steps import ApplyStep, NodesReadyStep, OpenClient, SecretsStep
from stackyard.bootstrap.run import PlannedStep
from stackyard.clients.kubernetes import refer_to

if TYPE_CHECKING:
    from stackyard.clients.kubernetes import KubernetesObject

__all__ = ["ChartPlan", "KubernetesPlan", "plan_steps"]

_SYSTEM = "kube-system"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartPlan:
    """A rendered chart; its values may have been secret, so that its objects are not in its repr.

    Attributes:
        name: The name of the release.
        namespace: Where its objects are.
        objects: Its objects.
        after: The charts that come before it.
    """

    name: str
    namespace: str
    objects: tuple[KubernetesObject, ...] = field(repr=False)
    after: tuple[str, ...] = ()

    @property
    def step_name(self) -> str:
        """What its step is called."""
        return f"chart-{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesPlan:
    """What a cluster gets once its API answers; the secrets are not in its repr.

    Attributes:
        nodes: The names of its nodes.
        network: The objects of the network plugin; none if the cluster comes with a network.
        network_namespace: Where objects of the network plugin are that name no namespace.
        network_release: The Helm release that may take the network plugin over.
        charts: Charts that come before Flux.
        operator: The objects of the flux-operator; none if Flux is installed without.
        flux: The objects of Flux; none for a cluster without.
        source: The repository that Flux applies.
        layers: The parts of the repository.
        secrets: The secrets of the cluster, but for the one of the repository.
        decryption: The secret with the age key; empty decrypts nothing.
        timeout_s: How long each proof may take.
    """

    nodes: tuple[str, ...]
    network: tuple[KubernetesObject, ...] = ()
    network_namespace: str = "default"
    network_release: str = ""
    charts: tuple[ChartPlan, ...] = ()
    operator: tuple[KubernetesObject, ...] = ()
    flux: tuple[KubernetesObject, ...] = ()
    source: GitSource | None = None
    layers: tuple[KustomizationLayer, ...] = ()
    secrets: tuple[KubernetesObject, ...] = field(default=(), repr=False)
    decryption: str = "sops-age"
    timeout_s: float = 1800.0


def plan_steps(open_client: OpenClient, plan: KubernetesPlan) -> tuple[PlannedStep, ...]:
    """Return the steps of a cluster, each after those that it needs.

    Args:
        open_client: Returns the client of the cluster; called by each step when it runs, so that the API need
            not answer before. The client stays the caller's, who gives the same one each time and closes it.
        plan: What the cluster gets.

    Raises:
        FluxSettingsError: The source or the layers cannot work.
        SecretValueError: The secret of the repository has no value.
    """
    steps = _plan_network(open_client, plan)
    nodes = steps[-1].step.name
    secrets = _list_secrets(plan)
    if secrets:
        step = SecretsStep(open_client=open_client, secrets=secrets)
        steps.append(PlannedStep(step=step, title=f"Applying {len(secrets)} secrets"))
    steps += [_plan_chart(open_client, plan, chart, nodes) for chart in plan.charts]
    before = (nodes, *(chart.step_name for chart in plan.charts))
    if plan.operator:
        operator = _apply(open_client, plan, "flux-operator", plan.operator)
        steps.append(PlannedStep(step=operator, after=before, title="Installing the flux-operator"))
        before = (operator.name,)
    if plan.flux:
        flux = _apply(open_client, plan, "flux", plan.flux)
        steps.append(PlannedStep(step=flux, after=before, title="Installing Flux"))
    if plan.source is not None:
        steps += _plan_sync(open_client, plan, plan.source, tuple(row.step.name for row in steps))
    return tuple(steps)


def _plan_network(open_client: OpenClient, plan: KubernetesPlan) -> list[PlannedStep]:
    """Return the steps until the nodes are ready; no cluster is up before, whatever else it has."""
    steps = []
    if plan.network:
        network = ApplyStep(
            name="network",
            open_client=open_client,
            objects=plan.network,
            namespace=_SYSTEM,
            default_namespace=plan.network_namespace,
            release=plan.network_release,
            # Its pods run on nodes that are not ready without it: the next step proves it.
            waits_for_workloads=False,
        )
        steps.append(PlannedStep(step=network, title="Applying the network plugin"))
    nodes = NodesReadyStep(open_client=open_client, nodes=plan.nodes, timeout_s=plan.timeout_s)
    after = tuple(row.step.name for row in steps)
    return [*steps, PlannedStep(step=nodes, after=after, title="Waiting for the nodes to be ready")]


def _apply(
    open_client: OpenClient, plan: KubernetesPlan, name: str, objects: tuple[KubernetesObject, ...]
) -> ApplyStep:
    """Return a step of Flux; what the flux-operator is to make of an instance must be ready."""
    return ApplyStep(
        name=name,
        open_client=open_client,
        objects=objects,
        namespace=NAMESPACE,
        default_namespace=NAMESPACE,
        # Its own chart has this name, and another one for the instance: `flux`.
        release=name,
        ready=tuple(refer_to(obj) for obj in objects if obj.get("kind") == "FluxInstance"),
        timeout_s=plan.timeout_s,
    )


def _plan_chart(open_client: OpenClient, plan: KubernetesPlan, chart: ChartPlan, nodes: str) -> PlannedStep:
    step = ApplyStep(
        name=chart.step_name,
        open_client=open_client,
        objects=chart.objects,
        namespace=chart.namespace,
        default_namespace=chart.namespace,
        release=chart.name,
        timeout_s=plan.timeout_s,
    )
    after = {one.name: one.step_name for one in plan.charts}
    before = (nodes, *(after[name] for name in chart.after))
    return PlannedStep(step=step, after=before, title=f"Applying the chart {chart.name}")


def _list_secrets(plan: KubernetesPlan) -> tuple[KubernetesObject, ...]:
    found = None if plan.source is None else make_git_secret(plan.source)
    return plan.secrets if found is None else (*plan.secrets, found.make_object())


def _plan_sync(
    open_client: OpenClient, plan: KubernetesPlan, source: GitSource, after: tuple[str, ...]
) -> tuple[PlannedStep, PlannedStep]:
    kustomizations = make_kustomizations(source, plan.layers, decryption=plan.decryption)
    objects = (make_git_repository(source), *kustomizations)
    sync = ApplyStep(
        name="sync",
        open_client=open_client,
        objects=objects,
        namespace=NAMESPACE,
        kind_patience_s=plan.timeout_s,
    )
    reconciled = ReconciledStep(
        open_client=open_client,
        objects=list_flux_objects(objects),
        read_revision=functools.partial(read_revision, source),
        timeout_s=plan.timeout_s,
    )
    return (
        PlannedStep(step=sync, after=after, title="Telling Flux what to apply"),
        PlannedStep(step=reconciled, after=(sync.name,), title="Waiting for Flux"),
    )
