"""`stackyard cluster show`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.cluster.options import cluster_argument, open_named
from stackyard.cli.commands.site import show_warnings
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.sources.cluster.model import Cluster, ClusterNode
    from stackyard.sources.cluster.secret_place import SecretPlace

__all__ = ["show"]

_FORMS = ("tree", "mermaid", "dot")
_SECRETS = {
    "none": "none",
    "encrypted": "in cluster.sops.yaml, encrypted",
    "local": "in clear on this machine only, in a file that git does not hold: pull requests and a recovery "
    "from git cannot see them. Move them to cluster.sops.yaml.",
    "committed": "in clear, in a file that git holds",
}


@click.command("show", cls=Command)
@cluster_argument
@click.option(
    "--graph",
    "form",
    type=click.Choice(_FORMS),
    is_flag=False,
    flag_value=_FORMS[0],
    help="Draw which node is on which host: as a tree, for Mermaid, or for Graphviz.",
)
def show(name: str | None, form: str | None) -> Result:
    """Show the nodes of a cluster with all values resolved, as a table or a graph.

    It also shows the networks, the state, and where the secrets are: encrypted, or in clear in a file that
    git does not hold, so that pull requests and a recovery from git cannot see them.

    \b
    stackyard cluster show
    stackyard cluster show staging --graph
    stackyard cluster show --graph=dot | dot -Tsvg > cluster.svg
    """  # noqa: D301 - click reads the control character
    from stackyard.sources.cluster import diagram  # lazy: pydantic, only when this verb runs
    from stackyard.sources.cluster.secret_place import SecretPlace, find_secret_place  # lazy: as above

    opened = open_named(name)
    cluster = opened.require()
    place = SecretPlace.NONE if opened.read is None else find_secret_place(opened.read)
    names = [] if opened.read is None else sorted(opened.read.secret_names)
    document = _document(cluster, {"place": place.value, "names": names})
    if form is not None:
        draw = {"tree": diagram.draw_tree, "mermaid": diagram.draw_mermaid, "dot": diagram.draw_dot}[form]
        drawing = draw(cluster)
        return Result(
            document={**document, "drawing": "\n".join(drawing)},
            show=lambda writer: writer.lines("\n".join(drawing)),
        )

    def show_table(writer: TextWriter) -> None:
        show_warnings(writer, opened.found.warnings)
        _show(writer, cluster, place)

    return Result(document=document, show=show_table)


def _show(writer: TextWriter, cluster: Cluster, place: SecretPlace) -> None:
    network = cluster.network
    tagged = "by the network card of the VM" if network.is_tagged_by_proxmox else "by Talos"
    facts = {
        "cluster": f"{cluster.name}, in {cluster.folder}",
        "versions": f"Talos {cluster.talos_version}, Kubernetes {cluster.kubernetes_version}",
        "API": f"https://{network.api_addr}:6443",
        "networks": f"nodes {network.node_cidr}, pods {network.pod_cidr}, services {network.svc_cidr}",
        "gateway": str(network.gateway),
        "VLAN": f"{network.vlan_tag}, tagged {tagged}" if network.vlan_tag else "none",
        "Proxmox": "none: bare metal" if cluster.proxmox is None else cluster.proxmox.api_url,
        "state": "the store of stackyard" if cluster.state is None else cluster.state.url,
        "secrets": _SECRETS[place.value],
    }
    for key, value in facts.items():
        writer.line(f"{key:<10} {value}")
    writer.line()
    headings = ("node", "role", "address", "host", "vm id", "cores", "memory", "disk", "image")
    writer.table(headings, [_row(node) for node in cluster.nodes])


def _row(node: ClusterNode) -> tuple[str, ...]:
    vm = node.vm
    image = f"{node.image.schematic_id[:12]} {node.image.variant}"
    if vm is None:
        return (node.name, node.role, str(node.address), "-", "-", "-", "-", node.disk, image)
    cores = f"{vm.size.cores}" if vm.size.sockets == 1 else f"{vm.size.sockets}x{vm.size.cores}"
    sizes = (cores, f"{vm.size.memory} MiB", f"{vm.size.disk_size} GB")
    number = "auto" if vm.vm_id is None else str(vm.vm_id)
    return (node.name, node.role, str(node.address), vm.proxmox_node, number, *sizes, image)


def _document(cluster: Cluster, secrets: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "folder": str(cluster.folder),
        "talos_version": cluster.talos_version,
        "kubernetes_version": cluster.kubernetes_version,
        "api_address": str(cluster.network.api_addr),
        "node_cidr": str(cluster.network.node_cidr),
        "gateway": str(cluster.network.gateway),
        "vlan_tag": cluster.network.vlan_tag,
        "proxmox_api_url": None if cluster.proxmox is None else cluster.proxmox.api_url,
        "state": None if cluster.state is None else cluster.state.url,
        "secrets": secrets,
        "nodes": [_node_document(node) for node in cluster.nodes],
    }


def _node_document(node: ClusterNode) -> dict[str, Any]:
    vm = node.vm
    size = None if vm is None else vm.size
    return {
        "name": node.name,
        "role": node.role,
        "address": str(node.address),
        "mac_addr": node.mac_addr,
        "disk": node.disk,
        "image": node.image.url,
        "installer": node.image.installer,
        "proxmox_node": None if vm is None else vm.proxmox_node,
        "vm_id": None if vm is None else vm.vm_id,
        "cores": None if size is None else size.cores,
        "sockets": None if size is None else size.sockets,
        "memory": None if size is None else size.memory,
        "disk_size": None if size is None else size.disk_size,
        "has_tpm": vm is not None and vm.has_tpm,
    }
