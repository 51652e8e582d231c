"""A small client of the Talos API, and VMs of the lab that boot Talos."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import gzip
import itertools
import os
import ssl
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from grpclib.client import Channel, Stream
from grpclib.const import Cardinality
from tests.support.lab import LabClient

from pvelab.talos.images import AGENT, make_image
from pvelab.talos.machine import TalosMachine
from pvelab.talos.pki import Period, issue, make_authority
from pvelab.world.storage.contents import put_file
from stackyard.base.serving.certificate import Certificate
from stackyard.clients.kubernetes import KubernetesClient, Patience, parse_kubeconfig
from stackyard.clients.talos.connection import close_channel
from stackyard.talosapi.messages import pb
from stackyard.talosapi.methods import METHODS
from stackyard.talosapi.schematic import Schematic, schematic_id

__all__ = [
    "Cluster",
    "TalosClient",
    "apply",
    "boot_talos",
    "free_network",
    "network_plugin",
    "open_kubernetes",
    "put_image",
    "read_kubeconfig",
    "secured",
    "start_cluster",
    "talos_client",
    "wait_for_kubernetes",
    "wait_for_stage",
    "wait_until",
]

VERSION = "v1.12.1"
WITH_AGENT = Schematic(extensions=(AGENT,))
_NUMBERS = itertools.count(1)


class TalosClient:
    """Calls a machine: `await client.call("Version")`, `await client.list("Disks.block.talos.dev")`."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def call(self, name: str, request: Any = None, **metadata: str) -> Any:
        found = [message async for message in self.stream(name, request, **metadata)]
        assert len(found) == 1
        return found[0]

    async def stream(self, name: str, request: Any = None, **metadata: str) -> AsyncGenerator[Any, None]:
        method = next(one for one in METHODS.values() if one.name == name)
        cardinality = Cardinality.UNARY_STREAM if method.streams_out else Cardinality.UNARY_UNARY
        stream: Stream[Any, Any] = self._channel.request(
            method.path, cardinality, method.request, method.response, metadata=metadata
        )
        async with stream:
            await stream.send_message(method.request() if request is None else request, end=True)
            async for message in stream:
                yield message

    async def list(self, kind: str, namespace: str = "runtime") -> list[Any]:
        request = pb.ListRequest(namespace=namespace, type=kind)
        return [one.resource async for one in self.stream("List", request)]


