"""The time of a node: `/nodes/{node}/time`."""

from __future__ import annotations

import datetime
import zoneinfo
from typing import TYPE_CHECKING, Any

from pvelab.server.problems import bad_parameter
from pvelab.server.routing import route

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["read_time", "set_timezone"]

_FRESH = "UTC"


@route("GET /nodes/{node}/time")
def read_time(call: Call) -> Any:
    """Answer the time zone, and the time in UTC and in the zone."""
    name = str((call.store.get("timezones", call.node) or {"name": _FRESH})["name"])
    now = call.now()
    offset = datetime.datetime.fromtimestamp(now, zoneinfo.ZoneInfo(name)).utcoffset()
    local = now + int(offset.total_seconds()) if offset is not None else now
    return {"timezone": name, "time": now, "localtime": local}


@route("PUT /nodes/{node}/time")
def set_timezone(call: Call) -> Any:
    """Set the time zone."""
    name = call.params["timezone"]
    if name not in zoneinfo.available_timezones():
        raise bad_parameter("timezone", "No such timezone")
    call.store.put("timezones", call.node, {"name": name})
