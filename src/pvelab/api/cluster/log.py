"""What the cluster says of itself: its log, `/cluster/log`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.routing import route

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["read_log"]

_DEFAULT_MOST = 50


@route("GET /cluster/log")
def read_log(call: Call) -> Any:
    """Answer the last messages, the newest first; without the privilege only those about the caller."""
    entries = call.world.log.newest_first(call.world.tasks, int(call.params.get("max", _DEFAULT_MOST)))
    if call.may("/", "Sys.Syslog"):
        return entries
    return [entry for entry in entries if entry["user"] == call.authid]
