"""A manifest as values: its nodes, where each of them runs, and in which order they come and go."""

from __future__ import annotations

import dataclasses
import enum
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stackyard.base.dag import Graph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.sources.site.document import LocatedValues
    from stackyard.sources.site.entities.manifests import Mode, Settings

__all__ = ["Manifest", "Node", "NodeType", "Scope"]

SUBTREE = "-subtree"


class NodeType(enum.StrEnum):
    """What a node is."""

    VM = "vm"
    CT = "ct"
    PVE = "pve"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Where nodes run side by side: on a host, or inside a node of type `pve`.

    Attributes:
        host: The host that is named for them; none where the command says it.
        parent: The node that they run inside of.
    """

    host: str | None = None
    parent: str | None = None

    def __str__(self) -> str:
        return self.parent or self.host or "the host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One guest.

    Attributes:
        name: What it is called, once in the manifest.
        type: What it is.
        entry: What is said of the guest, as an entry of an env says it.
        index: Which of `nodes` in the file it comes from.
        mode: Who configures it.
        scope: Where it runs.
        depends_on: Which of those beside it have to be there first.
    """

    name: str
    type: NodeType
    entry: Mapping[str, Any]
    index: int
    mode: Mode
    scope: Scope = Scope()
    depends_on: tuple[str, ...] = ()

    @property
    def parent(self) -> str | None:
        """The node that it runs inside of."""
        return self.scope.parent


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A manifest in which nothing contradicts itself.

    Attributes:
        name: What it is called.
        description: What it is for.
        posture: The posture of its guests where their specs name none.
        default_mode: Who configures guests that say nothing else.
        settings: How it is run.
        nodes: All guests, in the order of the file.
        places: The file.
    """

    name: str
    description: str | None = None
    posture: str
    default_mode: Mode
    settings: Settings
    nodes: tuple[Node, ...]
    places: LocatedValues

    @cached_property
    def graph(self) -> Graph[str]:
        """Who waits for whom: a node for what it runs inside of and for what it depends on.

        Raises:
            GraphError: A name is there twice or nowhere, or nodes wait for each other.
        """
        edges = [(node.name, node.parent) for node in self.nodes if node.parent is not None]
        edges += [(node.name, needed) for node in self.nodes for needed in node.depends_on]
        return Graph.build((node.name for node in self.nodes), edges)

    @cached_property
    def by_name(self) -> Mapping[str, Node]:
        """The nodes by name."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def scopes(self) -> Mapping[Scope, tuple[Node, ...]]:
        """The nodes that run side by side, outer places first."""
        ordered = sorted(self.nodes, key=lambda node: self.depth(node.name))
        found: dict[Scope, list[Node]] = {}
        for node in ordered:
            found.setdefault(node.scope, []).append(node)
        return {scope: tuple(sorted(nodes, key=self.nodes.index)) for scope, nodes in found.items()}

    @property
    def roots(self) -> tuple[Node, ...]:
        """The nodes that run on hosts."""
        return tuple(node for node in self.nodes if node.parent is None)

    @property
    def only_host(self) -> str | None:
        """The host that all nodes without a parent name; none where they name several, or none."""
        named = {node.scope.host for node in self.roots}
        return next(iter(named)) if len(named) == 1 else None

    def children(self, name: str) -> tuple[Node, ...]:
        """Return the nodes that run inside of one."""
        return self.scopes.get(Scope(parent=name), ())

    def depth(self, name: str) -> int:
        """Return inside of how many nodes one runs."""
        depth, parent = 0, self.by_name[name].parent
        while parent is not None:
            depth, parent = depth + 1, self.by_name[parent].parent
        return depth

    @cached_property
    def create_order(self) -> tuple[Node, ...]:
        """All nodes, each after everything it waits for."""
        return tuple(self.by_name[name] for name in self.graph.order)

    @property
    def destroy_order(self) -> tuple[Node, ...]:
        """All nodes, each before everything it waits for."""
        return self.create_order[::-1]

    def on(self, host: str) -> Manifest:
        """Return it with a host for the nodes that name none."""
        nodes = tuple(
            dataclasses.replace(node, scope=Scope(host=host)) if node.scope == Scope() else node
            for node in self.nodes
        )
        return dataclasses.replace(self, nodes=nodes)

    def up_to(self, depth: int) -> Manifest:
        """Return it without the nodes that lie deeper than this many levels, of which the first is one."""
        kept = tuple(node for node in self.nodes if self.depth(node.name) < depth)
        return dataclasses.replace(self, nodes=kept)

    def subtree(self, name: str) -> Manifest:
        """Return what runs inside of a node, as that node runs it: its children are on the host there."""
        inside = {name}
        for node in self.create_order:
            if node.parent in inside:
                inside.add(node.name)
        kept = tuple(
            dataclasses.replace(node, scope=Scope()) if node.parent == name else node
            for node in self.nodes
            if node.name in inside and node.name != name
        )
        return dataclasses.replace(self, name=f"{name}{SUBTREE}", nodes=kept)

    def document(self) -> dict[str, Any]:
        """Return it as a file of version 2 says it."""
        head: dict[str, Any] = {"schema_version": 2, "name": self.name}
        if self.description is not None:
            head["description"] = self.description
        is_tiered = any(node.parent is not None for node in self.nodes)
        return {
            **head,
            "pattern": "tiered" if is_tiered else "flat",
            "posture": self.posture,
            "execution": {"default_mode": self.default_mode},
            "nodes": [self._node_document(node) for node in self.nodes],
            "settings": self.settings.model_dump(),
        }

    def _node_document(self, node: Node) -> dict[str, Any]:
        document = {**node.entry, "name": node.name, "type": node.type.value}
        if node.parent is not None:
            document["parent"] = node.parent
        if node.scope.host is not None:
            document["host"] = node.scope.host
        if node.depends_on:
            document["depends_on"] = list(node.depends_on)
        if node.mode != self.default_mode:
            document["execution"] = {"mode": node.mode}
        return document
