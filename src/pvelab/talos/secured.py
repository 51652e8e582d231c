"""What a machine with a configuration answers, beside its resources."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any

from grpclib import GRPCError, Status

from pvelab.talos import disks
from pvelab.talos.apply import apply_configuration
from pvelab.talos.client_files import make_kubeconfig_archive, make_talosconfig
from pvelab.talos.hardware import list_disks, memory_kib
from pvelab.talos.health import check_health
from pvelab.talos.maintenance import list_disks_of
from stackyard.talosapi.messages import pb

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from pvelab.talos.machine import TalosMachine

__all__ = ["ANSWERS"]

_CHUNK = 32 * 1024
# The one file that clients read: it tells that a machine has booted again.
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_RESET_MODES = pb.ResetRequest.WipeMode


async def _version(machine: TalosMachine, _request: Any) -> AsyncIterator[Any]:
    found = pb.Version(
        version=pb.VersionInfo(
            tag=machine.version, sha="lab", os="linux", arch=str(machine.image.get("arch", "amd64"))
        ),
        platform=pb.PlatformInfo(name=machine.platform, mode=machine.mode),
        features=pb.FeaturesInfo(rbac=True),
    )
    yield pb.VersionResponse(messages=[found])


async def _bootstrap(machine: TalosMachine, request: Any) -> AsyncIterator[Any]:
    machine.etcd.bootstrap(recover=request.recover_etcd)
    yield pb.BootstrapResponse(messages=[pb.Bootstrap()])


async def _kubeconfig(machine: TalosMachine, _request: Any) -> AsyncIterator[Any]:
    if not machine.is_control_plane:
        raise GRPCError(Status.UNIMPLEMENTED, "kubeconfig is only available on control plane nodes")
    content = make_kubeconfig_archive(machine)
    for place in range(0, len(content), _CHUNK):
        yield pb.Data(bytes=content[place : place + _CHUNK])


async def _services(machine: TalosMachine, _request: Any) -> AsyncIterator[Any]:
    since = float(machine.state["since"])
    found = [service.message(since) for service in machine.list_services()]
    yield pb.ServiceListResponse(messages=[pb.ServiceList(services=found)])


async def _reboot(machine: TalosMachine, _request: Any) -> AsyncIterator[Any]:
    yield pb.RebootResponse(messages=[pb.Reboot(actor_id=_actor())])
    machine.command("reboot")


async def _shutdown(machine: TalosMachine, _request: Any) -> AsyncIterator[Any]:
    yield pb.ShutdownResponse(messages=[pb.Shutdown(actor_id=_actor())])
    machine.command("shutdown")


async def _reset(machine: TalosMachine, request: Any) -> AsyncIterator[Any]:
    mode = _RESET_MODES.Name(request.mode)
    _check_reset(machine, request, mode)
    labels = [one.label for one in request.system_partitions_to_wipe if one.wipe]
    if request.graceful and machine.etcd.is_running and mode != "USER_DISKS":
        machine.etcd.leave()
    yield pb.ResetResponse(messages=[pb.Reset(actor_id=_actor())])
    machine.command(
        "reset", labels=labels, disks=list(request.user_disks_to_wipe), mode=mode, reboot=request.reboot
    )


def _check_reset(machine: TalosMachine, request: Any, mode: str) -> None:
    if mode == "SYSTEM_DISK" and request.user_disks_to_wipe:
        text = "wipe mode SYSTEM_DISK doesn't support UserDisksToWipe parameter"
        raise GRPCError(Status.UNKNOWN, f"reset failed: invalid input, {text}")
    if mode == "USER_DISKS" and request.system_partitions_to_wipe:
        text = "wipe mode USER_DISKS doesn't support SystemPartitionsToWipe parameter"
        raise GRPCError(Status.UNKNOWN, f"reset failed: invalid input, {text}")
    known = {disk.path: disk for disk in list_disks(machine.world, machine.guest)}
    for name in request.user_disks_to_wipe:
        disk = known.get(name)
        problem = (
            "wasn't found"
            if disk is None
            else "is readonly"
            if disk.is_readonly
            else "is the system disk"
            if disk.is_system
            else None
        )
        if problem is not None:
            raise GRPCError(Status.UNKNOWN, f"reset user disk failed: device {name} {problem}")


async def _upgrade(machine: TalosMachine, request: Any) -> AsyncIterator[Any]:
    if disks.parse_installer(request.image) is None:
        text = f'error validating installer image "{request.image}": invalid reference'
        raise GRPCError(Status.UNKNOWN, text)
    if machine.is_control_plane and machine.etcd.is_member and not machine.etcd.is_healthy:
        raise GRPCError(Status.UNKNOWN, "error validating etcd for upgrade: etcdserver: no leader")
    yield pb.UpgradeResponse(messages=[pb.Upgrade(ack="Upgrade request received", actor_id=_actor())])
    machine.command("upgrade", image=request.image)


async def _members(machine: TalosMachine, _request: Any) -> AsyncIterator[Any]:
    members = machine.etcd.list_members()
    names = [one.hostname for one in members]
    found = pb.EtcdMemberList(legacy_members=names, members=members)
    yield pb.EtcdMemberListResponse(messages=[found])


async def _etcd_status(machine: TalosMachine, _request: Any) -> AsyncIterator[Any]:
    yield pb.EtcdStatusResponse(messages=[pb.EtcdStatus(member_status=machine.etcd.status())])


async def _remove_member(machine: TalosMachine, request: Any) -> AsyncIterator[Any]:
    machine.etcd.remove(request.member_id)
    yield pb.EtcdRemoveMemberByIDResponse(messages=[pb.EtcdRemoveMemberByID()])


async def _forfeit(machine: TalosMachine, _request: Any) -> AsyncIterator[Any]:
    found = pb.EtcdForfeitLeadership(member=machine.etcd.forfeit())
    yield pb.EtcdForfeitLeadershipResponse(messages=[found])


async def _leave(machine: TalosMachine, _request: Any) -> AsyncIterator[Any]:
    machine.etcd.leave()
    yield pb.EtcdLeaveClusterResponse(messages=[pb.EtcdLeaveCluster()])


async def _snapshot(machine: TalosMachine, _request: Any) -> AsyncIterator[Any]:
    content = machine.etcd.snapshot()
    for place in range(0, len(content), _CHUNK):
        yield pb.Data(bytes=content[place : place + _CHUNK])


async def _recover(machine: TalosMachine, parts: Any) -> AsyncIterator[Any]:
    machine.etcd.recover(b"".join(part.bytes for part in parts))
    yield pb.EtcdRecoverResponse(messages=[pb.EtcdRecover()])


async def _memory(machine: TalosMachine, _request: Any) -> AsyncIterator[Any]:
    total = memory_kib(machine.guest)
    found = pb.MemInfo(memtotal=total, memfree=total // 2, memavailable=total // 2)
    yield pb.MemoryResponse(messages=[pb.Memory(meminfo=found)])


async def _client_configuration(machine: TalosMachine, request: Any) -> AsyncIterator[Any]:
    life_s = float(request.crt_ttl.seconds)
    if not request.roles or life_s <= 0:
        raise GRPCError(Status.INVALID_ARGUMENT, "roles and certificate TTL are required")
    # Key and signature take a moment of the processor's time.
    made = await asyncio.to_thread(make_talosconfig, machine.config, list(request.roles), life_s)
    if made is None:
        raise GRPCError(Status.UNIMPLEMENTED, "client configuration can be generated only on control plane")
    found = pb.GenerateClientConfiguration(**made)
    yield pb.GenerateClientConfigurationResponse(messages=[found])


async def _read(machine: TalosMachine, request: Any) -> AsyncIterator[Any]:
    if request.path != _BOOT_ID:
        text = f"lstat {request.path}: no such file or directory"
        raise GRPCError(Status.UNKNOWN, text)
    yield pb.Data(bytes=f"{machine.boot_id}\n".encode())


def _events(machine: TalosMachine, request: Any) -> AsyncIterator[Any]:
    return machine.events.stream(request)


def _actor() -> str:
    raw = secrets.token_hex(16)
    return f"{raw[:8]}-{raw[8:12]}-4{raw[13:16]}-8{raw[17:20]}-{raw[20:]}"


ANSWERS: Mapping[str, Callable[[TalosMachine, Any], AsyncIterator[Any]]] = {
    "ApplyConfiguration": apply_configuration,
    "Bootstrap": _bootstrap,
    "Disks": list_disks_of,
    "EtcdForfeitLeadership": _forfeit,
    "EtcdLeaveCluster": _leave,
    "EtcdMemberList": _members,
    "EtcdRecover": _recover,
    "EtcdRemoveMemberByID": _remove_member,
    "EtcdSnapshot": _snapshot,
    "EtcdStatus": _etcd_status,
    "Events": _events,
    "GenerateClientConfiguration": _client_configuration,
    "HealthCheck": check_health,
    "Kubeconfig": _kubeconfig,
    "Memory": _memory,
    "Read": _read,
    "Reboot": _reboot,
    "Reset": _reset,
    "ServiceList": _services,
    "Shutdown": _shutdown,
    "Upgrade": _upgrade,
    "Version": _version,
}
