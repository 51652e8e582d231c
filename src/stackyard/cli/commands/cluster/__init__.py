"""`stackyard cluster`: Talos clusters and the files that are generated for them."""

from __future__ import annotations

from stackyard.cli.command import LazyCommand, group

__all__ = ["cluster"]

_LATER = {
    "apply-config": LazyCommand(
        module="stackyard.cli.commands.cluster.configuration",
        name="apply_config",
        help="Give nodes that run the configuration of the files, one node at a time, with health between.",
    ),
    "configure": LazyCommand(
        module="stackyard.cli.commands.cluster.configure",
        name="configure",
        help="Write the files of a Talos cluster: infrastructure/, encrypted secrets, .gitignore.",
    ),
    "destroy": LazyCommand(
        module="stackyard.cli.commands.cluster.destroy",
        name="destroy",
        help="Destroy a cluster: its VMs and their disks, and what is on bare metal.",
    ),
    "drift": LazyCommand(
        module="stackyard.cli.commands.cluster.configuration",
        name="drift",
        help="Show how the configurations that nodes run with differ from the files of the cluster.",
    ),
    "explain": LazyCommand(
        module="stackyard.cli.commands.cluster.explain",
        name="explain",
        help="Say what FIELD is for, or where each value of NODE comes from.",
    ),
    "health": LazyCommand(
        module="stackyard.cli.commands.cluster.health",
        name="health",
        help="Check the nodes of a cluster, their services, etcd and Kubernetes; say what is not healthy.",
    ),
    "images": LazyCommand(
        module="stackyard.cli.commands.cluster.images",
        name="images",
        help="List the Talos images of a cluster, and pin their SHA-256 with --pin.",
    ),
    "import-secrets": LazyCommand(
        module="stackyard.cli.commands.cluster.secrets",
        name="import_secrets",
        help="Keep the secrets in FILE, made by talosctl, talhelper or topf, encrypted as those of a "
        "cluster.",
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
    "machine-config": LazyCommand(
        module="stackyard.cli.commands.cluster.machine_config",
        name="machine_config",
        help="Print the machine configuration of NODE, with its secrets masked.",
    ),
    "name-nodes": LazyCommand(
        module="stackyard.cli.commands.cluster.name_nodes",
        name="name_nodes",
        help="Write the nodes that `nodes_count` asks for into nodes.yaml.",
    ),
    "nodes": LazyCommand(
        module="stackyard.cli.commands.cluster.nodes",
        name="nodes",
        help="List the nodes of a cluster as Talos, etcd and Kubernetes know them, and who is there "
        "beside them.",
    ),
    "remove-node": LazyCommand(
        module="stackyard.cli.commands.cluster.remove_node",
        name="remove_node",
        help="Remove nodes that nodes.yaml no longer has: from etcd, their VMs, then from Kubernetes.",
    ),
    "restore": LazyCommand(
        module="stackyard.cli.commands.cluster.snapshot",
        name="restore",
        help="Form the etcd of a new cluster from the snapshot in FILE, in place of an empty one.",
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
    "snapshot": LazyCommand(
        module="stackyard.cli.commands.cluster.snapshot",
        name="snapshot",
        help="Take a snapshot of etcd: everything that Kubernetes knows, its Secrets too, encrypted with "
        "age.",
    ),
    "split": LazyCommand(
        module="stackyard.cli.commands.cluster.split",
        name="split",
        help="Move the secrets out of cluster.yaml or cluster.toml into cluster.sops.yaml, so that git "
        "may hold both.",
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
        help="Bring a cluster up: VMs, Talos, etcd, the Kubernetes API, Cilium, and what bootstrap.yaml "
        "adds.",
    ),
    "upgrade": LazyCommand(
        module="stackyard.cli.commands.cluster.upgrade",
        name="upgrade",
        help="Upgrade Talos to `talos_version` and the schematics of the files, one node at a time.",
    ),
    "upgrade-kubernetes": LazyCommand(
        module="stackyard.cli.commands.cluster.upgrade",
        name="upgrade_kubernetes",
        help="Upgrade Kubernetes to `kubernetes_version` of the files, component by component, node by node.",
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
