"""How HA is: `/cluster/ha/status`, and laying it down for a while."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.ha.managed import LOCK
from pvelab.server.routing import route
from pvelab.world.ha import config
from pvelab.world.ha.cycle import agent_modes

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.store import Document

__all__ = ["arm", "disarm", "list_ha", "list_status", "read_current", "read_manager_status"]

_SHOWN = ("group", "max_restart", "max_relocate", "failback", "comment")
_INACTIVE = frozenset(("stopped", "freeze", "error", "request_start"))


@route("GET /cluster/ha")
def list_ha(_call: Call) -> Any:
    """List what there is of HA."""
    return [{"id": name} for name in ("status", "resources", "groups", "rules")]


@route("GET /cluster/ha/status")
def list_status(_call: Call) -> Any:
    """List what there is of its status."""
    return [{"name": name} for name in ("current", "manager_status", "disarm-ha", "arm-ha")]


@route("GET /cluster/ha/status/current")
def read_current(call: Call) -> Any:
    """List quorum, master, the agents of the nodes and every resource, each with its state."""
    world, state = call.world, config.status(call.store)
    quorate, local = world.cluster.is_quorate, world.cluster.local()
    rows: list[dict[str, Any]] = [
        {
            "id": "quorum",
            "type": "quorum",
            "node": local,
            "status": "OK" if quorate else f"No quorum on node '{local}'!",
            "quorate": int(quorate),
        }
    ]
    if state.get("master_node"):
        rows.append(_master_row(call, state))
    rows.append(_fencing_row(call, state))
    rows += [_agent_row(call, state, node) for node in sorted(state.get("node_status", {}))]
    services, resources = state.get("service_status", {}), config.effective(call.store, world.guests)
    known = sorted(services)
    for sid in (*known, *(one for one in sorted(resources) if one not in services)):
        rows.append(_service_row(state, sid, services.get(sid), resources.get(sid)))
    return rows


@route("GET /cluster/ha/status/manager_status")
def read_manager_status(call: Call) -> Any:
    """Answer all that the manager and the agents write down."""
    world, state = call.world, config.status(call.store)
    answer: dict[str, Any] = {
        "manager_status": {**state, "timestamp": call.now()} if state else {},
        "quorum": {"node": world.cluster.local(), "quorate": "1" if world.cluster.is_quorate else ""},
    }
    if state.get("node_status"):
        answer["lrm_status"] = {node: _agent(call, state, node) for node in sorted(state["node_status"])}
    return answer


@route("POST /cluster/ha/status/disarm-ha")
def disarm(call: Call) -> Any:
    """Order HA to let go of all resources, or to freeze them, until it is armed again."""
    with call.world.cluster.lock_file(LOCK):
        config.order(call.store, f"disarm-ha {call.params['resource-mode']}")


@route("POST /cluster/ha/status/arm-ha")
def arm(call: Call) -> Any:
    """Order HA to take over again."""
    with call.world.cluster.lock_file(LOCK):
        config.order(call.store, "arm-ha")


def _master_row(call: Call, state: Document) -> dict[str, Any]:
    master, now = str(state["master_node"]), call.now()
    is_active = call.world.cluster.is_quorate and call.world.cluster.is_online(master)
    extra = ""
    if state.get("disarm"):
        extra = f" - {state['disarm']['state']}, resource mode: {state['disarm']['mode']}"
    text = "active" if is_active else "old timestamp - dead?"
    return {
        "id": "master",
        "type": "master",
        "node": master,
        "status": f"{master} ({text}, {_format_time(now)}){extra}",
        "timestamp": now,
    }


def _fencing_row(call: Call, state: Document) -> dict[str, Any]:
    master = str(state.get("master_node", call.world.cluster.local()))
    row = {"id": "fencing", "type": "fencing", "node": master}
    disarm = state.get("disarm")
    if disarm:
        watchdog = "released" if disarm["state"] == "disarmed" else "active"
        text = f"{disarm['state']}, resource mode: {disarm['mode']} (CRM watchdog {watchdog})"
        return {
            **row,
            "status": text,
            "armed-state": disarm["state"],
            "resource_mode": disarm["mode"],
        }
    armed = bool(state.get("master_node")) and call.world.cluster.is_quorate
    words = ("armed", "active") if armed else ("standby", "standby")
    return {**row, "status": f"{words[0]} (CRM watchdog {words[1]})", "armed-state": words[0]}


def _agent_row(call: Call, state: Document, node: str) -> dict[str, Any]:
    agent = _agent(call, state, node)
    text, watchdog = str(agent["state"]), "watchdog standby"
    if not call.world.cluster.is_online(node):
        text = "old timestamp - dead?"
    elif agent["mode"] != "active":
        text = f"{agent['mode']} mode"
        watchdog = "watchdog released" if agent["mode"] == "disarm" else "watchdog active"
    elif text == "wait_for_agent_lock":
        text = "idle"
    else:
        watchdog = "watchdog active"
    return {
        "id": f"lrm:{node}",
        "type": "lrm",
        "node": node,
        "status": f"{node} ({text}, {watchdog}, {_format_time(agent['timestamp'])})",
        "timestamp": agent["timestamp"],
    }


def _agent(call: Call, state: Document, node: str) -> dict[str, Any]:
    mode = "disarm" if state.get("disarm") else agent_modes(call.world, state).get(node, "unknown")
    services = state.get("service_status", {}).values()
    busy = any(
        node in (service.get("node"), service.get("target")) and service["state"] not in _INACTIVE
        for service in services
    )
    condition = "maintenance" if mode == "maintenance" else "active" if busy else "wait_for_agent_lock"
    return {"mode": mode, "state": condition, "timestamp": call.now(), "results": {}}


def _service_row(
    state: Document, sid: str, service: Document | None, resource: Document | None
) -> dict[str, Any]:
    row: dict[str, Any] = {"id": f"service:{sid}", "type": "service", "sid": sid}
    node = (service or resource or {}).get("node")
    if node is not None:
        row["node"] = node
    if service is not None:
        row["crm_state"] = service["state"]
    row["state"] = config.verbose_state(service, resource)
    disarm = state.get("disarm")
    if disarm and disarm["mode"] == "ignore":
        row["state"] = "ignore"
    row["status"] = f"{sid} ({node or '---'}, {row['state']})"
    if resource is not None:
        row["request_state"] = resource["state"]
        row |= {key: resource[key] for key in _SHOWN if key in resource}
    return row


def _format_time(moment: int) -> str:
    """Print a time as Perl does: `Mon Nov 16 03:41:00 2026`."""
    return time.strftime("%a %b %e %H:%M:%S %Y", time.gmtime(moment))
