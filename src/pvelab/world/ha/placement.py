"""Where a resource goes: by its rules, by those it belongs with or apart from, then by how busy nodes are."""

from __future__ import annotations

import enum
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pvelab.world.ha.rules import Affinity

__all__ = ["PlacementRequest", "choose_node"]


# In these states a service puts load on the node that it is on.
_THERE = frozenset(("started", "request_stop", "fence", "freeze", "error", "recovery", "migrate", "relocate"))
_ARRIVING = frozenset(("migrate", "relocate", "request_start_balance"))


class PlacementRequest(enum.StrEnum):
    """What a choice of node is for."""

    STAY = "none"
    BEST = "best-score"
    NEXT = "try-next"


def choose_node(
    affinity: Affinity,
    online: Sequence[str],
    services: Mapping[str, Mapping[str, Any]],
    sid: str,
    *,
    failback: bool,
    wish: PlacementRequest,
) -> str | None:
    """Return the node for a resource, None if none will do.

    Args:
        affinity: The rules.
        online: The nodes that are up.
        services: The state of all resources.
        sid: The resource.
        failback: Whether it goes back to a better node when one comes up.
        wish: Whether it rather stays, goes to the best, or to one that it has not failed on.
    """
    service = services[sid]
    current = str(service["node"])
    allowed, preferred = _by_nodes(affinity, sid, online)
    if not preferred:
        return None
    together, apart = _by_others(affinity, sid, services, online)
    stays = wish is PlacementRequest.STAY and not failback and current in allowed
    if stays and (together.get(current) or current not in apart):
        return current
    if wish is PlacementRequest.NEXT:
        preferred -= set(service.get("failed_nodes", ()))
    preferred -= apart
    majority = [node for node, _ in sorted(together.items(), key=lambda item: (-item[1], item[0]))]
    joining = next((node for node in majority if node in preferred), None)
    if joining is not None:
        preferred = {joining}
    return _rank_nodes(service, preferred, _load(services, online), wish)


def _rank_nodes(
    service: Mapping[str, Any], nodes: set[str], load: Counter[str], wish: PlacementRequest
) -> str | None:
    current, fallback = str(service["node"]), service.get("maintenance_node")
    if fallback in nodes:
        return str(fallback)
    if wish is PlacementRequest.STAY and current in nodes:
        return current
    ranked = sorted(nodes, key=lambda node: (load[node], node))
    if not ranked:
        return None
    if wish is PlacementRequest.NEXT and current in ranked[:-1]:
        return ranked[ranked.index(current) + 1]
    return ranked[0]


def _by_nodes(affinity: Affinity, sid: str, online: Sequence[str]) -> tuple[set[str], set[str]]:
    places = affinity.nodes.get(sid)
    if places is None:
        return set(online), set(online)
    up = {node: priority for node, priority in places.items() if node in online}
    best = max(up.values(), default=0)
    return set(up), {node for node, priority in up.items() if priority == best}


def _by_others(
    affinity: Affinity, sid: str, services: Mapping[str, Mapping[str, Any]], online: Sequence[str]
) -> tuple[Counter[str], set[str]]:
    together: Counter[str] = Counter()
    for other in affinity.together.get(sid, ()):
        current, target = _list_used_nodes(services.get(other), online)
        together.update(node for node in (target or current,) if node)
    apart = {
        node
        for other in affinity.apart.get(sid, ())
        for node in _list_used_nodes(services.get(other), online)
        if node is not None
    }
    return together, apart


def _list_used_nodes(
    service: Mapping[str, Any] | None, online: Sequence[str]
) -> tuple[str | None, str | None]:
    """Return the nodes that a service is on and is coming to, of those that are up."""
    if service is None:
        return None, None
    state, node, target = service["state"], service.get("node"), service.get("target")
    return (
        node if state in _THERE and node in online else None,
        target if state in _ARRIVING and target in online else None,
    )


def _load(services: Mapping[str, Mapping[str, Any]], online: Sequence[str]) -> Counter[str]:
    load: Counter[str] = Counter(dict.fromkeys(online, 0))
    for service in services.values():
        load.update({node for node in _list_used_nodes(service, online) if node is not None})
    return load
