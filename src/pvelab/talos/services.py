"""The services of a Talos machine, and why it is not ready."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.talos.cluster_view import is_ready
from pvelab.talos.kubelets import STATIC_PODS
from stackyard.talosapi.messages import pb

if TYPE_CHECKING:
    from pvelab.talos.machine import TalosMachine

__all__ = ["Service", "list_services", "list_unmet_conditions"]

_EVERYWHERE = ("apid", "auditd", "containerd", "cri", "dashboard", "kubelet", "machined", "syslogd", "udevd")
_WITHOUT_HEALTH = frozenset(("dashboard",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service: its state in the words of Talos, and whether it is healthy."""

    name: str
    state: str
    is_healthy: bool = False
    is_unknown: bool = False
    text: str = ""

    def message(self, since_s: float) -> Any:
        """Return it as `ServiceList` answers; clients read the state of the last event."""
        stamp = pb.Timestamp(seconds=int(since_s))
        event = pb.ServiceEvent(msg=self.text, state=self.state, ts=stamp)
        health = pb.ServiceHealth(
            unknown=self.is_unknown,
            healthy=self.is_healthy,
            last_message="" if self.is_healthy else self.text,
            last_change=stamp,
        )
        return pb.ServiceInfo(
            id=self.name, state=self.state, events=pb.ServiceEvents(events=[event]), health=health
        )


def list_services(machine: TalosMachine) -> list[Service]:
    """Return the services of a machine that has a configuration, by name."""
    names = [*_EVERYWHERE, *(("trustd",) if machine.is_control_plane else ())]
    found = [
        Service(
            name=name,
            state="Running",
            is_healthy=name not in _WITHOUT_HEALTH,
            is_unknown=name in _WITHOUT_HEALTH,
            text="Health check successful",
        )
        for name in names
    ]
    for extension in machine.image.get("extensions", ()):
        name = f"ext-{str(extension).rpartition('/')[2]}"
        found.append(Service(name=name, state="Running", is_unknown=True, text="Started task"))
    if machine.is_control_plane:
        found.append(_etcd(machine))
    return sorted(found, key=lambda one: one.name)


def list_unmet_conditions(machine: TalosMachine) -> list[tuple[str, str]]:
    """Return what a machine that boots or runs still lacks; other stages have no conditions."""
    if machine.stage not in ("booting", "running") or machine.config is None:
        return []
    found = []
    kubernetes = machine.control_plane
    is_answering = kubernetes is not None and kubernetes.is_answering
    if machine.has_fault("clock-skew"):
        found.append(("time", "time is not synced"))
    if machine.is_control_plane and not machine.etcd.is_healthy:
        found.append(("services", "etcd not healthy"))
    if machine.is_control_plane and not is_answering:
        found.append(("staticPods", "kube-system/kube-apiserver not ready"))
    elif machine.is_control_plane and kubernetes is not None:
        pods = [f"{name}-{machine.hostname}" for name in STATIC_PODS]
        missing = [pod for pod in pods if not is_ready(kubernetes.view.pods.get(pod, {}))]
        if missing:
            found.append(("staticPods", ", ".join(f"kube-system/{pod} not ready" for pod in missing)))
    problem = (
        f'node "{machine.hostname}" status is not available yet'
        if kubernetes is None
        else kubernetes.view.find_node_problem(machine.hostname)
    )
    return found if problem is None else [*found, ("nodeReady", problem)]


def _etcd(machine: TalosMachine) -> Service:
    if not machine.etcd.is_member:
        return Service(name="etcd", state="Preparing", text="Running pre state")
    if not machine.etcd.is_running:
        return Service(name="etcd", state="Starting", text="Starting etcd")
    text = "Health check successful" if machine.etcd.is_healthy else "context deadline exceeded"
    return Service(name="etcd", state="Running", is_healthy=machine.etcd.is_healthy, text=text)
