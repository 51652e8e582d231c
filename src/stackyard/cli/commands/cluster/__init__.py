"""`stackyard cluster`: Talos clusters and the files that are generated for them."""

from __future__ import annotations

from stackyard.cli.command import LazyCommand, group

__all__ = ["cluster"]

_LATER = {
    "configure": LazyCommand(
        module="stackyard.cli.commands.cluster.configure",
        name="configure",
        help="Write the files of a Talos cluster: infrastructure/, encrypted secrets, .gitignore.",
    ),
    "explain": LazyCommand(
        module="stackyard.cli.commands.cluster.explain",
        name="explain",
        help="Say what FIELD is for, or where each value of NODE comes from.",
    ),
    "images": LazyCommand(
        module="stackyard.cli.commands.cluster.images",
        name="images",
        help="List the Talos images of a cluster, and pin their SHA-256 with --pin.",
    ),
    "init": LazyCommand(
        module="stackyard.cli.commands.cluster.init",
        name="init",
        help="Write commented files of a cluster to start with into DIR (default: the current folder).",
    ),
    "kubeconfig": LazyCommand(
        module="stackyard.cli.commands.cluster.access",
        name="kubeconfig",
        help="Get a kubeconfig of a cluster, with a new client certificate, from a control plane node.",
    ),
    "name-nodes": LazyCommand(
        module="stackyard.cli.commands.cluster.name_nodes",
        name="name_nodes",
        help="Write the nodes that `nodes_count` asks for into nodes.yaml.",
    ),
    "schema": LazyCommand(
        module="stackyard.cli.commands.cluster.schema",
        name="schema",
        help="Print the JSON Schema of a file of a cluster, for editors that check it while you type.",
    ),
    "show": LazyCommand(
        module="stackyard.cli.commands.cluster.show",
        name="show",
        help="Show the nodes of a cluster with all values resolved, as a table or a graph.",
    ),
    "split": LazyCommand(
        module="stackyard.cli.commands.cluster.split",
        name="split",
        help="Move the secrets out of cluster.yaml into cluster.sops.yaml, so that git may hold both.",
    ),
    "status": LazyCommand(
        module="stackyard.cli.commands.cluster.status",
        name="status",
        help="Show what every node of a cluster says: its stage, its version, services that are not healthy.",
    ),
    "talosconfig": LazyCommand(
        module="stackyard.cli.commands.cluster.access",
        name="talosconfig",
        help="Make a talosconfig of a cluster, with a new client certificate, from its encrypted secrets.",
    ),
    "up": LazyCommand(
        module="stackyard.cli.commands.cluster.up",
        name="up",
        help="Bring a cluster up: VMs, Talos on every node, etcd, the Kubernetes API.",
    ),
    "validate": LazyCommand(
        module="stackyard.cli.commands.cluster.validate",
        name="validate",
        help="Check CLUSTER, or all clusters of the repository, and report all problems at once.",
    ),
}


@group("cluster", later=_LATER)
def cluster() -> None:
    """Describe Talos clusters, generate their infrastructure, and bring them up.

    The nodes are VMs on Proxmox VE, or bare metal.

    A cluster is a folder with cluster.yaml and nodes.yaml, or with cluster.toml; cluster.sops.yaml beside it
    has the secrets, encrypted. It is the folder that you are in, or the nearest one above it in the git
    repository; the folders of clusters/ are more clusters. The name is `cluster_name`, else that of the
    folder below clusters/, else `kubernetes`.

    A value of a node beats that of its role, which beats that of the cluster, which beats the built-in one,
    key by key.

    \b
    stackyard cluster init my-cluster
    stackyard cluster validate
    stackyard cluster show
    stackyard cluster explain k8s-1
    stackyard cluster images --pin  record the SHA-256 of the images
    stackyard cluster configure     write infrastructure/ and the encrypted secrets
    stackyard plan cluster:NAME     then see what would change, and apply it
    """  # noqa: D301 - click reads the control character
