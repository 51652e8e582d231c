"""`/version`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.facts import PVE_RELEASE, PVE_VERSION
from pvelab.server.routing import route

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["read_node_version", "read_version"]

REPOSITORY_ID = "1ab2c3d4e5f60718"


@route("GET /version")
def read_version(_call: Call) -> Any:
    """Answer which release this is."""
    return {"version": PVE_VERSION, "release": PVE_RELEASE, "repoid": REPOSITORY_ID}


@route("GET /nodes/{node}/version")
def read_node_version(_call: Call) -> Any:
    """Answer which release a node runs."""
    return {"version": PVE_VERSION, "release": PVE_RELEASE, "repoid": REPOSITORY_ID}
