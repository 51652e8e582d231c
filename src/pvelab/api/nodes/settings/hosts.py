"""The hosts file of a node: `/nodes/{node}/hosts`."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from pvelab.server.routing import route
from pvelab.world.sections import check_digest

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["read_hosts", "write_hosts"]


@route("GET /nodes/{node}/hosts")
def read_hosts(call: Call) -> Any:
    """Read the file."""
    text = _text(call)
    return {"data": text, "digest": _digest(text)}


@route("POST /nodes/{node}/hosts")
def write_hosts(call: Call) -> Any:
    """Replace the file, unless it is not the one that the caller saw."""
    check_digest(_digest(_text(call)), call.params.get("digest"))
    call.store.put("hosts", call.node, {"data": call.params["data"]})


def _text(call: Call) -> str:
    kept = call.store.get("hosts", call.node)
    if kept is not None:
        return str(kept["data"])
    address = call.world.cluster.nodes()[call.node]["ip"]
    local = "127.0.0.1 localhost.localdomain localhost"
    return f"{local}\n{address} {call.node}.lab.internal {call.node}\n"


def _digest(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
