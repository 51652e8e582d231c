"""`HealthCheck`: the checks of a whole cluster, one after the other, each until it passes or time is up."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grpclib import GRPCError, Status

from pvelab.talos.cluster_view import ClusterView, is_ready
from pvelab.talos.hardware import list_addresses, list_disks, memory_kib
from pvelab.talos.kubelets import STATIC_PODS
from stackyard.talosapi.messages import pb

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from pvelab.talos.machine import TalosMachine

__all__ = ["check_health"]

_DEFAULT_S = 20 * 60.0
_SKIPPED = "SKIP"
# What Talos insists on; the whole disk in bytes.
_LEAST_KIB = {True: 1698 * 1024, False: 874 * 1024}
_LEAST_DISK = 6 * 2**30
# What a client says whose server has had no time left.
_LATE = "context deadline exceeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    """What is checked: the machine that checks, and the addresses of those that should be there."""

    machine: TalosMachine
    control_planes: tuple[str, ...]
    workers: tuple[str, ...]

    @property
    def addresses(self) -> tuple[str, ...]:
        return (*self.control_planes, *self.workers)

    @property
    def view(self) -> ClusterView:
        """What Kubernetes says; nothing before it answers."""
        found = self.machine.control_plane
        return found.view if found is not None and found.is_answering else ClusterView()

    def find(self, address: str) -> TalosMachine | None:
        """Return the machine of an address, None if its API does not answer."""
        found = self.machine.guests.at(address)
        return found if found in self.machine.list_members() and found.is_open else None


async def check_health(machine: TalosMachine, request: Any) -> AsyncIterator[Any]:
    """Answer `HealthCheck` of a control plane machine.

    Raises:
        GRPCError: A check did not pass in time.
    """
    if not machine.is_control_plane:
        raise GRPCError(Status.UNIMPLEMENTED, "health check is only available on control plane nodes")
    timeout_s = float(request.wait_timeout.seconds + request.wait_timeout.nanos / 1e9) or _DEFAULT_S
    late = asyncio.create_task(machine.world.clock.sleep(timeout_s))
    try:
        for name, check in _CHECKS:
            async for text in _wait_for(machine, request, check, late):
                yield pb.HealthCheckProgress(message=f"waiting for {name}: {text}")
                if text == _LATE:
                    raise GRPCError(Status.DEADLINE_EXCEEDED, _LATE)
    finally:
        late.cancel()


async def _wait_for(
    machine: TalosMachine, request: Any, check: Callable[[_Checked], str | None], late: asyncio.Task[None]
) -> AsyncIterator[str]:
    """Yield what a check says whenever that changes, at last OK, SKIP, or that time is up."""
    yield "..."
    said = None
    while True:
        changed = machine.guests.changed
        problem = check(_read(machine, request))
        if problem in (None, _SKIPPED):
            yield problem or "OK"
            return
        if problem != said:
            yield str(problem)
        said = problem
        waiting = asyncio.create_task(changed.wait())
        await asyncio.wait((waiting, late), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if late.done():
            yield _LATE
            return


def _read(machine: TalosMachine, request: Any) -> _Checked:
    """Take the machines that the caller names, or those that were discovered."""
    given = request.cluster_info
    if given.control_plane_nodes or given.worker_nodes:
        servers, workers = tuple(given.control_plane_nodes), tuple(given.worker_nodes)
    else:
        members = machine.list_members()
        servers = tuple(_address(one) for one in members if one.is_control_plane)
        workers = tuple(_address(one) for one in members if not one.is_control_plane)
    return _Checked(machine=machine, control_planes=servers, workers=workers)


def _address(machine: TalosMachine) -> str:
    return next(iter(list_addresses(machine.world, machine.guest)), "")


def _check_etcd(checked: _Checked) -> str | None:
    for address in checked.control_planes:
        found = checked.find(address)
        if found is None or not found.etcd.is_healthy:
            return f"{address}: service is not healthy: etcd"
    return None


def _check_members(checked: _Checked) -> str | None:
    seen = {_member_ips(checked, address) for address in checked.control_planes}
    return None if len(seen) <= 1 else "etcd members are inconsistent across nodes"


def _check_member_places(checked: _Checked) -> str | None:
    found = sorted({ip for address in checked.control_planes for ip in _member_ips(checked, address)})
    wanted = sorted(checked.control_planes)
    if set(found) <= set(wanted):
        return None
    shown = " ".join(map(str, found)), " ".join(wanted)
    return f"etcd member ips [{shown[0]}] are not subset of control plane node ips [{shown[1]}]"


def _member_ips(checked: _Checked, address: str) -> frozenset[str]:
    machine = checked.find(address)
    return frozenset() if machine is None else machine.etcd.list_addresses()


def _check_apid(checked: _Checked) -> str | None:
    away = [address for address in checked.addresses if checked.find(address) is None]
    return f"apid does not answer on {', '.join(away)}: connection refused" if away else None


def _check_memory(checked: _Checked) -> str | None:
    for address in checked.addresses:
        found = checked.find(address)
        if found is not None and memory_kib(found.guest) < _LEAST_KIB[found.is_control_plane]:
            least = _LEAST_KIB[found.is_control_plane] // 1024
            return f"{address}: memory size {memory_kib(found.guest) // 1024} MiB is below {least} MiB"
    return None


def _check_disks(checked: _Checked) -> str | None:
    for address in checked.addresses:
        found = checked.find(address)
        for disk in () if found is None else list_disks(found.world, found.guest):
            if disk.is_system and disk.size < _LEAST_DISK:
                return f"{address}: disk size {disk.pretty_size} is below 6 GiB"
    return None


def _check_diagnostics(_checked: _Checked) -> str | None:
    # The machines of the lab have no diagnostics.
    return None


def _check_kubelet(checked: _Checked) -> str | None:
    for address in checked.addresses:
        found = checked.find(address)
        services = {} if found is None else {one.name: one for one in found.list_services()}
        if "kubelet" not in services or not services["kubelet"].is_healthy:
            return f"{address}: service is not healthy: kubelet"
    return None


def _check_boot(checked: _Checked) -> str | None:
    late = [address for address in checked.addresses if _stage(checked, address) != "running"]
    return f"nodes are still booting: {', '.join(late)}" if late else None


def _stage(checked: _Checked, address: str) -> str:
    found = checked.find(address)
    return "" if found is None else found.stage


def _check_reported(checked: _Checked) -> str | None:
    found = {
        str(row["address"])
        for node in checked.view.nodes.values()
        for row in (node.get("status") or {}).get("addresses") or ()
        if row["type"] == "InternalIP"
    }
    missing = [address for address in checked.addresses if address not in found]
    if missing:
        return f"can't find expected nodes with IPs {missing}"
    unexpected = sorted(found - set(checked.addresses))
    return f"unexpected nodes with IPs {unexpected}" if unexpected else None


def _check_static_pods(checked: _Checked) -> str | None:
    for address in checked.control_planes:
        found = checked.find(address)
        for name in STATIC_PODS if found is not None else ():
            pod = f"{name}-{found.hostname}" if found is not None else name
            if pod not in checked.view.pods:
                return f"missing static pods on node {address}: [kube-system/{pod}]"
    return None


def _check_components(checked: _Checked) -> str | None:
    names = [
        f"{name}-{found.hostname}"
        for address in checked.control_planes
        if (found := checked.find(address)) is not None
        for name in STATIC_PODS
    ]
    late = [name for name in names if not is_ready(checked.view.pods.get(name, {}))]
    return f"some pods are not ready: {late}" if late else None


def _check_nodes(checked: _Checked) -> str | None:
    late = [name for name, node in checked.view.nodes.items() if not is_ready(node)]
    return f"some nodes are not ready: {late}" if late else None


def _check_proxy(checked: _Checked) -> str | None:
    return _check_workload(checked, "daemonsets", "kube-proxy")


def _check_dns(checked: _Checked) -> str | None:
    return _check_workload(checked, "deployments", "coredns")


def _check_workload(checked: _Checked, kind: str, name: str) -> str | None:
    found = checked.view.find_workload(kind, name)
    if found is None:
        return _SKIPPED
    wanted, ready = found
    return None if wanted and ready >= wanted else f"expected {wanted} ready pods of {name}, got {ready}"


def _check_schedulable(checked: _Checked) -> str | None:
    closed = [name for name, node in checked.view.nodes.items() if node.get("spec", {}).get("unschedulable")]
    return f"some nodes are not schedulable: {closed}" if closed else None


_CHECKS: tuple[tuple[str, Callable[[_Checked], str | None]], ...] = (
    ("etcd to be healthy", _check_etcd),
    ("etcd members to be consistent across nodes", _check_members),
    ("etcd members to be control plane nodes", _check_member_places),
    ("apid to be ready", _check_apid),
    ("all nodes memory sizes", _check_memory),
    ("all nodes disk sizes", _check_disks),
    ("no diagnostics", _check_diagnostics),
    ("kubelet to be healthy", _check_kubelet),
    ("all nodes to finish boot sequence", _check_boot),
    ("all k8s nodes to report", _check_reported),
    ("all control plane static pods to be running", _check_static_pods),
    ("all control plane components to be ready", _check_components),
    ("all k8s nodes to report ready", _check_nodes),
    ("kube-proxy to report ready", _check_proxy),
    ("coredns to report ready", _check_dns),
    ("all k8s nodes to report schedulable", _check_schedulable),
)