@contextlib.asynccontextmanager
async def talos_client(
    address: tuple[str, int], *, client: Certificate | None = None, authority: bytes | None = None
) -> AsyncIterator[TalosClient]:
    """Connect to a machine: without a certificate as in maintenance mode, or with one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = authority is not None
    context.verify_mode = ssl.CERT_REQUIRED if authority is not None else ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    if authority is not None:
        context.load_verify_locations(cadata=authority.decode())
    if client is not None:
        with tempfile.NamedTemporaryFile() as stream:
            stream.write(client.as_pem())
            stream.flush()
            context.load_cert_chain(stream.name)
    channel = Channel(*address, ssl=context)
    try:
        yield TalosClient(channel)
    finally:
        await close_channel(channel)


def free_network() -> str:
    """Return the first two numbers of a range of addresses that no other test of this machine uses now."""
    return f"127.{32 + os.getpid() % 192}"


async def put_image(
    api: LabClient, name: str = "talos.iso", *, schematic: Schematic = WITH_AGENT, **changes: Any
) -> str:
    """Put an image into the storage `local` of the first node; return its volume id."""
    kind = "iso" if name.endswith(".iso") else name.rpartition(".")[2]
    talos: dict[str, Any] = {
        "schematic": schematic_id(schematic),
        "version": VERSION,
        "platform": "nocloud",
        "arch": "amd64",
        "secureboot": False,
        "iso": kind == "iso",
        "extensions": list(schematic.extensions),
        "kernel_args": list(schematic.extra_kernel_args),
        **changes,
    }
    content = "iso" if kind == "iso" else "import"
    blob = api.world.blobs.put(make_image(talos, kind))
    with api.world.store.transaction():
        put_file(api.world, f"local:{content}/{name}", "pve1", blob)
    return f"local:{content}/{name}"


async def boot_talos(api: LabClient, vmid: int = 100, **config: Any) -> TalosMachine:
    """Create and start a VM with an empty disk and the image `talos.iso`; return its machine."""
    address = f"{free_network()}.{next(_NUMBERS)}.{vmid % 250 + 1}"
    settings: Mapping[str, Any] = {
        "vmid": vmid,
        "name": f"node-{vmid}",
        "cpu": "x86-64-v2-AES",
        "memory": 4096,
        "agent": "1",
        "scsihw": "virtio-scsi-pci",
        "scsi0": "local-lvm:20",
        "ide2": "local:iso/talos.iso,media=cdrom",
        "ide0": "local-lvm:cloudinit",
        "boot": "order=scsi0;ide2",
        "net0": "virtio,bridge=vmbr0",
        "ipconfig0": f"ip={address}/8,gw=127.0.0.1",
        **config,
    }
    given = {key: value for key, value in settings.items() if value is not None}
    assert await api.done(await api.post("/nodes/pve1/qemu", **given)) == "OK"
    assert await api.done(await api.post(f"/nodes/pve1/qemu/{vmid}/status/start")) == "OK"
    machine = api.world.machines.talos(vmid)
    assert machine is not None, "the VM does not boot Talos"
    return machine


async def wait_for_stage(machine: TalosMachine, stage: str) -> None:
    """Wait until a machine has come to a stage, and its API answers."""
    await wait_until(machine, lambda: machine.stage == stage and machine.is_open)


async def wait_until(machine: TalosMachine, is_so: Callable[[], bool]) -> None:
    """Wait until something is so that changes with a machine."""
    async with asyncio.timeout(20):
        while not is_so():
            await machine.guests.wait_change()


@dataclass(frozen=True)
class Cluster:
    """What the configurations of one cluster have in common; with more fields of it and of `machine`."""

    authority: Certificate = field(default_factory=lambda: make_authority("talos"))
    kubernetes: Certificate = field(default_factory=lambda: make_authority("kubernetes"))
    name: str = "demo"
    endpoint: str = "https://kubernetes.example:6443"
    settings: Mapping[str, Any] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)

    def client(self, *roles: str, life_s: float = 3600) -> Certificate:
        """Return the certificate of a client."""
        return issue(self.authority, organizations=roles or ("os:admin",), period=Period(life_s=life_s))

    def config(self, kind: str = "controlplane", **machine: Any) -> bytes:
        """Return a configuration; more fields of `machine` in place of the usual ones."""
        has_key = kind == "controlplane"
        document = {
            "version": "v1alpha1",
            "machine": {
                "type": kind,
                "token": "abcdef.0123456789abcdef",
                "ca": _pair(self.authority, has_key=has_key),
                "install": {"disk": "/dev/sda", "image": f"ghcr.io/siderolabs/installer:{VERSION}"},
                **(self.machine if has_key else {}),
                **machine,
            },
            "cluster": {
                "id": f"id-of-{self.name}",
                "clusterName": self.name,
                "controlPlane": {"endpoint": self.endpoint},
                "ca": _pair(self.kubernetes, has_key=has_key),
                **self.settings,
            },
        }
        return yaml.safe_dump(document).encode()


def _pair(pair: Certificate, *, has_key: bool) -> dict[str, str]:
    key = pair.key_pem.replace(b" PRIVATE KEY", b" ED25519 PRIVATE KEY") if has_key else b""
    return {"crt": base64.b64encode(pair.certificate_pem).decode(), "key": base64.b64encode(key).decode()}


async def apply(machine: TalosMachine, config: bytes, **fields: Any) -> Any:
    """Apply a configuration to a machine in maintenance mode; return its answer."""
    address = machine.address
    assert address is not None
    request = pb.ApplyConfigurationRequest(data=config, **{"mode": 1, **fields})
    async with talos_client(address) as client:
        return (await client.call("ApplyConfiguration", request)).messages[0]


@contextlib.asynccontextmanager
async def secured(machine: TalosMachine, cluster: Cluster, *roles: str) -> AsyncIterator[TalosClient]:
    """Connect to a machine with a certificate of its cluster."""
    address = machine.address
    assert address is not None
    authority = cluster.authority.certificate_pem
    async with talos_client(address, client=cluster.client(*roles), authority=authority) as client:
        yield client


async def start_cluster(
    api: LabClient, cluster: Cluster | None = None, *, control_planes: int = 1, workers: int = 0
) -> tuple[Cluster, list[TalosMachine]]:
    """Boot machines, bootstrap the first, and wait until Kubernetes answers and all have joined as nodes.

    The endpoint of the cluster is the address of the first machine, unless it has one on loopback.
    """
    await put_image(api)
    kinds = ["controlplane"] * control_planes + ["worker"] * workers
    machines = [await boot_talos(api, 100 + number) for number in range(len(kinds))]
    for machine in machines:
        await wait_for_stage(machine, "maintenance")
    found = cluster or Cluster()
    if "//127." not in found.endpoint and machines[0].address is not None:
        found = dataclasses.replace(found, endpoint=f"https://{machines[0].address[0]}:6443")
    for machine, kind in zip(machines, kinds, strict=True):
        await apply(machine, found.config(kind))
    for machine in machines:
        await wait_for_stage(machine, "running")
    async with secured(machines[0], found) as client:
        await client.call("Bootstrap")
    await wait_for_kubernetes(machines)
    return found, machines


async def wait_for_kubernetes(machines: list[TalosMachine]) -> None:
    """Wait until the API of a cluster answers and knows all its machines."""
    await wait_until(machines[0], lambda: all(machine.has_joined for machine in machines))


async def read_kubeconfig(machine: TalosMachine, cluster: Cluster) -> str:
    """Return the kubeconfig that a control plane machine gives."""
    async with secured(machine, cluster) as client:
        packed = b"".join([part.bytes async for part in client.stream("Kubeconfig")])
    return gzip.decompress(packed)[512:].decode()


async def open_kubernetes(machine: TalosMachine, cluster: Cluster, server: str = "") -> KubernetesClient:
    """Return a client with the kubeconfig of a machine; at another address than it names, if one is given."""
    access = parse_kubeconfig(await read_kubeconfig(machine, cluster))
    if server:
        access = dataclasses.replace(access, server=server)
    return KubernetesClient(access, Patience(answer_s=10.0, away_s=0.0))


def network_plugin() -> dict[str, Any]:
    """Return a DaemonSet that looks like a network plugin."""
    pod = {
        "hostNetwork": True,
        "containers": [{"name": "agent", "image": "registry.example/network:1"}],
        "volumes": [{"name": "plugin", "hostPath": {"path": "/etc/cni/net.d"}}],
    }
    labels = {"app": "network"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "network", "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
