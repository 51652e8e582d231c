"""Which guests of a manifest get something applied inside of them, once they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.sources.manifest.model import NodeType, Scope
from stackyard.sources.manifest.scopes import env_name, with_scopes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.sources.manifest.model import Manifest, Node
    from stackyard.sources.site.load import Site

__all__ = ["guest_values", "list_configured_guests", "spec_of"]


def guest_values(site: Site, manifest: Manifest, host: str) -> Mapping[str, Mapping[str, Any]]:
    """Return what is said of each guest of a manifest on a host, merged from all layers, by name."""
    name = env_name(manifest, Scope(host=host))
    return {guest.name: guest.values for guest in with_scopes(site, manifest).guests(name)}


def spec_of(site: Site, node: Node, values: Mapping[str, Any]) -> str | None:
    """Return the spec of a node, None where it has none.

    Args:
        site: The site.
        node: The node.
        values: What is said of it, merged from all layers.
    """
    said = values.get("spec")
    if said is not None:
        return str(said)
    return node.name if node.mode == "pull" and node.name in site.specs else None


def list_configured_guests(site: Site, manifest: Manifest, host: str) -> frozenset[str]:
    """Return the guests on a host in which programs have to run: those with a spec, and all containers.

    A container gets its user over SSH, as it has no cloud-init.
    """
    values = guest_values(site, manifest, host)
    here = manifest.scopes.get(Scope(host=host), ())
    return frozenset(
        node.name
        for node in here
        if node.type is NodeType.CT or spec_of(site, node, values.get(node.name, node.entry)) is not None
    )
