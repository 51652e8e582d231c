"""Guests that say more than a size and an address fit the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostics
from stackyard.sources.site.build import build_desired
from stackyard.sources.site.build_guest import NodeChoice
from stackyard.sources.site.layers import PLAIN_KEYS

if TYPE_CHECKING:
    from stackyard.sources.site.load import Site

__all__ = ["check_model"]

# Stands in for the node where none is named; the checks do not depend on which it is.
_ANY_NODE = NodeChoice(name="node", datastore="datastore")


def check_model(site: Site, found: Diagnostics) -> None:
    """Build each env that says what only the model judges; plain guests are checked without."""
    for name in site.envs:
        if name not in site.broken["envs"]:
            _check_env(site, name, found)


def _check_env(site: Site, env: str, found: Diagnostics) -> None:
    loaded = site.envs[env]
    is_plain = not (loaded.model.networks or loaded.model.files or loaded.model.pools)
    if is_plain and all(guest.values.keys() <= PLAIN_KEYS for guest in site.guests(env)):
        return
    if not all(guest.is_whole for guest in site.guests(env)):
        return
    node = site.nodes.get(loaded.model.node or "")
    judged = Diagnostics()
    build_desired(site, env, _ANY_NODE if node is None else NodeChoice.of(node), judged)
    # What another check said of the same place is said in better words.
    known = {finding.where for finding in found.errors}
    found.extend(finding for finding in judged if finding.where not in known)
