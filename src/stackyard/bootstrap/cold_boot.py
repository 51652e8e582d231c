"""The steps from nodes in maintenance mode to a Kubernetes API, for one cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.bootstrap.run import PlannedStep
from stackyard.bootstrap.talos.access import TalosAccess
from stackyard.bootstrap.talos.configured import ConfiguredStep
from stackyard.bootstrap.talos.etcd import EtcdStep
from stackyard.bootstrap.talos.kubeconfig import KubernetesStep
from stackyard.talosconfig.generate import generate_config
from stackyard.talosconfig.patch_files import load_patches

if TYPE_CHECKING:
    from stackyard.secrets import Keyring
    from stackyard.sources.cluster.model import Cluster
    from stackyard.talosconfig.bundle import SecretsBundle

__all__ = ["plan_talos_steps"]


def plan_talos_steps(
    cluster: Cluster, bundle: SecretsBundle, keyring: Keyring, *, after: tuple[str, ...] = ()
) -> tuple[PlannedStep, ...]:
    """Return the steps of Talos: a configuration for each node, etcd, and the Kubernetes API.

    Workers answer only once a control plane node vouches for them. So they get their configuration as soon as
    they are there, and the proof of it needs the control plane: they do not hold up etcd.

    Args:
        cluster: The cluster.
        bundle: Its secrets.
        keyring: The keys that open encrypted patches.
        after: Steps before all of these.

    Raises:
        InvalidInputError: A patch of the user cannot be applied.
    """
    access = TalosAccess.of(bundle)
    configured = [
        ConfiguredStep(
            node=node,
            config=generate_config(
                cluster, node.name, bundle, load_patches(cluster.folder, node, keyring)
            ).text,
            access=access,
        )
        for node in cluster.nodes
    ]
    controllers = tuple(step.name for step in configured if step.node.is_controller)
    etcd = EtcdStep(controllers=cluster.controllers, access=access)
    kubernetes = KubernetesStep(controllers=cluster.controllers, access=access)
    return (
        *(
            PlannedStep(step=step, after=after, title=f"Configuring {step.node.name} ({step.node.address})")
            for step in configured
        ),
        PlannedStep(step=etcd, after=controllers, title="Forming etcd"),
        PlannedStep(step=kubernetes, after=(etcd.name,), title="Waiting for the Kubernetes API"),
    )
