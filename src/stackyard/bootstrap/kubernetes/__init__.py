"""The part of a cold boot that speaks to a Kubernetes API: network, Flux, secrets, reconciliation.

`network`, `flux` and `secrets` make objects and touch nothing; `steps` has the steps that apply and watch
them, and `plan_steps` gives all steps of a cluster in their order. No step sets a condition: those are the
words of the cluster's own controllers.
"""

from __future__ import annotations

from stackyard.bootstrap.kubernetes.flux import (
    LAYERS,
    GitAccess,
    GitSource,
    KustomizationLayer,
    export_flux,
    list_flux_objects,
    make_flux_instance,
    make_git_repository,
    make_git_secret,
    make_kustomizations,
    make_layers,
)
from stackyard.bootstrap.kubernetes.network import HelmChart, make_cilium, render_chart
from stackyard.bootstrap.kubernetes.plan import KubernetesPlan, plan_steps
from stackyard.bootstrap.kubernetes.secrets import (
    SecretValues,
    make_cloudflare,
    make_sops_age,
    make_truenas,
    read_secrets_file,
)
from stackyard.bootstrap.kubernetes.steps import ApplyStep, NodesReadyStep, ReconciledStep, SecretsStep

__all__ = [
    "LAYERS",
    "ApplyStep",
    "GitAccess",
    "GitSource",
    "HelmChart",
    "KubernetesPlan",
    "KustomizationLayer",
    "NodesReadyStep",
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
    "read_secrets_file",
    "render_chart",
]
