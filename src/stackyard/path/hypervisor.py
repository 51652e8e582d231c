"""The files of `hypervisors/` as targets: a cluster itself, and its nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stackyard.desired import Desired
from stackyard.path.environment import resolve_on
from stackyard.path.target import Resolved, Target
from stackyard.render.objects import address_of_object
from stackyard.sources.hypervisor.build import build_desired, list_entries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.base.errors import Location
    from stackyard.path.source_locations import Locate
    from stackyard.sources.site import ConfigResolver
    from stackyard.sources.site.tree import LoadedFile

__all__ = ["HypervisorSource"]


@dataclass(frozen=True, slots=True)
class HypervisorSource:
    """The clusters and nodes that a site describes."""

    resolver: ConfigResolver

    @property
    def kind(self) -> str:
        """The word before the colon."""
        return "hypervisor"

    def names(self) -> Sequence[str]:
        """Return the files, also those that cannot be read."""
        site = self.resolver.site
        return sorted({*site.hypervisors, *site.broken["hypervisors"]})

    def is_current(self) -> bool:
        """Return whether the site is what it was when it was read."""
        return self.resolver.site.is_current()

    def resolve_state(self, name: str, host: str | None) -> Resolved:
        """Return a target with nothing in it."""
        return resolve_on(self.resolver, self._target(name), Desired(), node=self.resolver.any_node(host))

    def resolve(self, name: str, host: str | None) -> Resolved:
        """Return a cluster or a node.

        Raises:
            NodeNotChosenError: Nothing says whose API is used, and there is more than one node.
            NoTokenError: There is no token for it.
            InvalidInputError: Something is wrong with the file; the error carries every problem.
        """
        loaded = self.resolver.hypervisor(name)
        said = host or getattr(loaded.model, "api", None) or getattr(loaded.model, "node", None)
        node = self.resolver.any_node(self.resolver.find_node(said) or said)
        resolved = resolve_on(self.resolver, self._target(name), build_desired(loaded.model), node=node)
        return replace(resolved, locate=_locate_in(loaded))

    def _target(self, name: str) -> Target:
        # Whichever node answers for a cluster, it has one state.
        return Target(kind=self.kind, name=name, node=name)


def _locate_in(loaded: LoadedFile[Any]) -> Locate:
    """Return what finds the places of the objects of a file, by their addresses."""
    paths: dict[str, tuple[str | int, ...]] = {}

    def locate(key: str, field: Sequence[str | int] = ()) -> Location | None:
        if not paths:
            paths.update((address_of_object(one.key), one.path) for one in list_entries(loaded.model))
        return loaded.places.place((*paths[key], *field)) if key in paths else None

    return locate
