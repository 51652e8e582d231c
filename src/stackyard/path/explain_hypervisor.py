"""Each value of a hypervisor with its place: what its file says, and what of site.yaml belongs to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.desired import Desired
from stackyard.path.hypervisor import HypervisorSource
from stackyard.path.named_objects import describe_object, list_networks_and_pools
from stackyard.path.shared_objects import join_shared, place_shared, shared_desired
from stackyard.sources.hypervisor.build import build_desired
from stackyard.sources.site.explain import ExplainedValue
from stackyard.sources.site.explain_hypervisor import explain_hypervisor
from stackyard.sources.site.hypervisor_owners import find_node_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.sources.site import ConfigResolver

__all__ = ["explain_target"]

_NODE = "node"


def explain_target(resolver: ConfigResolver, name: str) -> tuple[list[ExplainedValue], Desired]:
    """Return every value of a hypervisor, and the model that they make; secrets are masked.

    Args:
        resolver: The site.
        name: The file of `hypervisors/`, or a node without one.

    Raises:
        NotInSiteError: There is neither.
        InvalidInputError: Something is wrong with a file; the error carries every problem.
    """
    source, site = HypervisorSource(resolver), resolver.site
    is_implied = name in source.implied_names()
    loaded = None if is_implied else resolver.hypervisor(name)
    source.require_files(f"The hypervisor '{name}'")
    own = Desired() if loaded is None else build_desired(loaded.model, find_node_name(site, loaded))
    alone, _ = join_shared(site, shared_desired(resolver, name), own, loaded)
    values = [*_explain_node(resolver, name)] if is_implied else explain_hypervisor(resolver, name)
    for one in list_networks_and_pools(alone):
        section, where = describe_object(one.kind, one.values), place_shared(site, one)
        values += [
            ExplainedValue(section=section, key=key, value=value, where=where)
            for key, value in one.values.items()
        ]
    return values, alone


def _explain_node(resolver: ConfigResolver, name: str) -> Iterator[ExplainedValue]:
    """Return what a node is whose networks and pools are in site.yaml alone."""
    loaded = resolver.site.nodes.get(name)
    if loaded is None:
        return
    said = loaded.model.node
    where = loaded.places.place((_NODE,) if said else ())
    why = f"no file of hypervisors/ describes {said or name}"
    yield ExplainedValue(section=_NODE, key=_NODE, value=said or name, where=where, why=why)
