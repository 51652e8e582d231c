"""Everything that notifications can be sent to, and trying it: `/cluster/notifications/targets`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.lab.problems import PveError
from stackyard.lab.resources.notifications import config
from stackyard.lab.resources.notifications.delivery import ENDPOINTS, send
from stackyard.lab.routing import route

if TYPE_CHECKING:
    from stackyard.lab.call import Call

__all__ = ["list_targets", "try_target"]

_SHOWN = ("name", "origin", "disable", "comment")


@route("GET /cluster/notifications/targets")
def list_targets(call: Call) -> Any:
    """List the endpoints of all types."""
    rows: list[dict[str, Any]] = []
    for kind in ENDPOINTS:
        for name in config.entities(call.store, kind):
            shown = config.shown(call.store, name)
            rows.append({**{key: shown[key] for key in _SHOWN if key in shown}, "type": kind})
    return rows


@route("POST /cluster/notifications/targets/{name}/test")
async def try_target(call: Call) -> Any:
    """Send a test notification."""
    name = str(call.params["name"])
    if name not in config.entities(call.store, *ENDPOINTS):
        raise PveError(f"endpoint '{name}' does not exist", status=404)
    notice = {
        "severity": "info",
        "title": "Test notification",
        "message": f"This is a test of the notification target '{name}'.",
        "time": call.now(),
        "fields": {"type": "test"},
    }
    try:
        await send(call.world, name, notice)
    except PveError as err:
        text = f"Could not test target: could not notify via endpoint(s): {name}: {err.text}"
        raise PveError(text) from err
