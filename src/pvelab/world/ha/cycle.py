"""One round of HA: from the documents to the manager and the agents, and back to the documents."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from pvelab.faults.latency import Work
from pvelab.world.cluster.jobs import switch_replication
from pvelab.world.ha import config
from pvelab.world.ha.agent import Agent, TaskStarter
from pvelab.world.ha.manager import Manager
from pvelab.world.ha.motion import affinity_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.ha.rules import Affinity
    from pvelab.world.world import World

__all__ = ["Cycle"]

# Locks that a node which is gone cannot need any more.
_REMOVABLE_LOCKS = frozenset(
    (
        *("backup", "mounted", "migrate", "clone", "rollback", "snapshot", "snapshot-delete"),
        *("suspending", "suspended"),
    )
)
_IN_MOTION = frozenset(("fence", "recovery", "migrate", "relocate"))


class Cycle:
    """The manager and the agents of a lab.

    Args:
        world: The lab.
        task_starter: What starts the tasks of the agents.
    """

    def __init__(self, world: World, task_starter: TaskStarter) -> None:
        self._world = world
        self.agent = Agent(world, task_starter)
        self._is_first = True
        self._away_since: dict[str, float] = {}
        self._held: dict[str, float] = {}

    def act(self) -> float | None:
        """Do one round in the running transaction; return when to look again if nothing happens before."""
        world = self._world
        if not world.cluster.is_quorate:
            return None
        self._forget_switched_off()
        status: dict[str, Any] = copy.deepcopy(dict(config.status(world.store)))
        status.setdefault("service_status", {})
        resources = config.effective(world.store, world.guests)
        orders = self._orders()
        self._look_at_nodes(status, orders)
        self.agent.collect(resources)
        affinity = affinity_of(world)
        self._arm(status, orders, resources)
        repeat, first = True, True
        while repeat:
            manager = self._manager(status, resources, affinity)
            if not status.get("disarm"):
                manager.admit()
            for order in orders if first else ():
                manager.accept_order(order)
            self._decide(status, manager)
            up = [node for node, state in manager.nodes.items() if state in ("online", "maintenance")]
            repeat, first = self.agent.work(manager.services, manager.modes, up), False
            # What an order changed in the configuration counts from here on.
            resources = config.effective(world.store, world.guests)
        if status != config.status(world.store):
            world.store.put(*config.STATUS, status)
        return self._next_round_at(status)

    def modes(self, status: Mapping[str, Any]) -> dict[str, str]:
        """Return what the agent of each node does."""
        if status.get("disarm"):
            return dict.fromkeys(self._world.cluster.nodes(), "disarm")
        return agent_modes(self._world, status)

    def _decide(self, status: dict[str, Any], manager: Manager) -> None:
        disarm = status.get("disarm")
        if disarm is None:
            manager.round()
        elif manager.disarm(disarm["mode"]):
            disarm["state"] = "disarmed"
        else:
            manager.round(lambda service: service["state"] in _IN_MOTION)

    def _manager(
        self, status: dict[str, Any], resources: Mapping[str, Mapping[str, Any]], affinity: Affinity
    ) -> Manager:
        options = self._world.store.get("cluster", "options") or {}
        placing = options.get("crs") or {}
        return Manager(
            services=status["service_status"],
            resources=resources,
            nodes=status["node_status"],
            modes=self.modes(status),
            results=self.agent.results,
            affinity=affinity,
            now=self._world.clock.now(),
            held=self._held,
            retry_at=self.agent.retry_at,
            is_lost=self._is_lost,
            stop_resource=self._stop_resource,
            recover=self._recover,
            rebalance=bool(isinstance(placing, dict) and placing.get("ha-rebalance-on-start")),
        )

    def _forget_switched_off(self) -> None:
        """Let nodes take part that are up although they were going down when an earlier lab was killed."""
        if not self._is_first:
            return
        self._is_first = False
        store = self._world.store
        for name, node in list(self._world.cluster.nodes().items()):
            if "ha_mode" in node and self._world.cluster.is_online(name):
                store.put("nodes", name, {key: value for key, value in node.items() if key != "ha_mode"})

    def _orders(self) -> list[str]:
        store = self._world.store
        found = sorted(store.items(config.COMMANDS).items(), key=lambda item: int(item[0]))
        for number, _ in found:
            store.delete(config.COMMANDS, number)
        return [str(order["text"]) for _, order in found]

    def _look_at_nodes(self, status: dict[str, Any], orders: list[str]) -> None:
        """Follow which nodes are up, and take the orders about nodes out of the list."""
        cluster, now = self._world.cluster, self._world.clock.now()
        states = status.setdefault("node_status", {})
        requests = status.setdefault("node_request", {})
        for order in [one for one in orders if "node-maintenance" in one]:
            orders.remove(order)
            word, node = order.split(" ")
            if word.startswith("disable"):
                requests.pop(node, None)
            elif states.get(node) == "online" and not status.get("disarm"):
                requests[node] = {"maintenance": 1}
        modes = self.modes(status)
        for node in cluster.nodes():
            if cluster.is_online(node):
                self._away_since.pop(node, None)
                states[node] = "maintenance" if modes.get(node) == "maintenance" else "online"
            else:
                self._away_since.setdefault(node, now)
                states[node] = "unknown"
        for node in [name for name in states if name not in cluster.nodes()]:
            del states[node]
        if states.get(status.get("master_node", "")) != "online":
            status["master_node"] = cluster.local()

    def _arm(
        self, status: dict[str, Any], orders: list[str], resources: Mapping[str, Mapping[str, Any]]
    ) -> None:
        for order in [one for one in orders if one.endswith("arm-ha") or one.startswith("disarm-ha")]:
            orders.remove(order)
            if order.startswith("disarm-ha"):
                status.setdefault("disarm", {"mode": order.split(" ")[1], "state": "disarming"})
            elif status.pop("disarm", {}).get("mode") == "ignore":
                # Meanwhile they may have been moved by hand.
                for sid, service in status["service_status"].items():
                    service["node"] = resources.get(sid, {}).get("node", service["node"])

    def _is_lost(self, node: str) -> bool:
        since = self._away_since.get(node)
        delay_s = self._world.latency.seconds(Work.FENCE)
        return since is not None and self._world.clock.now() - since >= delay_s

    def _stop_resource(self, sid: str) -> None:
        with self._world.store.edit(config.RESOURCES, sid) as resource:
            resource["state"] = "stopped"

    def _recover(self, sid: str, node: str) -> None:
        """Move the configuration of a guest from a node that is gone; it runs nowhere now."""
        guests = self._world.guests
        guest = guests.get(sid.partition(":")[2])
        if guest is not None:
            lock = guest["config"].get("lock")
            settings = dict(guest["config"])
            if lock in _REMOVABLE_LOCKS:
                del settings["lock"]
            guests.update(guest, node=node, config=settings, status="stopped", started=None, run={})
            switch_replication(self._world.store, int(guest["vmid"]), node)

    def _next_round_at(self, status: Mapping[str, Any]) -> float | None:
        now, fence_s = self._world.clock.now(), self._world.latency.seconds(Work.FENCE)
        used = {str(service["node"]) for service in status["service_status"].values()}
        moments = [since + fence_s for node, since in self._away_since.items() if node in used]
        moments += [*self._held.values(), *self.agent.retry_at.values()]
        return min((moment for moment in moments if moment > now), default=None)


def agent_modes(world: World, status: Mapping[str, Any]) -> dict[str, str]:
    """Return what the agents do where HA is armed."""
    requests = status.get("node_request") or {}
    return {
        name: "maintenance" if name in requests else str(node.get("ha_mode", "active"))
        for name, node in world.cluster.nodes().items()
    }
