"""Name servers of a node: `/nodes/{node}/dns`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.routing import route

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["read_dns", "write_dns"]

_FRESH = {"search": "lab.internal", "dns1": "10.31.0.1"}
_SERVERS = ("dns1", "dns2", "dns3")


@route("GET /nodes/{node}/dns")
def read_dns(call: Call) -> Any:
    """Read the search domain and the name servers."""
    return dict(call.store.get("dns", call.node) or _FRESH)


@route("PUT /nodes/{node}/dns")
def write_dns(call: Call) -> Any:
    """Replace the search domain and all name servers; gaps close up, doubles go."""
    servers = dict.fromkeys(call.params[key] for key in _SERVERS if call.params.get(key))
    # This address represents none.
    listed = [server for server in servers if server != "0.0.0.0"]  # noqa: S104 - compared, not bound
    kept = dict(zip(_SERVERS, listed, strict=False))
    if call.params["search"]:
        kept["search"] = call.params["search"]
    call.store.put("dns", call.node, kept)
