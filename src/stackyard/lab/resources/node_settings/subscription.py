"""The subscription of a node: `/nodes/{node}/subscription`. A node of the lab has none."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from stackyard.lab.routing import route

if TYPE_CHECKING:
    from stackyard.lab.call import Call

__all__ = ["read_subscription"]


@route("GET /nodes/{node}/subscription")
def read_subscription(call: Call) -> Any:
    """Answer that there is none."""
    answer = {
        "status": "notfound",
        "message": "There is no subscription key",
        "url": "https://www.proxmox.com/en/proxmox-virtual-environment/pricing",
    }
    if call.may(f"/nodes/{call.node}", "Sys.Audit"):
        identity = hashlib.md5(call.node.encode(), usedforsecurity=False)
        answer["serverid"] = identity.hexdigest().upper()
    return answer
