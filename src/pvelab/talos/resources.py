"""The COSI resources of a Talos machine, made from what the lab knows of it whenever somebody asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml
from google.protobuf import struct_pb2

from pvelab.talos.definitions import DEFINITION_TYPE, DEFINITIONS
from pvelab.talos.hardware import list_addresses, list_disks, list_interfaces, node_id
from pvelab.talos.kubelets import STATIC_PODS
from pvelab.talos.kubernetes_settings import kubelet_version
from stackyard.talosapi.messages import STAGES, pb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pvelab.talos.machine import TalosMachine

__all__ = ["Resource", "list_resources"]

_VOLUME_IS_READY = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A resource; `spec` is its content, and `encoded` the same as a message where clients need one."""

    type: str
    id: str
    spec: Any
    encoded: bytes = b""

    def message(self, version: int, created_s: float) -> Any:
        """Return it as it is sent."""
        stamp = pb.Timestamp(seconds=int(created_s))
        definition = DEFINITIONS[self.type]
        return pb.Resource(
            metadata=pb.ResourceMetadata(
                namespace=definition.namespace,
                type=self.type,
                id=self.id,
                version=str(version),
                phase="running",
                created=stamp,
                updated=stamp,
                # Clients know by this that the text is inside the YAML, and not the YAML itself.
                annotations={"talos.dev/yaml-spec": "1"} if isinstance(self.spec, str) else {},
            ),
            spec=pb.ResourceSpec(proto_spec=self.encoded, yaml_spec=_dump(self.spec)),
        )


def _dump(spec: Any) -> str:
    if isinstance(spec, str):
        lines = (f"    {line}".rstrip(" ") for line in spec.removesuffix("\n").split("\n"))
        return "\n".join(("|", *lines, ""))
    text: str = yaml.safe_dump(spec, sort_keys=False, width=2**30)
    return text


def list_resources(machine: TalosMachine, kind: str) -> list[Resource]:
    """Return all resources of one type, by id."""
    make = _MAKERS.get(kind)
    found = () if make is None else make(machine)
    return sorted(found, key=lambda one: one.id)


def _definitions(_machine: TalosMachine) -> Iterator[Resource]:
    for one in DEFINITIONS.values():
        yield Resource(type=DEFINITION_TYPE, id=one.type.lower(), spec=one.spec(), encoded=one.encode())


def _disks(machine: TalosMachine) -> Iterator[Resource]:
    for disk in list_disks(machine.world, machine.guest):
        yield Resource(type="Disks.block.talos.dev", id=disk.device, spec=disk.spec())


def _system_disks(machine: TalosMachine) -> Iterator[Resource]:
    for disk in list_disks(machine.world, machine.guest):
        if disk.is_system and machine.config is not None:
            spec = {"diskID": disk.device, "devPath": disk.path}
            yield Resource(type="SystemDisks.block.talos.dev", id="system-disk", spec=spec)


def _volumes(machine: TalosMachine) -> Iterator[Resource]:
    for disk in list_disks(machine.world, machine.guest):
        if disk.is_system and machine.config is not None:
            size = max(0, disk.size - 2 * 10**9)
            spec = {
                "phase": "ready",
                "type": "partition",
                "location": f"{disk.path}4",
                "partitionIndex": 4,
                "parentLocation": disk.path,
                "size": size,
                "prettySize": f"{size / 10**9:.0f} GB",
                "filesystem": "xfs",
            }
            message = pb.VolumeStatusSpec(
                phase=_VOLUME_IS_READY,
                location=spec["location"],
                parent_location=disk.path,
                partition_index=4,
                size=size,
            )
            encoded = message.SerializeToString()
            yield Resource(type="VolumeStatuses.block.talos.dev", id="EPHEMERAL", spec=spec, encoded=encoded)


def _links(machine: TalosMachine) -> Iterator[Resource]:
    for number, link in enumerate(list_interfaces(machine.world, machine.guest), 1):
        is_loopback = not link.key
        spec = {
            "index": number,
            "type": "loopback" if is_loopback else "ether",
            "linkIndex": 0,
            "flags": "UP,LOOPBACK,RUNNING,LOWER_UP" if is_loopback else "UP,BROADCAST,RUNNING,LOWER_UP",
            "hardwareAddr": link.mac.lower(),
            "permanentAddr": link.mac.lower(),
            "mtu": 65536 if is_loopback else 1500,
            "queueDisc": "noqueue" if is_loopback else "pfifo_fast",
            "operationalState": "unknown" if is_loopback else "up",
            "kind": "",
            "slaveKind": "",
            **({} if is_loopback else {"driver": "virtio_net", "busPath": f"0000:00:{11 + number:02x}.0"}),
            "linkState": True,
        }
        yield Resource(type="LinkStatuses.net.talos.dev", id=link.name, spec=spec)


def _addresses(machine: TalosMachine) -> Iterator[Resource]:
    for number, link in enumerate(list_interfaces(machine.world, machine.guest), 1):
        for one in link.addresses:
            text = f"{one.address}/{one.prefix}"
            spec = {
                "address": text,
                "local": one.address,
                "linkIndex": number,
                "linkName": link.name,
                "family": "inet4" if one.family == "inet" else "inet6",
                "scope": "host" if not link.key else "link" if one.is_link_local else "global",
                "flags": "permanent",
                "priority": 0,
            }
            yield Resource(type="AddressStatuses.net.talos.dev", id=f"{link.name}/{text}", spec=spec)


def _hostname(machine: TalosMachine) -> Iterator[Resource]:
    spec = {"hostname": machine.hostname, "domainname": ""}
    yield Resource(type="HostnameStatuses.net.talos.dev", id="hostname", spec=spec)


