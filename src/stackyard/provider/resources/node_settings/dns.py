"""`proxmox_virtual_environment_dns`: the search domain and the name servers of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.resources.node_settings.whole import WholeSettings
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object

__all__ = ["DNS", "RESOURCE"]

_SERVERS = ("dns1", "dns2", "dns3")


def _params(state: Object) -> Object:
    return {"search": state["domain"], **dict(zip(_SERVERS, state.get("servers") or (), strict=False))}


def _values(found: Mapping[str, Any]) -> Object:
    servers = [found[key] for key in _SERVERS if found.get(key) is not None]
    return {"domain": found.get("search") or "", "servers": servers}


def _few(servers: list[Any]) -> str | None:
    return None if len(servers) <= len(_SERVERS) else f"has room for {len(_SERVERS)} servers"


DNS = WholeSettings(name="dns", params=_params, values=_values)
RESOURCE = DNS.resource(rules={"servers": Rule(check=_few)})
