"""Which steps a cluster needs from its first API server to everything reconciled, and in which order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.bootstrap.kubernetes.flux import (
    NAMESPACE,
    GitSource,
    KustomizationLayer,
    list_flux_objects,
    make_git_repository,
    make_git_secret,
    make_kustomizations,
)
from stackyard.bootstrap.kubernetes.steps import ApplyStep, NodesReadyStep, ReconciledStep, SecretsStep
from stackyard.bootstrap.run import PlannedStep

if TYPE_CHECKING:
    from stackyard.clients.kubernetes import KubernetesClient, KubernetesObject

__all__ = ["KubernetesPlan", "plan_steps"]

_SYSTEM = "kube-system"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesPlan:
    """What a cluster gets once its API answers; the secrets are not in its repr.

    Attributes:
        nodes: The names of its nodes.
        network: The objects of the network plugin; none if the cluster comes with a network.
        flux: The objects of Flux; none for a cluster without.
        source: The repository that Flux applies.
        layers: The parts of the repository.
        secrets: The secrets of the cluster, but for the one of the repository.
        decryption: The secret with the age key; empty decrypts nothing.
        revision: A part of the revision that must be applied in the end; empty takes any.
        timeout_s: How long each proof may take.
    """

    nodes: tuple[str, ...]
    network: tuple[KubernetesObject, ...] = ()
    flux: tuple[KubernetesObject, ...] = ()
    source: GitSource | None = None
    layers: tuple[KustomizationLayer, ...] = ()
    secrets: tuple[KubernetesObject, ...] = field(default=(), repr=False)
    decryption: str = "sops-age"
    revision: str = ""
    timeout_s: float = 1800.0


def plan_steps(client: KubernetesClient, plan: KubernetesPlan) -> tuple[PlannedStep, ...]:
    """Return the steps of a cluster, each after those that it needs.

    Raises:
        FluxSettingsError: The source or the layers cannot work.
        SecretValueError: The secret of the repository has no value.
    """
    steps: list[PlannedStep] = []
    if plan.network:
        network = ApplyStep(
            name="network",
            client=client,
            objects=plan.network,
            namespace=_SYSTEM,
            # Its pods run on nodes that are not ready without it: the next step proves it.
            waits_for_workloads=False,
        )
        steps.append(PlannedStep(step=network))
    nodes = NodesReadyStep(client=client, nodes=plan.nodes, timeout_s=plan.timeout_s)
    steps.append(PlannedStep(step=nodes, after=tuple(row.step.name for row in steps)))
    secrets = _list_secrets(plan)
    if secrets:
        steps.append(PlannedStep(step=SecretsStep(client=client, secrets=secrets)))
    if plan.flux:
        flux = ApplyStep(
            name="flux",
            client=client,
            objects=plan.flux,
            namespace=NAMESPACE,
            timeout_s=plan.timeout_s,
        )
        steps.append(PlannedStep(step=flux, after=(nodes.name,)))
    if plan.source is not None:
        steps += _plan_sync(client, plan, plan.source, tuple(row.step.name for row in steps))
    return tuple(steps)


def _list_secrets(plan: KubernetesPlan) -> tuple[KubernetesObject, ...]:
    found = None if plan.source is None else make_git_secret(plan.source)
    return plan.secrets if found is None else (*plan.secrets, found.make_object())


def _plan_sync(
    client: KubernetesClient, plan: KubernetesPlan, source: GitSource, after: tuple[str, ...]
) -> tuple[PlannedStep, PlannedStep]:
    kustomizations = make_kustomizations(source, plan.layers, decryption=plan.decryption)
    objects = (make_git_repository(source), *kustomizations)
    sync = ApplyStep(
        name="sync",
        client=client,
        objects=objects,
        namespace=NAMESPACE,
        kind_patience_s=plan.timeout_s,
    )
    reconciled = ReconciledStep(
        client=client,
        objects=list_flux_objects(objects),
        revision=plan.revision,
        timeout_s=plan.timeout_s,
    )
    return PlannedStep(step=sync, after=after), PlannedStep(step=reconciled, after=(sync.name,))
