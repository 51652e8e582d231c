"""What administrators of a cluster need to use it with kubectl and talosctl."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.bootstrap.talos.access import TalosAccess
from stackyard.bootstrap.talos.kubeconfig import fetch_kubeconfig
from stackyard.cli.runs.clusters.infra import choose_cluster
from stackyard.clients.kubernetes.kubeconfig import rename_context
from stackyard.path.clusters.keys import make_keyring
from stackyard.sources.cluster.load import load_cluster
from stackyard.talosconfig.bundle import issue_admin
from stackyard.talosconfig.bundle_file import load_bundle
from stackyard.talosconfig.client_config import make_client_config, write_client_config

if TYPE_CHECKING:
    from stackyard.sources.cluster.model import Cluster
    from stackyard.talosconfig.bundle import SecretsBundle

__all__ = ["make_talosconfig", "open_cluster_secrets", "read_kubeconfig"]


def open_cluster_secrets(name: str | None) -> tuple[Cluster, SecretsBundle]:
    """Return a cluster and its secrets.

    Raises:
        ClusterNotFoundError: There is none of that name.
        SecretsLockedError: Its secrets are encrypted for others.
        InvalidInputError: Something is wrong with its files, or it has no secrets yet.
    """
    _, folder = choose_cluster(name)
    keyring = make_keyring(folder)
    return load_cluster(folder, keyring=keyring), load_bundle(folder, keyring)


async def read_kubeconfig(name: str | None, context: str | None = None) -> str:
    """Return a kubeconfig from a control plane node.

    Args:
        name: The cluster.
        context: What its context is to be called; Talos calls it `admin@CLUSTER`.

    Raises:
        TalosError: None of them gives one.
        StackyardError: As for `open_cluster_secrets`.
    """
    cluster, bundle = open_cluster_secrets(name)
    text = await fetch_kubeconfig(cluster.controllers, TalosAccess.of(bundle))
    return text if context is None else rename_context(text, context)


def make_talosconfig(name: str | None) -> str:
    """Return a talosconfig with a new certificate.

    Raises:
        StackyardError: As for `open_cluster_secrets`.
    """
    cluster, bundle = open_cluster_secrets(name)
    controllers = tuple(str(node.address) for node in cluster.controllers)
    nodes = tuple(str(node.address) for node in cluster.nodes)
    made = make_client_config(cluster.name, controllers, bundle, issue_admin(bundle), nodes)
    return write_client_config(made)
