"""What the files of a cluster may say.

Every field may be absent here; `REQUIRED` and `REQUIRED_OF_NODE` name those that have to be there, so that a
file that lacks one is still checked for everything else. `other_fields.json` lists the fields that stackyard
itself does not use and that templates do, by their type; its secrets are those of the file, too.
"""

import functools
import importlib.resources
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from stackyard.base.documents.jsontext import parse_json
from stackyard.desired.values import DnsName, Line, Many, Tag, Value
from stackyard.sources.cluster.words import (
    ApiUrl,
    Cidr,
    Domain,
    HttpsUrl,
    Ip,
    MacAddress,
    NodeName,
    SchematicId,
    Version,
    Vlan,
)

__all__ = [
    "REQUIRED",
    "REQUIRED_OF_NODE",
    "ClusterFields",
    "NodeFields",
    "NodesFile",
    "SchematicFields",
    "SizeFields",
    "cluster_model",
    "list_secret_names",
    "secret_model",
    "whole_model",
]

REQUIRED = ("node_cidr", "cluster_api_addr")
REQUIRED_OF_NODE = ("name", "address", "controller", "disk", "mac_addr")

Cores = Annotated[int, Field(ge=1, le=64)]
Sockets = Annotated[int, Field(ge=1, le=4)]
Memory = Annotated[int, Field(ge=1024, le=262_144)]
DiskSize = Annotated[int, Field(ge=32, le=4096)]
VmId = Annotated[int, Field(ge=100, le=999_999_999)]
# Labels of nodes in Kubernetes.
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
LabelName = Annotated[str, Field(pattern=rf"^([a-z0-9]([a-z0-9.-]{{0,251}}[a-z0-9])?/)?{_LABEL}$")]
LabelValue = Annotated[str, Field(pattern=rf"^({_LABEL})?$")]
# A registry of container images, or `*` for all others.
Registry = Annotated[str, Field(pattern=r"^(\*|[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?)$")]
# A name of Proxmox: a node, a storage, a bridge.
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=63)]


class SizeFields(Value):
    """How large VMs are, where a node does not say it itself."""

    cores: Cores | None = None
    sockets: Sockets | None = None
    memory: Memory | None = None
    disk_size: DiskSize | None = None


class AdvancedFields(Value):
    """What the VMs have in common."""

    bios: Literal["ovmf", "seabios"] | None = None
    machine: Literal["q35", "i440fx"] | None = None
    cpu_type: Line | None = None
    scsi_hw: Literal["virtio-scsi-pci", "virtio-scsi-single", "lsi"] | None = None
    balloon: Annotated[int, Field(ge=0, le=262_144)] | None = None
    numa: bool | None = None
    qemu_agent: bool | None = None
    net_queues: Annotated[int, Field(ge=1, le=16)] | None = None
    disk_discard: bool | None = None
    disk_ssd: bool | None = None
    tags: Many[Tag] | None = None
    network_bridge: Word | None = None
    ostype: Word | None = None
    disk_backup: bool | None = None
    disk_replicate: bool | None = None


class OverlayFields(Value):
    """An overlay, for boards that need one."""

    image: Line
    name: Line
    options: dict[str, Any] | None = None


class MetaFields(Value):
    """An initial value of META."""

    key: Annotated[int, Field(ge=0, le=255)]
    value: str


class SecureBootFields(Value):
    """How keys of secure boot are enrolled."""

    enroll_keys: Literal["off", "manual", "if-safe", "force"] | None = None
    include_well_known_certificates: bool | None = None


class DiskImageFields(Value):
    """What a disk image is like."""

    sector_size: Literal[512, 4096] | None = None


class SchematicFields(Value):
    """What an image of Talos has beyond the plain one; its id is computed from this."""

    extensions: Many[Line] | None = None
    extra_kernel_args: Many[Line] | None = None
    meta: Many[MetaFields] | None = None
    overlay: OverlayFields | None = None
    bootloader: Line | None = None
    secureboot: SecureBootFields | None = None
    disk_image: DiskImageFields | None = None
    embedded_machine_configuration: str | None = None
    owner: Line | None = None


