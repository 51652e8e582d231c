"""The manager of the cluster: what state each resource is in, and what is to be done about it.

It works on the status document and knows guests only by what the `Cluster` round it says: the configuration,
which nodes are up, the results of what nodes were told to do. One `round` continues until nothing changes.
The states and the steps between them are those of Proxmox's CRM.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.world.ha.placement import PlacementRequest, choose_node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pvelab.world.ha.rules import Affinity

__all__ = ["Manager", "Service", "StartOutcome", "new_uid"]

Service = dict[str, Any]
Step = Callable[[str, Service, Mapping[str, Any]], None]

# A guest that cannot be moved is not tried again at once, and one that fails to start not for ever.
PAUSE_S = 10.0

_DISABLED: Mapping[str, Any] = {"state": "disabled"}
_KEPT = ("node", "failed_nodes", "maintenance_node")
_MOVES = ("migrate", "relocate", "request_start_balance")
_STEPS = ("stopped", "request_start", "started", "request_stop", "recovery", "freeze", "error")
_FROZEN = ("started", "stopped", "request_stop", "request_start", "request_start_balance")
_KEPT_WHEN_DISARMED = ("state", "node", "uid", "maintenance_node")


class StartOutcome:
    """How something that a node was told to do has ended: the exit codes of Proxmox's agents."""

    SUCCESS = 0
    ERROR = 1
    IGNORED = 9
    WRONG_NODE = 12


def new_uid() -> str:
    """Return a name for one command to a node."""
    return base64.b64encode(secrets.token_bytes(16)).decode().rstrip("=")