def _machine_status(machine: TalosMachine) -> Iterator[Resource]:
    unmet = machine.list_unmet_conditions()
    spec = {
        "stage": machine.stage,
        "status": {
            "ready": not unmet,
            "unmetConditions": [{"name": name, "reason": reason} for name, reason in unmet],
        },
    }
    # The message of the resource has the same numbers as that of the event.
    message = pb.MachineStatusEvent(
        stage=STAGES.index(machine.stage),
        status=pb.MachineStatusEvent.MachineStatus(
            ready=not unmet,
            unmet_conditions=[pb.UnmetCondition(name=name, reason=text) for name, text in unmet],
        ),
    )
    encoded = message.SerializeToString()
    yield Resource(type="MachineStatuses.runtime.talos.dev", id="machine", spec=spec, encoded=encoded)


def _version(machine: TalosMachine) -> Iterator[Resource]:
    spec = {"name": "Talos", "version": machine.version}
    yield Resource(type="Versions.runtime.talos.dev", id="version", spec=spec)


def _security(machine: TalosMachine) -> Iterator[Resource]:
    # Firmware that would refuse the image has not booted it.
    is_secure = bool(machine.image.get("secureboot"))
    is_uki = is_secure or machine.guest["config"].get("bios") == "ovmf"
    spec = {"secureBoot": is_secure, "bootedWithUKI": is_uki}
    yield Resource(type="SecurityStates.talos.dev", id="securitystate", spec=spec)


def _extensions(machine: TalosMachine) -> Iterator[Resource]:
    names = [*machine.image.get("extensions", ()), "schematic"]
    for number, name in enumerate(names):
        plain = str(name).rpartition("/")[2]
        version = str(machine.image.get("schematic", "")) if name == "schematic" else machine.version
        metadata = {"name": plain, "version": version, "author": "Image Factory", "description": ""}
        spec = {"image": f"{number}.{plain}.sqsh", "metadata": metadata}
        yield Resource(type="ExtensionStatuses.runtime.talos.dev", id=str(number), spec=spec)


def _members(machine: TalosMachine) -> Iterator[Resource]:
    for other in machine.list_members():
        spec = {
            "nodeId": node_id(other.guest),
            "addresses": list_addresses(other.world, other.guest),
            "hostname": other.hostname,
            "machineType": "controlplane" if other.is_control_plane else "worker",
            "operatingSystem": f"Talos ({other.version})",
            **({"controlPlane": {"port": 6443}} if other.is_control_plane else {}),
        }
        yield Resource(type="Members.cluster.talos.dev", id=other.hostname, spec=spec)


def _services(machine: TalosMachine) -> Iterator[Resource]:
    for service in machine.list_services():
        spec = {
            "running": service.state == "Running",
            "healthy": service.is_healthy,
            "unknown": service.is_unknown,
        }
        yield Resource(type="Services.v1alpha1.talos.dev", id=service.name, spec=spec)


def _static_pods(machine: TalosMachine) -> Iterator[Resource]:
    kubernetes = machine.control_plane
    if kubernetes is None or not machine.is_control_plane:
        return
    for name in STATIC_PODS:
        pod = kubernetes.view.pods.get(f"{name}-{machine.hostname}")
        if pod is not None:
            spec = pod.get("status") or {}
            packed = struct_pb2.Struct()
            packed.update(spec)
            # A message in a field looks the same as its bytes.
            encoded = pb.StaticPodStatusSpec(pod_status=packed.SerializeToString()).SerializeToString()
            place = f"kube-system/{name}-{machine.hostname}"
            yield Resource(
                type="StaticPodStatuses.kubernetes.talos.dev", id=place, spec=spec, encoded=encoded
            )


def _kubelet(machine: TalosMachine) -> Iterator[Resource]:
    if machine.config is None:
        return
    image = f"ghcr.io/siderolabs/kubelet:{kubelet_version(machine.config, machine.version)}"
    message = pb.KubeletSpecSpec(image=image, expected_nodename=machine.hostname)
    yield Resource(
        type="KubeletSpecs.kubernetes.talos.dev",
        id="kubelet",
        spec={"image": image, "expectedNodename": machine.hostname},
        encoded=message.SerializeToString(),
    )


def _configs(machine: TalosMachine) -> Iterator[Resource]:
    if machine.config is not None:
        for name in ("v1alpha1", "persistent"):
            yield Resource(type="MachineConfigs.config.talos.dev", id=name, spec=machine.config.text)


_MAKERS: dict[str, Callable[[TalosMachine], Iterator[Resource]]] = {
    DEFINITION_TYPE: _definitions,
    "Disks.block.talos.dev": _disks,
    "SystemDisks.block.talos.dev": _system_disks,
    "VolumeStatuses.block.talos.dev": _volumes,
    "LinkStatuses.net.talos.dev": _links,
    "AddressStatuses.net.talos.dev": _addresses,
    "HostnameStatuses.net.talos.dev": _hostname,
    "MachineStatuses.runtime.talos.dev": _machine_status,
    "Versions.runtime.talos.dev": _version,
    "SecurityStates.talos.dev": _security,
    "ExtensionStatuses.runtime.talos.dev": _extensions,
    "Members.cluster.talos.dev": _members,
    "Services.v1alpha1.talos.dev": _services,
    "StaticPodStatuses.kubernetes.talos.dev": _static_pods,
    "KubeletSpecs.kubernetes.talos.dev": _kubelet,
    "MachineConfigs.config.talos.dev": _configs,
}