class ClusterFields(Value):
    """A Talos cluster: its networks, versions, images, VMs and state."""

    cluster_name: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")] | None = None
    nodes_count: Annotated[int, Field(ge=1, le=200)] | None = None
    node_cidr: Cidr | None = None
    node_default_gateway: Ip | None = None
    node_dns_servers: Many[Ip] | None = None
    node_ntp_servers: Many[Line] | None = None
    node_vlan_tag: Vlan | None = None
    proxmox_vlan_mode: bool | None = None
    cluster_api_addr: Ip | None = None
    cluster_api_tls_sans: Many[DnsName] | None = None
    cluster_pod_cidr: Cidr | None = None
    cluster_svc_cidr: Cidr | None = None
    cluster_gateway_addr: Ip | None = None
    cluster_dns_gateway_addr: Ip | None = None
    cloudflare_gateway_addr: Ip | None = None
    cloudflare_domain: Domain | None = None
    cilium_bgp_router_addr: Ip | None = None
    cilium_lb_pool_cidr: Cidr | None = None
    repository_branch: Line | None = None
    repository_visibility: Literal["public", "private"] | None = None
    talos_version: Version | None = None
    kubernetes_version: Version | None = None
    talos_factory: HttpsUrl | None = None
    talos_image: Literal["iso", "disk"] | None = None
    talos_arch: Literal["amd64", "arm64"] | None = None
    schematic_id: SchematicId | None = None
    talos_schematic: SchematicFields | None = None
    registry_mirrors: dict[Registry, Many[HttpsUrl]] | None = None
    node_labels: dict[LabelName, LabelValue] | None = None
    proxmox_api_url: ApiUrl | None = None
    proxmox_node: Word | None = None
    target_node: Word | None = None
    proxmox_nodes: Many[Word] | None = None
    proxmox_insecure: bool | None = None
    proxmox_iso_storage: Word | None = None
    proxmox_disk_storage: Word | None = None
    proxmox_vm_defaults: SizeFields | None = None
    proxmox_vm_controller_defaults: SizeFields | None = None
    proxmox_vm_worker_defaults: SizeFields | None = None
    proxmox_vm_advanced: AdvancedFields | None = None
    tfstate_address: HttpsUrl | None = None


class NodeFields(Value):
    """A node."""

    name: NodeName | None = None
    address: Ip | None = None
    controller: bool | None = None
    disk: Line | None = None
    mac_addr: MacAddress | None = None
    schematic_id: SchematicId | None = None
    schematic: SchematicFields | None = None
    mtu: Annotated[int, Field(ge=1450, le=9000)] | None = None
    secureboot: bool | None = None
    encrypt_disk: bool | None = None
    kernel_modules: Many[Line] | None = None
    node_labels: dict[LabelName, LabelValue] | None = None
    proxmox_node: Word | None = None
    target_node: Word | None = None
    vm_id: VmId | None = None
    vm_cores: Cores | None = None
    vm_sockets: Sockets | None = None
    vm_memory: Memory | None = None
    vm_disk_size: DiskSize | None = None
    vm_startup_order: Annotated[int, Field(ge=1, le=100)] | None = None
    vm_startup_delay: Annotated[int, Field(ge=0, le=300)] | None = None
    vm_shutdown_delay: Annotated[int, Field(ge=0, le=600)] | None = None


class NodesFile(Value):
    """The nodes of a cluster, in their order."""

    nodes: Many[NodeFields] | None = None


_OTHER_TYPES: Mapping[str, Any] = {
    "boolean": bool | None,
    "integer": int | None,
    "text": str | None,
    "list": list[Any] | None,
    "mapping": dict[str, Any] | None,
}
# OpenTofu refuses shorter ones.
_Passphrase = Annotated[str, Field(min_length=16)]
_TokenId = Annotated[Line, Field(pattern=r"^[^@\s]+@[^!@\s]+![^!\s=]+$")]


@functools.cache
def _read_other_fields() -> Mapping[str, list[str]]:
    text = importlib.resources.files(__package__).joinpath("other_fields.json").read_bytes()
    found: dict[str, list[str]] = parse_json(text)
    return found


def list_secret_names() -> frozenset[str]:
    """Return the names of the fields that are secret."""
    return frozenset(_read_other_fields()["secret"])


@functools.cache
def cluster_model() -> type[ClusterFields]:
    """Return the model of a cluster with the fields that only templates use, and no secret."""
    fields: dict[str, Any] = {
        name: (_OTHER_TYPES[kind], None)
        for kind, names in _read_other_fields().items()
        if kind in _OTHER_TYPES
        for name in names
    }
    return create_model("ClusterFile", __base__=ClusterFields, __doc__=ClusterFields.__doc__, **fields)


@functools.cache
def secret_model() -> type[Value]:
    """Return the model of the secret fields."""
    fields: dict[str, Any] = {
        name: (_secret_type(name) | None, None) for name in _read_other_fields()["secret"]
    }
    return create_model("ClusterSecrets", __base__=Value, __doc__="The secret fields.", **fields)


def _secret_type(name: str) -> Any:
    if name.endswith("_token_id"):
        return _TokenId
    if name == "state_encryption_passphrase_previous":
        return Literal["none"] | _Passphrase
    return _Passphrase if name == "state_encryption_passphrase" else str


@functools.cache
def whole_model() -> type[Value]:
    """Return the model of all fields, the secret ones included: for schemas and for suggestions."""
    fields: dict[str, Any] = {
        name: (info.annotation, Field(default=None, json_schema_extra={"writeOnly": True}))
        for name, info in secret_model().model_fields.items()
    }
    return create_model("Cluster", __base__=cluster_model(), __doc__=ClusterFields.__doc__, **fields)
