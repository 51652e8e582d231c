"""A number of nodes becomes names, once: entries of nodes.yaml, which says what the nodes are."""

from __future__ import annotations

import ipaddress
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base import files, yamledit
from stackyard.base.diagnostics import Diagnostics
from stackyard.base.errors import InvalidInputError, Location
from stackyard.sources.cluster.checks.nodes import describe_surplus
from stackyard.sources.cluster.read import CLUSTER_FILE, NODES_FILE
from stackyard.sources.site.document import format_path, read_document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["NodesCountError", "name_nodes"]

_CONTROLLERS = 3
_READABLE = 0o644
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}(?!\d)(?!/)")
# What a new node has in common with the nodes that are there.
_ALIKE = ("disk", "schematic_id")
_DISK = "/dev/sda"


class NodesCountError(InvalidInputError):
    """The names of nodes cannot follow from a number."""

    code = "E-CLUSTER-NAME-NODES"
    summary = "The names of nodes cannot follow from their number"
    default_remedy = (
        "To remove a node, remove its entry from nodes.yaml and lower `nodes_count`: a number does not say "
        "which node goes. Nothing was written."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Present:
    """What the files of a cluster have, as plain values."""

    prefix: str
    network: ipaddress.IPv4Network
    nodes: Sequence[Mapping[str, Any]]
    taken: frozenset[ipaddress.IPv4Address]
    first: ipaddress.IPv4Address


def name_nodes(folder: Path) -> tuple[str, ...]:
    """Write the entries that are missing for `nodes_count` to nodes.yaml; return their names.

    An entry that is there stays as it is. A new name has a number that no other has. The address is the next
    free one of the network; three nodes are controllers, or one if there are fewer.

    Args:
        folder: The folder of the cluster.

    Raises:
        NodesCountError: There is no number, it is less than the nodes that are named, or has no addresses.
        FileError: A file cannot be read or written.
    """
    path = folder / NODES_FILE
    cluster, nodes = _read(folder / CLUSTER_FILE), _read(path)
    wanted, entries = cluster.get("nodes_count"), nodes.get("nodes") or []
    if not isinstance(wanted, int) or isinstance(wanted, bool):
        where = Location(format_path(folder / CLUSTER_FILE))
        raise NodesCountError("There is no `nodes_count`.", where=where, remedy="Add it to cluster.yaml.")
    if wanted < len(entries):
        detail = describe_surplus(wanted, [str(one.get("name")) for one in entries])
        raise NodesCountError(detail, where=Location(format_path(path)))
    made = _make_entries(_find_present(cluster, entries), wanted)
    if not made:
        return ()
    if not path.exists():
        files.replace_file(path, b"# The nodes.\nnodes: []\n", mode=_READABLE)
    yamledit.edit_file(path, [yamledit.Append(("nodes",), yamledit.lay_out(one)) for one in made])
    return tuple(str(one["name"]) for one in made)


def _read(path: Path) -> Mapping[str, Any]:
    found = Diagnostics()
    document = read_document(path, found) if path.exists() else None
    found.raise_errors(format_path(path))
    return {} if document is None else document.data


def _find_present(cluster: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]]) -> _Present:
    try:
        network = ipaddress.IPv4Network(str(cluster.get("node_cidr")))
    except ValueError as err:
        remedy = "Add the network of the nodes to cluster.yaml as `node_cidr`, for IPv4."
        raise NodesCountError("`node_cidr` is no network of IPv4.", remedy=remedy) from err
    own = [_parse(str(one.get("address", ""))) for one in nodes]
    known = [one for one in own if one is not None and one in network]
    shared = _parse(str(cluster.get("cluster_api_addr", "")))
    last = max(known, default=shared if shared in network else network.network_address)
    # Whatever else cluster.yaml names in the network is in use: gateways, name servers, load balancers.
    texts = _ADDRESS.findall(repr(dict(cluster)))
    taken = {address for text in texts if (address := _parse(text)) is not None}
    return _Present(
        prefix=str(cluster.get("cluster_name") or "k8s"),
        network=network,
        nodes=nodes,
        taken=frozenset({*taken, *known, network.network_address + 1, network.broadcast_address}),
        first=(last or network.network_address) + 1,
    )


def _parse(text: str) -> ipaddress.IPv4Address | None:
    try:
        return ipaddress.IPv4Address(text.partition("/")[0])
    except ValueError:
        return None


def _make_entries(present: _Present, wanted: int) -> list[dict[str, Any]]:
    """Return the entries that are missing.

    Raises:
        NodesCountError: The network has no addresses for them.
    """
    made: list[dict[str, Any]] = []
    number = max((_number_of(present.prefix, one) for one in present.nodes), default=0)
    controllers = sum(bool(one.get("controller")) for one in present.nodes)
    goal = _CONTROLLERS if wanted >= _CONTROLLERS else 1
    alike = present.nodes[-1] if present.nodes else {}
    address = present.first
    for _ in range(wanted - len(present.nodes)):
        while address in present.taken:
            address += 1
        if address not in present.network:
            raise NodesCountError(
                f"{present.network} has no address for node {len(present.nodes) + len(made) + 1}.",
                remedy="Write the entries that are missing into nodes.yaml yourself. Nothing was written.",
            )
        number += 1
        made.append(
            {
                "name": f"{present.prefix}-{number}",
                "address": str(address),
                "controller": controllers < goal,
                "mac_addr": f"bc:24:11:{':'.join(f'{byte:02x}' for byte in secrets.token_bytes(3))}",
                "disk": _DISK,
                **{key: alike[key] for key in _ALIKE if key in alike},
            }
        )
        controllers += 1
        address += 1
    return made


def _number_of(prefix: str, node: Mapping[str, Any]) -> int:
    found = re.fullmatch(rf"{re.escape(prefix)}-(\d+)", str(node.get("name", "")))
    return int(found[1]) if found else 0