@dataclass(slots=True, kw_only=True)
class Manager:
    """One look at the whole cluster.

    Attributes:
        services: The state of each resource, which is changed in place.
        resources: Their configuration, with defaults, and the node of each guest.
        nodes: The state of each node: online, maintenance, unknown or fence.
        modes: What the agent of each node does: active, restart, shutdown, maintenance or disarm.
        results: By uid, how what nodes were told has ended.
        affinity: The rules.
        now: The lab time.
        held: By resource, until when it is not moved by itself.
        retry_at: By resource, when it is started again at the earliest.
        is_lost: Tells whether a node has been away long enough to be fenced.
        stop_resource: Writes down that a resource is to be stopped, as someone ordered.
        recover: Takes a guest from a fenced node to another.
        rebalance: Whether a resource is placed again when it is started.
    """

    services: dict[str, Service]
    resources: Mapping[str, Mapping[str, Any]]
    nodes: dict[str, str]
    modes: Mapping[str, str]
    results: Mapping[str, int]
    affinity: Affinity
    now: float
    held: dict[str, float]
    retry_at: dict[str, float]
    is_lost: Callable[[str], bool]
    stop_resource: Callable[[str], None]
    recover: Callable[[str, str], None]
    rebalance: bool = False

    @property
    def online(self) -> Sequence[str]:
        """The nodes that are up and work."""
        return [node for node, state in sorted(self.nodes.items()) if state == "online"]

    def admit(self) -> None:
        """Take up new resources and drop those that are gone or ignored."""
        for sid, data in sorted(self.resources.items()):
            if sid not in self.services and data["state"] != "ignored" and data.get("node"):
                state = "request_start" if data["state"] == "started" else "request_stop"
                self.services[sid] = {"state": state, "node": data["node"], "uid": new_uid()}
        for sid in list(self.services):
            found = self.resources.get(sid)
            if found is None or found["state"] == "ignored" or not found.get("node"):
                del self.services[sid]

    def accept_order(self, order: str) -> None:
        """Note an order to move or stop a resource: `migrate vm:100 pve2`, `stop ct:101 60`."""
        word, sid, argument = order.split(" ")
        service = self.services.get(sid)
        if service is None:
            return
        if word == "stop":
            service["cmd"] = ["stop", argument]
        elif self.nodes.get(argument) == "online" and service["node"] != argument:
            self._queue_move(word, sid, argument)

    def _queue_move(self, word: str, sid: str, target: str) -> None:
        for other in self.affinity.apart.get(sid, ()):
            found = self.services.get(other)
            if found is not None and target in (found.get("node"), found.get("target")):
                return
        for one in (sid, *sorted(self.affinity.together.get(sid, ()))):
            found = self.services.get(one)
            if found is not None and target not in (found.get("node"), found.get("target")):
                found["cmd"] = [word, target]

    def round(self, only: Callable[[Service], bool] = lambda _service: True) -> None:
        """Let every resource (or only some) take its next steps, until none has one to take."""
        repeat = True
        while repeat:
            repeat = False
            for sid, service in sorted(self.services.items()):
                if only(service):
                    before = service["state"]
                    self._step(sid, service)
                    self._freeze(sid, service)
                    repeat |= service["state"] != before
            repeat |= self._fence()

    def disarm(self, mode: str) -> bool:
        """Let go of the resources, or freeze them; False as long as some are on their way somewhere."""
        if any(
            one["state"] in ("fence", "recovery", "migrate", "relocate") for one in self.services.values()
        ):
            return False
        for service in self.services.values():
            for key in [key for key in service if key not in _KEPT_WHEN_DISARMED]:
                del service[key]
            if mode == "freeze" and service["state"] in _FROZEN:
                service |= {"state": "freeze", "uid": new_uid()}
        return True

    def _step(self, sid: str, service: Service) -> None:
        state, data = service["state"], self.resources.get(sid, _DISABLED)
        if state in _MOVES:
            self._from_move(sid, service, data)
        elif state in _STEPS:
            # Every state but `fence`, which is over when the node is fenced.
            step: Step = getattr(self, f"_from_{state}")
            step(sid, service, data)

    def _change(self, sid: str, state: str, **fields: Any) -> None:
        old = self.services[sid]
        kept: Service = {key: old[key] for key in _KEPT if key in old}
        old.clear()
        old.update({"state": state, **kept, **fields, "uid": new_uid()})

    def _freeze(self, sid: str, service: Service) -> None:
        if self.modes.get(service["node"]) == "restart" and service["state"] in (
            "started",
            "stopped",
            "request_stop",
        ):
            self._change(sid, "freeze")

    def _fence(self) -> bool:
        """Fence nodes that are lost: what was on them may be started elsewhere from then on."""
        found = False
        for sid, service in sorted(self.services.items()):
            if service["state"] == "fence":
                self.nodes[service["node"]] = "unknown"
                self._change(sid, "recovery")
                found = True
        return found

    def _is_away(self, node: str) -> bool:
        return self.nodes.get(node) != "online" and self.is_lost(node)

    # --- The steps out of each state

    def _from_stopped(self, sid: str, service: Service, data: Mapping[str, Any]) -> None:
        service["node"] = data.get("node", service["node"])
        order = service.pop("cmd", None)
        if order and order[0] != "stop" and self._may_go(service, order[1]):
            self._change(sid, order[0], target=order[1])
        elif data["state"] == "disabled":
            return
        elif self._is_away(service["node"]) and self.nodes.get(service["node"]) != "maintenance":
            self._change(sid, "fence")
        elif data["state"] == "started":
            self._change(sid, "request_start")

    def _from_request_start(self, sid: str, service: Service, data: Mapping[str, Any]) -> None:
        target = self._choose_node(sid, data, PlacementRequest.BEST) if self.rebalance else None
        if target is not None and target != service["node"]:
            self._change(sid, "request_start_balance", target=target)
        else:
            self._change(sid, "started")

    def _from_started(self, sid: str, service: Service, data: Mapping[str, Any]) -> None:
        state = self.nodes.get(service["node"])
        if state != "online":
            if state != "maintenance":
                if self._is_away(service["node"]):
                    self._change(sid, "fence")
                return
            service["maintenance_node"] = service["node"]
        if data["state"] in ("disabled", "stopped"):
            self._change(sid, "request_stop")
        elif service.get("cmd"):
            self._follow(sid, service)
        else:
            wish = self._judge_start(sid, service, data)
            if wish is not None:
                self._place(sid, service, data, wish)

    def _follow(self, sid: str, service: Service) -> None:
        word, argument = service.pop("cmd")
        if word == "stop":
            self._change(sid, "request_stop", timeout=int(argument))
            self.stop_resource(sid)
        elif self._may_go(service, argument):
            self._change(sid, word, target=argument)

    def _judge_start(self, sid: str, service: Service, data: Mapping[str, Any]) -> PlacementRequest | None:
        """Return what follows from how the last start has ended; None if the resource is given up."""
        outcome = self.results.get(service["uid"])
        if outcome is None:
            return PlacementRequest.STAY
        if outcome == StartOutcome.SUCCESS:
            service.pop("failed_nodes", None)
            service["running"] = 1
            return PlacementRequest.STAY
        service.pop("running", None)
        service["failed_nodes"] = [*service.get("failed_nodes", ()), service["node"]]
        if len(service["failed_nodes"]) > data["max_relocate"]:
            self._change(sid, "error")
            return None
        return PlacementRequest.NEXT

    def _place(self, sid: str, service: Service, data: Mapping[str, Any], wish: PlacementRequest) -> None:
        held = self.held.get(sid, 0.0) > self.now
        node = None if held and wish is PlacementRequest.STAY else self._choose_node(sid, data, wish)
        if node is not None and node != service["node"]:
            fallback = service.get("maintenance_node")
            if fallback is not None and (node == fallback or service["node"] != fallback):
                del service["maintenance_node"]
            self._change(sid, "migrate" if data["type"] == "vm" else "relocate", target=node)
            return
        if service.get("maintenance_node") == service["node"] and service["node"] in self.online:
            del service["maintenance_node"]
        if wish is PlacementRequest.NEXT:
            # Nowhere else to go: it is tried here once more.
            if len(service["failed_nodes"]) > 3:
                self.retry_at[sid] = self.now + PAUSE_S
            service["uid"] = new_uid()

    def _from_request_stop(self, sid: str, service: Service, _data: Mapping[str, Any]) -> None:
        outcome = self.results.get(service["uid"])
        if outcome is not None:
            self._change(sid, "stopped" if outcome == StartOutcome.SUCCESS else "error")
        elif self._is_away(service["node"]):
            self._change(sid, "fence")

    def _from_move(self, sid: str, service: Service, data: Mapping[str, Any]) -> None:
        outcome, after = self.results.get(service["uid"]), "request_stop"
        if data["state"] == "started":
            after = "started"
        if outcome is None:
            if self._is_away(service["node"]):
                self._change(sid, "fence")
        elif outcome == StartOutcome.SUCCESS:
            self._change(sid, after, node=service["target"])
        elif outcome == StartOutcome.WRONG_NODE:
            self._change(sid, "error")
        else:
            if outcome != StartOutcome.IGNORED:
                self.held[sid] = self.now + PAUSE_S
            self._change(sid, after)

    def _from_recovery(self, sid: str, service: Service, data: Mapping[str, Any]) -> None:
        node = self._choose_node(sid, data, PlacementRequest.BEST)
        if node is not None:
            self.recover(sid, node)
            state = "started" if data["state"] == "started" else "request_stop"
            self._change(sid, state, node=node)
        elif data["state"] == "disabled":
            service.pop("failed_nodes", None)
            self._change(sid, "stopped")

    def _from_freeze(self, sid: str, service: Service, data: Mapping[str, Any]) -> None:
        if self.modes.get(service["node"]) == "active" and self.nodes.get(service["node"]) == "online":
            self._change(sid, "started" if data["state"] == "started" else "request_stop")

    def _from_error(self, sid: str, service: Service, data: Mapping[str, Any]) -> None:
        if data["state"] == "disabled":
            service.pop("failed_nodes", None)
            self._change(sid, "stopped")

    def _may_go(self, service: Service, target: str) -> bool:
        return target in self.online and service["node"] != target

    def _choose_node(self, sid: str, data: Mapping[str, Any], wish: PlacementRequest) -> str | None:
        return choose_node(
            self.affinity,
            self.online,
            self.services,
            sid,
            failback=bool(data.get("failback", 1)),
            wish=wish,
        )
