"""The fields of a cluster as a page of the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.sources.cluster.field_facts import FieldFacts, list_fields
from stackyard.sources.cluster.field_words import CLUSTER_WORDS, SECRET_WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["render"]

_HEADING = """\
# Fields of Talos clusters

A cluster is a folder with `cluster.yaml` and `nodes.yaml`, or with `cluster.toml`; `cluster.sops.yaml`
beside them has its secrets, encrypted with SOPS. A folder with both `cluster.yaml` and `cluster.toml` is
refused, and so are files that are empty, cut off, or have a field that is not known. `stackyard cluster init`
writes files to start with, and `stackyard cluster explain FIELD` shows a row of this page.

A value of a node beats that of its role, which beats that of the cluster, which beats the built-in one, key
by key. A field in **bold** has to be there. An empty text counts as absent.

The JSON Schemas are [cluster](schema/cluster.json), [nodes](schema/nodes.json),
[cluster-secrets](schema/cluster-secrets.json) and [cluster-toml](schema/cluster-toml.json).
"""
_NODES = """\
## Nodes

`nodes.yaml` has a list `nodes`; `cluster.toml` has a table `[[nodes]]` for each. The number of controllers
has to be odd: etcd needs a majority, so that an even number stands no more failures than one less.
"""
_SECRETS = """\
## Secrets

These belong in `cluster.sops.yaml`. A `cluster.yaml` that git ignores may have them, too; then pull requests
and a recovery from git cannot see them, and `stackyard cluster show` says so. A secret in both is refused.
"""
_TEMPLATES = """\
## Fields for templates

stackyard does not use these itself. It checks their type, and passes them on to templates.
"""
_SPREAD = """\
## Several hosts, several clusters

`proxmox_node` of a node places its VM. `proxmox_nodes` of the cluster spreads the others: in the order of the
file, each on the host with the fewest nodes of its role, then with the fewest nodes, then the first in the
list. A node that was applied stays where it is, whatever is added or removed: `cluster configure` keeps the
host that `terraform.tfvars` has. To move a node, set its `proxmox_node`; that replaces its VM.

The folders of `clusters/` are more clusters of the same repository. Two clusters cannot have the same name,
the same state, the same VM ID on the same Proxmox, or the same address in the same network. Nodes of the same
name on the same Proxmox are a warning: a VM is not created beside one of its name.

Without `proxmox_api_url`, nodes are bare metal: no VM is made, and images are those of the
platform `metal`.
"""


def render() -> str:
    """Return the page."""
    fields = list_fields()
    own = [
        one for one in fields if one.file == "cluster.yaml" and one.name.partition(".")[0] in CLUSTER_WORDS
    ]
    nodes = [one for one in fields if one.file == "nodes.yaml"]
    ours = [one for one in fields if one.is_secret and one.name in SECRET_WORDS]
    others = [one for one in fields if one not in own and one not in nodes and not one.is_secret]
    more = [one for one in fields if one.is_secret and one not in ours]
    parts = [
        _HEADING,
        "## Cluster\n",
        _table(own, _row),
        _NODES,
        _table(nodes, _node_row, toml=False),
        _SPREAD,
        _SECRETS,
        _table(ours, _row),
        _TEMPLATES,
        _list(others),
        "Secret ones:\n",
        _list(more),
    ]
    return "\n".join(parts)


def _table(
    fields: Sequence[FieldFacts], row: Callable[[FieldFacts], tuple[str, ...]], *, toml: bool = True
) -> str:
    heads = ("field", *(("in cluster.toml",) if toml else ()), "value", "when absent", "what it is for")
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row(one))} |" for one in fields]
    return "\n".join(lines) + "\n"


def _row(one: FieldFacts) -> tuple[str, ...]:
    name, *rest = _node_row(one)
    return (name, f"`{one.toml}`" if one.toml else "", *rest)


def _node_row(one: FieldFacts) -> tuple[str, ...]:
    name = f"**`{one.name}`**" if one.is_required else f"`{one.name}`"
    return (name, one.kind, f"`{one.default}`" if one.default else "", one.words)


def _list(fields: Sequence[FieldFacts]) -> str:
    return ", ".join(f"`{one.name}`" for one in fields) + ".\n"
