"""What the site says of each node: chosen from what the node has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.suggestions import did_you_mean
from stackyard.operator.connect.failures import NoDatastoreError, NodeChoiceError, NodeOfflineError
from stackyard.sources.site.connected_site import ConnectedNode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.operator.connect.endpoints import NodeEndpoint
    from stackyard.operator.connect.model import ConnectRequest
    from stackyard.operator.connect.survey import ClusterSeen, DatastoreSeen, NodeSeen

__all__ = ["choose_bridge", "choose_nodes", "describe_node"]

_USUAL_BRIDGE = "vmbr0"
_USUAL_FILES = "local"


def choose_nodes(cluster: ClusterSeen, request: ConnectRequest) -> tuple[NodeSeen, ...]:
    """Return the nodes to connect, the one that answers first.

    Raises:
        NodeChoiceError: A name does not fit.
        NodeOfflineError: A chosen node is offline.
    """
    names = {node.name for node in cluster.nodes}
    for name in request.nodes:
        if name not in names:
            there = ", ".join(sorted(names)) or "none that can be seen"
            hint = did_you_mean(name, names)
            raise NodeChoiceError(f"There is no node `{name}`; the cluster has {there}.{hint}")
    chosen = [node for node in cluster.nodes if not request.nodes or node.name in request.nodes]
    if not chosen:
        raise NodeChoiceError("No node of the cluster can be seen.")
    if request.alias is not None and len(chosen) > 1:
        raise NodeChoiceError(
            f"--as is for one node, and there are {len(chosen)}: {', '.join(node.name for node in chosen)}."
        )
    offline = [node.name for node in chosen if not node.is_online]
    if offline:
        up = ",".join(node.name for node in chosen if node.is_online)
        remedy = f"Start it and run the command again; or leave it out: --node {up}" if up else None
        raise NodeOfflineError(f"The cluster reports as offline: {', '.join(offline)}.", remedy=remedy)
    return tuple(sorted(chosen, key=lambda node: (not node.is_asked, node.name)))


def choose_bridge(nodes: Sequence[NodeSeen]) -> str:
    """Return the bridge that guests of a new site use: the usual one where it is there."""
    bridges = nodes[0].bridges
    return _USUAL_BRIDGE if _USUAL_BRIDGE in bridges or not bridges else bridges[0]


def describe_node(node: NodeSeen, endpoint: NodeEndpoint, request: ConnectRequest) -> ConnectedNode:
    """Return what the site is to say of a node.

    Raises:
        NoDatastoreError: There is none for disks, and none is named.
    """
    fields: dict[str, Any] = {
        "api_endpoint": endpoint.url,
        "api_token": "",
        "api_fingerprint": endpoint.fingerprint,
        "datastore": request.datastore or _choose_datastore(node),
        "file_datastore": request.file_datastore or _choose_file_datastore(node),
        "ip": node.ip,
    }
    return ConnectedNode(
        name=node.name,
        alias=request.alias,
        fields={key: value for key, value in fields.items() if value is not None},
        comments=_comments(node, endpoint),
    )


def _choose_datastore(node: NodeSeen) -> str:
    usable = [one for one in node.datastores if one.is_active and "images" in one.content]
    if not usable:
        there = ", ".join(one.name for one in node.datastores) or "none that can be seen"
        raise NoDatastoreError(f"{node.name} has no active datastore for disks; it has {there}.")
    return min(usable, key=_rank).name


def _rank(store: DatastoreSeen) -> tuple[bool, bool, str]:
    """Order datastores: one that takes containers too, and not the folder that everything else is in."""
    return "rootdir" not in store.content, store.name == _USUAL_FILES, store.name


def _choose_file_datastore(node: NodeSeen) -> str:
    wanted = ("snippets", "import", "vztmpl", "iso")

    def rank(store: DatastoreSeen) -> tuple[int, bool, str]:
        return -sum(kind in store.content for kind in wanted), store.name != _USUAL_FILES, store.name

    usable = [one for one in node.datastores if one.is_active and set(wanted) & set(one.content)]
    return min(usable, key=rank).name if usable else _USUAL_FILES


def _comments(node: NodeSeen, endpoint: NodeEndpoint) -> dict[str, str]:
    where = "Where its API is."
    if endpoint.note:
        own = f"\nThe SHA-256 of its own certificate: {node.fingerprint}" if node.fingerprint else ""
        ssh = f"\nSSH goes there, too, unless ~/.ssh/config says `Host {node.name}` with a `HostName`."
        where = f"Another node answers for it: {endpoint.note}.{own}{ssh}"
    stores = "\n".join(f"  {one.name}: {', '.join(one.content) or 'nothing'}" for one in node.datastores)
    return {
        "api_endpoint": where,
        "api_token": "Names `api_tokens` in secrets.yaml.",
        "api_fingerprint": "The SHA-256 of the certificate at that address.",
        "datastore": f"Where disks go. The datastores of this node, with what each takes:\n{stores}",
        "file_datastore": "Where images and snippets go.",
        "ip": "Its address in the cluster.",
    }
