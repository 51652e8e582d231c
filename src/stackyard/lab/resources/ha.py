"""Which guests are highly available: `/cluster/ha/resources`, asked by clients before they move a guest."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.lab.guests import digest_of
from stackyard.lab.problems import PveError
from stackyard.lab.routing import route

if TYPE_CHECKING:
    from stackyard.lab.call import Call

__all__ = ["list_resources", "read_resource"]

_COLLECTION = "ha_resources"
_TYPES = {"qemu": "vm", "lxc": "ct"}


@route("GET /cluster/ha/resources")
def list_resources(call: Call) -> Any:
    """List what is highly available."""
    wanted = call.params.get("type")
    found = [_shown(call, sid) for sid in call.store.items(_COLLECTION)]
    return [resource for resource in found if wanted in (None, resource["type"])]


@route("GET /cluster/ha/resources/{sid}")
def read_resource(call: Call) -> Any:
    """Answer one resource, named `vm:100` or by its vmid alone."""
    return _shown(call, _full_name(call, call.params["sid"]))


def _shown(call: Call, sid: str) -> dict[str, Any]:
    found = call.store.get(_COLLECTION, sid)
    if found is None:
        raise PveError(f"no such resource '{sid}'")
    digest = digest_of(dict(call.store.items(_COLLECTION)))
    return {"type": sid.partition(":")[0], **found, "sid": sid, "digest": digest}


def _full_name(call: Call, sid: str) -> str:
    if sid.isdecimal():
        guest = call.world.guests.get(sid)
        if guest is None:
            raise PveError(f"unable to detect SID from VMID - VM/CT {sid} does not exist")
        return f"{_TYPES[str(guest['type'])]}:{sid}"
    if not re.fullmatch(r"\S+:\S+", sid):
        raise PveError(f"unable to parse service id '{sid}'")
    return sid
