"""The steps from nodes in maintenance mode to a Kubernetes API, for one cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.bootstrap.run import PlannedStep
from stackyard.bootstrap.talos.configured import ConfiguredStep
from stackyard.bootstrap.talos.etcd import EtcdStep
from stackyard.bootstrap.talos.health import HealthStep
from stackyard.bootstrap.talos.kubeconfig import KubernetesStep
from stackyard.talosconfig.documents import MAIN
from stackyard.talosconfig.generate import generate_config
from stackyard.talosconfig.patch_files import load_patches

if TYPE_CHECKING:
    from stackyard.bootstrap.boot_record import BootRecord
    from stackyard.bootstrap.talos.access import TalosAccess
    from stackyard.secrets import Keyring
    from stackyard.sources.cluster.model import Cluster, ClusterNode
    from stackyard.talosconfig.bundle import SecretsBundle
    from stackyard.talosconfig.documents import MachineConfig

__all__ = ["BootSettings", "NodePatience", "plan_talos_steps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePatience:
    """How long a node may take.

    Attributes:
        appear_s: Until it answers for the first time.
        install_s: From its configuration until it answers to the certificate of its cluster.
    """

    appear_s: float = 600.0
    install_s: float = 900.0

    def to_appear(self, node: ClusterNode) -> float:
        """Return how long a node may take to answer.

        A worker that has its configuration answers only once a control plane node is installed.
        """
        return self.appear_s if node.is_controller else self.appear_s + self.install_s

    def to_install(self, node: ClusterNode) -> float:
        """Return how long a node may take to run; a worker waits for the control plane, too."""
        return self.install_s if node.is_controller else self.appear_s + 2 * self.install_s


@dataclass(frozen=True, slots=True, kw_only=True)
class BootSettings:
    """How a cluster is booted.

    Attributes:
        access: The Talos API of its nodes.
        record: What outlives the nodes.
        patience: How long a node may take.
        may_form_again: Whether a new etcd is formed where there was one before.
    """

    access: TalosAccess = field(repr=False)
    record: BootRecord
    patience: NodePatience = field(default_factory=NodePatience)
    may_form_again: bool = False


def plan_talos_steps(
    cluster: Cluster, bundle: SecretsBundle, keyring: Keyring, settings: BootSettings
) -> tuple[PlannedStep, ...]:
    """Return the steps of Talos: a configuration for each node, etcd, the Kubernetes API, and health.

    Workers answer only once a control plane node vouches for them. So they get their configuration as soon as
    they are there, and the proof of it needs the control plane: they do not hold up etcd.

    Args:
        cluster: The cluster.
        bundle: Its secrets.
        keyring: The keys that open encrypted patches.
        settings: How it is booted.

    Raises:
        InvalidInputError: A patch of the user cannot be applied.
    """
    configured = [_configure(cluster, node, bundle, keyring, settings) for node in cluster.nodes]
    planned = [
        PlannedStep(
            step=step,
            title=f"Configuring {step.node.name} ({step.node.address})",
            patience_s=settings.patience.to_appear(step.node),
        )
        for step in configured
    ]
    controllers = tuple(step.name for step in configured if step.node.is_controller)
    return (*planned, *_plan_cluster(cluster, settings, controllers, tuple(step.name for step in configured)))


def _plan_cluster(
    cluster: Cluster, settings: BootSettings, controllers: tuple[str, ...], nodes: tuple[str, ...]
) -> tuple[PlannedStep, ...]:
    """Return the steps behind those of control plane nodes, and behind those of all nodes."""
    access = settings.access
    is_shared = all(node.address != cluster.network.api_addr for node in cluster.nodes)
    etcd = EtcdStep(
        controllers=cluster.controllers,
        access=access,
        record=settings.record,
        shared_address=cluster.network.api_addr if is_shared else None,
        may_form_again=settings.may_form_again,
    )
    kubernetes = KubernetesStep(controllers=cluster.controllers, access=access)
    # Nodes get ready with their network plugin, which comes later.
    health = HealthStep(cluster.nodes, access, needs_kubernetes=False)
    return (
        PlannedStep(step=etcd, after=controllers, title="Forming etcd"),
        PlannedStep(
            step=kubernetes, after=(etcd.name,), title="Waiting for the Kubernetes API", is_change=False
        ),
        PlannedStep(
            step=health, after=(*nodes, kubernetes.name), title="Waiting for healthy nodes", is_change=False
        ),
    )


def _configure(
    cluster: Cluster, node: ClusterNode, bundle: SecretsBundle, keyring: Keyring, settings: BootSettings
) -> ConfiguredStep:
    patches = load_patches(cluster.folder, node, keyring)
    config = generate_config(cluster, node.name, bundle, patches)
    return ConfiguredStep(
        node=node,
        config=config.text,
        redactor=config.redactor,
        access=settings.access,
        disk=_find_disk(node, config, is_patched=bool(patches)),
        timeout_s=settings.patience.to_install(node),
    )


def _find_disk(node: ClusterNode, config: MachineConfig, *, is_patched: bool) -> str:
    """Return where a configuration installs Talos; empty where only the node can say.

    A disk image is installed already, wherever it was written to.
    """
    if node.image.is_disk:
        return ""
    if not is_patched:
        return node.disk
    machine = (config.find(MAIN) or {}).get("machine")
    install = machine.get("install") if isinstance(machine, Mapping) else None
    if not isinstance(install, Mapping):
        return ""
    if install.get("disk"):
        return str(install["disk"])
    selector = install.get("diskSelector")
    return str(selector.get("serial") or "") if isinstance(selector, Mapping) else ""
