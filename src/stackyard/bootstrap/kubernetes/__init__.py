"""The part of a cold boot that speaks to a Kubernetes API: network, Flux, secrets, reconciliation.

`network`, `helm`, `flux` and `secrets` make objects; `input` makes the plan of a cluster from its files.
`steps` and `reconciled` have the steps that apply and watch objects, and `plan_steps` gives all steps of a
cluster in their order. No step sets a condition: those are the words of the cluster's own controllers.
"""

from __future__ import annotations

from stackyard.bootstrap.kubernetes.flux import (
    LAYERS,
    FluxMissingError,
    KustomizationLayer,
    export_flux,
    list_flux_objects,
    make_flux_instance,
    make_git_repository,
    make_git_secret,
    make_kustomizations,
    make_layers,
)
from stackyard.bootstrap.kubernetes.git_source import FluxSettingsError, GitAccess, GitSource, read_revision
from stackyard.bootstrap.kubernetes.helm import HelmChart, HelmMissingError, render_chart
from stackyard.bootstrap.kubernetes.network import CILIUM_VERSION, make_cilium
from stackyard.bootstrap.kubernetes.plan import ChartPlan, KubernetesPlan, plan_steps
from stackyard.bootstrap.kubernetes.reconciled import ReconciledStep
from stackyard.bootstrap.kubernetes.secrets import (
    SecretValues,
    make_cloudflare,
    make_sops_age,
    make_truenas,
    read_secrets_file,
)
from stackyard.bootstrap.kubernetes.steps import ApplyStep, NodesReadyStep, OpenClient, SecretsStep

__all__ = [
    "CILIUM_VERSION",
    "LAYERS",
    "ApplyStep",
    "ChartPlan",
    "FluxMissingError",
    "FluxSettingsError",
    "GitAccess",
    "GitSource",
    "HelmChart",
    "HelmMissingError",
    "KubernetesPlan",
    "KustomizationLayer",
    "NodesReadyStep",
    "OpenClient",
    "ReconciledStep",
    "SecretValues",
    "SecretsStep",
    "export_flux",
    "list_flux_objects",
    "make_cilium",
    "make_cloudflare",
    "make_flux_instance",
    "make_git_repository",
    "make_git_secret",
    "make_kustomizations",
    "make_layers",
    "make_sops_age",
    "make_truenas",
    "plan_steps",
    "read_revision",
    "read_secrets_file",
    "render_chart",
]
