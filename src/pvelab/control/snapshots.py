"""`/_lab/snapshots`: the whole lab, saved and restored."""

from __future__ import annotations

from typing import Any

from pvelab.server.control import ControlCall, control

__all__ = ["list_snapshots", "remove_snapshot", "restore_snapshot", "save_snapshot"]


@control("GET /snapshots")
def list_snapshots(call: ControlCall) -> Any:
    """List the saved states."""
    return {"snapshots": [saved.document() for saved in call.lifecycle.saved.all()]}


@control("POST /snapshots/{name}")
def save_snapshot(call: ControlCall) -> Any:
    """Save the lab as it is now, in place of a state of the same name."""
    call.lifecycle.save(str(call.params["name"]))
    return {"saved": call.params["name"]}


@control("POST /snapshots/{name}/restore")
async def restore_snapshot(call: ControlCall) -> Any:
    """Make the lab what it was; tasks that run are interrupted."""
    await call.lifecycle.restore(str(call.params["name"]))
    return {"restored": call.params["name"]}


@control("DELETE /snapshots/{name}")
def remove_snapshot(call: ControlCall) -> Any:
    """Forget a saved state."""
    call.lifecycle.saved.remove(str(call.params["name"]))
    return {"removed": [call.params["name"]]}
