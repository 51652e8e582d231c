"""The nodes that run side by side, as an env of the site: what envs can say and check, manifests can too."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics
from stackyard.base.errors import InvalidInputError
from stackyard.sources.manifest.model import NodeType
from stackyard.sources.site.build import build_desired
from stackyard.sources.site.entities.envs import EnvFile
from stackyard.sources.site.pull import OwnBoot
from stackyard.sources.site.tree import LoadedFile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.base.errors import Location
    from stackyard.desired import Desired
    from stackyard.sources.manifest.model import Manifest, Node, Scope
    from stackyard.sources.site.build_guest import NodeChoice
    from stackyard.sources.site.document import Key, LocatedValues
    from stackyard.sources.site.load import Site

__all__ = ["build_scope", "env_name", "with_scopes"]


def env_name(manifest: Manifest, scope: Scope) -> str:
    """Return what the nodes of a scope are called as an env; no file can have such a name."""
    return f"{manifest.name}/{scope.host or ''}/{scope.parent or ''}"


def with_scopes(site: Site, manifest: Manifest, own_boots: Mapping[str, OwnBoot] | None = None) -> Site:
    """Return a site whose envs are the scopes of a manifest, and no others.

    Args:
        site: The site.
        manifest: The manifest.
        own_boots: What nodes have of their own at their first boot, by name.
    """
    envs = {env_name(manifest, scope): _as_env(manifest, nodes) for scope, nodes in manifest.scopes.items()}
    given = own_boots or {}
    boots = {node.name: _own_boot(site, node, given.get(node.name)) for node in manifest.nodes}
    return dataclasses.replace(site, envs=envs, _guests={}, _networks={}, boots={}, own_boots=boots)


def _own_boot(site: Site, node: Node, given: OwnBoot | None) -> OwnBoot:
    """Return what a node has of its own: one that does not pull fetches nothing, whatever the site says."""
    defaults = site.settings.defaults
    has_server = defaults.spec_server is not None or defaults.server_url is not None
    pull: Mapping[str, Any] | None = None if node.mode == "pull" and has_server else {}
    if given is None:
        return OwnBoot(pull=pull)
    has_own = node.mode == "pull" and given.pull is not None
    return given if has_own else dataclasses.replace(given, pull=pull)


def build_scope(
    site: Site,
    manifest: Manifest,
    scope: Scope,
    node: NodeChoice,
    *,
    own_boots: Mapping[str, OwnBoot] | None = None,
) -> Desired:
    """Return what the nodes of a scope come to on a node of Proxmox.

    Args:
        site: The site.
        manifest: The manifest.
        scope: Which of its scopes.
        node: The node of Proxmox.
        own_boots: What nodes have of their own at their first boot, by name.

    Raises:
        InvalidInputError: They do not fit on it; the error carries every problem.
    """
    found = Diagnostics()
    built = build_desired(with_scopes(site, manifest, own_boots), env_name(manifest, scope), node, found)
    found.raise_errors(f"The manifest '{manifest.name}' on {node.name}")
    if built is None:
        raise InvalidInputError(f"The manifest '{manifest.name}' cannot be built for {node.name}.")
    return built


def _as_env(manifest: Manifest, nodes: Sequence[Node]) -> LoadedFile[EnvFile]:
    return LoadedFile(
        name=manifest.name,
        places=_NodeLocations(manifest.places, nodes),
        model=EnvFile(posture=manifest.posture, vms=()),
    )


class _NodeLocations:
    """Nodes of a manifest, as if they stood in the file of an env."""

    def __init__(self, places: LocatedValues, nodes: Sequence[Node]) -> None:
        self._places = places
        self._nodes = nodes
        self.data: dict[str, Any] = {"vms": [_entry(node) for node in nodes]}

    @property
    def path(self) -> str:
        return self._places.path

    def place(self, keys: Sequence[Key] = ()) -> Location:
        return self._places.place(self._inside(keys))

    def key_place(self, keys: Sequence[Key]) -> Location:
        return self._places.key_place(self._inside(keys))

    def _inside(self, keys: Sequence[Key]) -> Sequence[Key]:
        if len(keys) > 1 and keys[0] == "vms" and isinstance(keys[1], int):
            return ("nodes", self._nodes[keys[1]].index, *keys[2:])
        return () if keys and keys[0] == "vms" else keys


def _entry(node: Node) -> dict[str, Any]:
    kind = NodeType.CT if node.type is NodeType.CT else NodeType.VM
    entry = {**node.entry, "name": node.name, "type": kind.value}
    if node.type is NodeType.PVE:
        # Only with the processors of the host can it run virtual machines of its own.
        entry["cpu"] = {"type": "host", **(entry.get("cpu") or {})}
    return {**entry, "depends_on": list(node.depends_on)} if node.depends_on else entry
