"""Where the values of a cluster come from, and what a field is for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.sources.cluster.resolve import (
    Level,
    choose_cluster_values,
    choose_node_values,
    choose_size,
)
from stackyard.sources.cluster.values import to_plain

if TYPE_CHECKING:
    from stackyard.base.errors import Location
    from stackyard.sources.cluster.input import ClusterInput
    from stackyard.sources.cluster.resolve import Choice

__all__ = ["ExplainedValue", "explain_cluster", "explain_node"]

_ROLES = ("", "controller", "worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedValue:
    """A value, and why it is that one.

    Attributes:
        field: The field.
        value: Its value, plain.
        level: Where it was chosen: node, role, cluster, built-in or computed.
        where: Where the input says it; None for one that no file has.
        why: What it was computed from.
    """

    field: str
    value: Any
    level: Level
    where: Location | None
    why: str = ""


def explain_node(read: ClusterInput, index: int) -> list[ExplainedValue]:
    """Return the values of a node, and those of the cluster that its image and its VM take over."""
    chosen = choose_node_values(read)[index]
    shared = choose_cluster_values(read)
    names = [name for name in shared if name.startswith("talos_")]
    if "proxmox_node" in chosen:
        names += [name for name in shared if name.startswith("proxmox_")]
    values = {**chosen, **{name: shared[name] for name in names}}
    return [_explain(read, name, choice) for name, choice in values.items()]


def explain_cluster(read: ClusterInput) -> list[ExplainedValue]:
    """Return the values of the cluster: those that are given, and those that have a default; no secret."""
    chosen = choose_cluster_values(read)
    for role in _ROLES:
        table = f"proxmox_vm_{role}_defaults" if role else "proxmox_vm_defaults"
        sizes = choose_size(read.fields, role, None, 0)
        chosen.update({f"{table}.{key}": choice for key, choice in sizes.items()})
    found = {name: _explain(read, name, choice) for name, choice in chosen.items()}
    tables = {name.partition(".")[0] for name in chosen}
    for name, value in read.given.items():
        if name not in tables:
            where = read.places.place(name)
            found[name] = ExplainedValue(field=name, value=value, level=Level.CLUSTER, where=where)
    for name in read.secret_names:
        where = read.places.key_place(name)
        found[name] = ExplainedValue(field=name, value="(secret)", level=Level.CLUSTER, where=where)
    return [found[name] for name in sorted(found)]


def _explain(read: ClusterInput, name: str, choice: Choice) -> ExplainedValue:
    where = None if choice.keys is None else read.places.place(*choice.keys)
    plain = to_plain(choice.value)
    return ExplainedValue(field=name, value=plain, level=choice.level, where=where, why=choice.why)
