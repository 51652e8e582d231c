"""A cluster with what its nodes are reached by: its secrets, and a certificate in memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stackyard.bootstrap.talos.access import TalosAccess
from stackyard.cli.runs.clusters.infra import choose_cluster
from stackyard.path.clusters.keys import make_keyring
from stackyard.sources.cluster.load import load_cluster
from stackyard.talosconfig.bundle_file import load_bundle

if TYPE_CHECKING:
    from stackyard.secrets import Keyring
    from stackyard.sources.cluster.model import Cluster
    from stackyard.talosconfig.bundle import SecretsBundle

__all__ = ["LOOK_S", "TalosCluster", "open_talos_cluster"]

# A node that takes longer for an answer is reported as one that does not answer.
LOOK_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TalosCluster:
    """A cluster, and what opens it.

    Attributes:
        cluster: The cluster.
        bundle: Its secrets.
        keyring: The keys of the user.
        access: The API of its nodes.
    """

    cluster: Cluster
    bundle: SecretsBundle = field(repr=False)
    keyring: Keyring = field(repr=False)
    access: TalosAccess = field(repr=False)


def open_talos_cluster(name: str | None, *, timeout_s: float = 15.0) -> TalosCluster:
    """Return a cluster that has secrets.

    Args:
        name: Its name; the only one when absent.
        timeout_s: How long one call of a node may take.

    Raises:
        ClusterNotFoundError: There is none of that name.
        SecretsLockedError: Its secrets are encrypted for others.
        InvalidInputError: Something is wrong with its files.
        BundleMissingError: It has no secrets yet.
    """
    _, folder = choose_cluster(name)
    keyring = make_keyring(folder)
    cluster, bundle = load_cluster(folder, keyring=keyring), load_bundle(folder, keyring)
    access = replace(TalosAccess.of(bundle), timeout_s=timeout_s)
    return TalosCluster(cluster=cluster, bundle=bundle, keyring=keyring, access=access)
