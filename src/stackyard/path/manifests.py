"""The manifests of a site as targets: what runs on a host itself; what is inside of it is run from there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.errors import InvalidInputError
from stackyard.manifest.model import Scope
from stackyard.manifest.reading import Wanted, find_manifest
from stackyard.manifest.scopes import desired_of
from stackyard.path.environment import resolved_on
from stackyard.path.target import Target
from stackyard.site.build_guest import NodeChoice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.manifest.model import Manifest
    from stackyard.path.target import Resolved
    from stackyard.site import ConfigResolver

__all__ = ["ManifestSource", "NotOnHostError", "resolve_manifest"]

KIND = "manifest"


class NotOnHostError(InvalidInputError):
    """A manifest names the hosts of its nodes, and the one that is asked for is none of them."""

    code = "E-MANIFEST-HOST-EMPTY"
    summary = "A manifest has nothing on this host"
    default_remedy = "Name one of its hosts with -H."


@dataclass(frozen=True, slots=True)
class ManifestSource:
    """The manifests of one site."""

    resolver: ConfigResolver

    @property
    def kind(self) -> str:
        """The word before the colon."""
        return KIND

    def names(self) -> Sequence[str]:
        """Return the manifests."""
        return self.resolver.list_manifests()

    def resolve(self, name: str, host: str | None) -> Resolved:
        """Return what a manifest has on a host.

        Raises:
            NodeNotChosenError: No host is named, and there is more than one.
            NotOnHostError: It has nothing there.
            NoTokenError: There is no token for it.
            InvalidInputError: Something is wrong with it; the error carries every problem.
        """
        manifest = find_manifest(self.resolver.site, Wanted(name=name))
        return resolve_manifest(self.resolver, manifest, self._host(manifest, host))

    def _host(self, manifest: Manifest, said: str | None) -> str:
        named = {node.scope.host for node in manifest.roots}
        only = next(iter(named)) if len(named) == 1 else None
        return self.resolver.any_node(said or only)


def resolve_manifest(resolver: ConfigResolver, manifest: Manifest, host: str) -> Resolved:
    """Return what a manifest has on a host.

    Raises:
        NotOnHostError: It has nothing there.
        NoTokenError: There is no token for it.
        InvalidInputError: It does not fit there; the error carries every problem.
    """
    here = manifest.on(host)
    scope = Scope(host=host)
    if scope not in here.scopes:
        others = ", ".join(sorted({str(node.scope) for node in here.roots}))
        raise NotOnHostError(f"The manifest '{manifest.name}' is on {others}, and not on {host}.")
    desired = desired_of(resolver.site, here, scope, NodeChoice.of(resolver.site.nodes[host]))
    return resolved_on(resolver, Target(kind=KIND, name=manifest.name, node=host), desired)
