"""Options of the firewall and of the cluster that a file leaves out stay as Proxmox has them.

The resources of the provider set every option: one that is left out gets a default, which turns a firewall
off that is on, or is unset. So each option is written out with what the cluster has. Options that no state
has yet are imported, so that the plan shows what changes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from stackyard.provider.resources import cluster_options
from stackyard.provider.resources.firewall import cluster_firewall, node_firewall
from stackyard.render.objects import address_of_object
from stackyard.render.references import short_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackyard.clients import proxmox
    from stackyard.desired import ClusterObject, Desired
    from stackyard.path.known_state import KnownState
    from stackyard.provider.values import Object

__all__ = ["import_settings", "keep_settings"]


class _Settings(Protocol):
    """What is always there, and is set and unset."""

    def path_of(self, state: Object, /) -> str: ...

    @property
    def identity(self) -> Callable[[Object], str]: ...

    def attributes(self, known: Object, found: Mapping[str, Any], /) -> Object: ...


_SETTINGS: Mapping[str, _Settings] = {
    "cluster_options": cluster_options.SETTINGS,
    "cluster_firewall": cluster_firewall.SETTINGS,
    "node_firewall": node_firewall.SETTINGS,
}


async def keep_settings(client: proxmox.Client, desired: Desired) -> Desired:
    """Return a model with the options that it leaves out as the cluster has them.

    Raises:
        ProxmoxError: They cannot be read.
    """
    if not any(map(_is_settings, desired.objects)):
        return desired
    filled = await asyncio.gather(*(_fill(client, one) for one in desired.objects))
    return desired.model_copy(update={"objects": tuple(filled)})


def import_settings(desired: Desired, known: KnownState) -> list[dict[str, str]]:
    """Return the imports of the options that the state does not have: they are always there."""
    return [
        {"to": address, "id": _SETTINGS[short_type(one.key.type)].identity(dict(one.attributes))}
        for one in desired.objects
        if _is_settings(one) and (address := address_of_object(one.key)) not in known.instances
    ]


def _is_settings(one: ClusterObject) -> bool:
    return short_type(one.key.type) in _SETTINGS


async def _fill(client: proxmox.Client, one: ClusterObject) -> ClusterObject:
    settings = _SETTINGS.get(short_type(one.key.type))
    if settings is None:
        return one
    said = {name: value for name, value in one.attributes.items() if value is not None}
    answer = await client.get(settings.path_of(said))
    found = settings.attributes(said, answer or {})
    # A block is a list of one in a state, and a mapping in a file.
    plain = {name: value[0] if isinstance(value, list) and value else value for name, value in found.items()}
    left_out = {name: value for name, value in plain.items() if value not in (None, []) and name not in said}
    return one.model_copy(update={"attributes": {**said, **left_out}})
