"""The subscription of a node: `/nodes/{node}/subscription`.

A node of the lab has none until it is given a key. A well-formed key is taken for a valid one, for a year: no
server is asked. Documents: `subscriptions/<node>`.
"""

from __future__ import annotations

import datetime
import hashlib
import re
from typing import TYPE_CHECKING, Any

from pvelab.server.problems import PveError
from pvelab.server.routing import route

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = [
    "check_subscription",
    "read_subscription",
    "remove_subscription",
    "set_subscription",
]

_COLLECTION = "subscriptions"
_URL = "https://www.proxmox.com/en/proxmox-virtual-environment/pricing"
_LEVELS = {"c": "Community", "b": "Basic", "s": "Standard", "p": "Premium"}
_KEY = re.compile(r"pve([1248])([cbsp])-[0-9a-f]{10}")
_SOCKETS = 1


@route("GET /nodes/{node}/subscription")
def read_subscription(call: Call) -> Any:
    """Answer the subscription; its key only to who may audit the node."""
    kept = call.store.get(_COLLECTION, call.node)
    audits = call.may(f"/nodes/{call.node}", "Sys.Audit")
    answer: dict[str, Any] = {"status": "notfound", "message": "There is no subscription key", "url": _URL}
    if kept is not None:
        answer = {**kept, "sockets": _SOCKETS, "url": _URL}
        if not audits:
            return {key: answer[key] for key in ("status", "level", "productname", "url")}
    if audits:
        answer["serverid"] = _server(call.node)
    return answer


@route("PUT /nodes/{node}/subscription")
def set_subscription(call: Call) -> Any:
    """Take a key."""
    key = str(call.params["key"]).strip()
    found = _KEY.fullmatch(key)
    if found is None:
        raise PveError("Wrong subscription key format")
    if int(found[1]) < _SOCKETS:
        raise PveError(f"wrong number of sockets ({found[1]} < {_SOCKETS})")
    call.store.put(_COLLECTION, call.node, _make_subscription(call, key, found))


@route("POST /nodes/{node}/subscription")
def check_subscription(call: Call) -> Any:
    """Look at the key again."""
    kept = call.store.get(_COLLECTION, call.node)
    if kept is not None:
        call.store.put(_COLLECTION, call.node, {**kept, "checktime": call.now()})


@route("DELETE /nodes/{node}/subscription")
def remove_subscription(call: Call) -> Any:
    """Forget the key; there need not be one."""
    call.store.delete(_COLLECTION, call.node)


def _make_subscription(call: Call, key: str, found: re.Match[str]) -> dict[str, Any]:
    today = datetime.datetime.fromtimestamp(call.now(), datetime.UTC)
    until = today + datetime.timedelta(days=365)
    level, count = found[2], f"{found[1]} CPU{'s' * (found[1] != '1')}"
    return {
        "status": "active",
        "key": key,
        "level": level,
        "productname": f"Proxmox VE {_LEVELS[level]} Subscription {count}/year",
        "regdate": today.strftime("%Y-%m-%d %H:%M:%S"),
        "nextduedate": until.strftime("%Y-%m-%d"),
        "checktime": call.now(),
    }


def _server(node: str) -> str:
    return hashlib.md5(node.encode(), usedforsecurity=False).hexdigest().upper()
