"""The files of a cluster to start with: commented, valid, and with a place for secrets."""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from stackyard.base import files
from stackyard.base.errors import InvalidInputError, Location, StackyardError, UsageError
from stackyard.secrets import Keyring, create_sops_file, user_recipient
from stackyard.sources.cluster.flux_rule import FLUX_RULE
from stackyard.sources.cluster.load import load_cluster, open_cluster
from stackyard.sources.cluster.names import DEFAULT_NAME, find_clusters, is_cluster_name, name_of_folder
from stackyard.sources.cluster.read import CLUSTER_FILE, NODES_FILE, SECRETS_FILE, TOML_FILE
from stackyard.sources.cluster.resolve import DEFAULTS

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.sources.cluster.model import Cluster

__all__ = ["ClusterExistsError", "CreatedCluster", "LabPlace", "NewCluster", "start_cluster"]

_READABLE = 0o644
# The least number of controllers that survives the loss of one.
_CONTROLLERS = 3
_RULES = ".sops.yaml"
# The addresses before it are often those of routers and of DHCP.
_FIRST = 50
# A node has a name of at most 63 letters.
_LONGEST_PREFIX = 55
# The schematic that has the guest agent, and nothing else.
_SCHEMATIC = """\
# The image of the nodes. Its id is computed from this; versions are not part of it.
talos_schematic:
  extensions:
    - siderolabs/qemu-guest-agent
"""
_METAL_SCHEMATIC = """\
# The image of the nodes: the plain one. Its id is computed from what is in it.
talos_schematic:
  extensions: []
"""


class ClusterExistsError(InvalidInputError):
    """The folder has files of a cluster already."""

    code = "E-CLUSTER-EXISTS"
    summary = "There is a cluster already"
    default_remedy = "Change its files, or name another folder; nothing was written."


@dataclass(frozen=True, slots=True, kw_only=True)
class LabPlace:
    """A lab whose VMs boot Talos, as a new cluster needs it.

    Attributes:
        url: Its API.
        nodes: The names of its nodes.
        api_token: `USER@REALM!NAME=SECRET`.
        factory: Its image factory.
        network: The network of its guests.
    """

    url: str
    nodes: tuple[str, ...]
    api_token: str = field(repr=False)
    factory: str
    network: IPv4Network


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCluster:
    """What a new cluster is to be.

    Attributes:
        name: Its name; none is written when absent.
        is_virtual: Whether its nodes are VMs on Proxmox.
        node_count: How many nodes it has: three of them are controllers, or one if there are fewer.
        lab: The lab that its VMs are on; None for examples that the user replaces.
        prefix: What the names of its nodes begin with.
        first: The number of its first address in the network.
    """

    name: str | None = None
    is_virtual: bool = True
    node_count: int = 3
    lab: LabPlace | None = None
    prefix: str = "k8s"
    first: int = _FIRST

    @property
    def network(self) -> IPv4Network:
        """The network of the nodes."""
        return IPv4Network("192.168.1.0/24") if self.lab is None else self.lab.network

    def address(self, number: int) -> str:
        """Return the address of a node; 0 is that of the Kubernetes API."""
        return str(self.network.network_address + self.first + number)

    def vm_id(self, number: int) -> int:
        """Return a VM ID for a node that no other cluster of the repository is given."""
        return 100 + self.first - _FIRST + number

    def is_controller(self, number: int) -> bool:
        """Tell whether a node is a controller; the first is number 1."""
        return number <= (_CONTROLLERS if self.node_count >= _CONTROLLERS else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedCluster:
    """A cluster that was started.

    Attributes:
        folder: Its folder.
        files: What was written.
        recipient: The public key that its secrets are encrypted for.
        new_key: The file of the private key, where one had to be created.
        has_old_rules: Whether there was a `.sops.yaml` already, which was left as it is.
    """

    folder: Path
    files: tuple[str, ...]
    recipient: str
    new_key: Path | None
    has_old_rules: bool


def start_cluster(folder: Path, wanted: NewCluster) -> CreatedCluster:
    """Write the files of a cluster that is valid; nothing is overwritten.

    Args:
        folder: Where; made if need be.
        wanted: What it is to be.

    Raises:
        UsageError: A cluster cannot have the name.
        ClusterExistsError: The folder has such files already.
        FileError: A file cannot be written.
        KeyringError: The user's age key cannot be used.
    """
    name = wanted.name
    if name is not None and not is_cluster_name(name):
        raise UsageError(
            f"`{name}` is no name of a cluster: 1 to 63 of a-z, 0-9 and `-`, no `-` at either end."
        )
    for file in (CLUSTER_FILE, NODES_FILE, SECRETS_FILE, TOML_FILE):
        if (folder / file).exists() or (folder / file).is_symlink():
            raise ClusterExistsError(f"{folder / file} is there already.", where=Location(str(folder / file)))
    wanted = _make_room(folder, wanted)
    recipient, new_key = user_recipient(Keyring())
    folder.mkdir(parents=True, exist_ok=True)
    texts = {CLUSTER_FILE: _cluster(wanted), NODES_FILE: _nodes(wanted)}
    has_old_rules = (folder / _RULES).exists()
    if not has_old_rules:
        texts[_RULES] = _rules(recipient)
    for file, text in texts.items():
        files.replace_file(folder / file, text.encode(), mode=_READABLE)
    create_sops_file(folder / SECRETS_FILE, _secret_fields(wanted).encode(), (recipient,), mode=_READABLE)
    load_cluster(folder)
    return CreatedCluster(
        folder=folder,
        files=tuple(sorted([*texts, SECRETS_FILE])),
        recipient=recipient,
        new_key=new_key,
        has_old_rules=has_old_rules,
    )


def _make_room(folder: Path, wanted: NewCluster) -> NewCluster:
    """Give a further cluster of a repository names and addresses that the others do not have."""
    others = _find_others(folder)
    if not others and name_of_folder(folder) == DEFAULT_NAME:
        return wanted
    name = wanted.name or name_of_folder(folder)
    used = {one.network.api_addr for one in others} | {node.address for one in others for node in one.nodes}
    network, count = wanted.network, wanted.node_count + 1
    beginnings = (
        first
        for first in range(_FIRST, network.num_addresses - count)
        if used.isdisjoint(network.network_address + first + number for number in range(count))
    )
    # Where the network is full, the user chooses.
    first = next(beginnings, _FIRST)
    return replace(wanted, prefix=name[:_LONGEST_PREFIX].rstrip("-"), first=first)


def _find_others(folder: Path) -> list[Cluster]:
    """Return the clusters of the repository that can be read."""
    found = []
    with contextlib.suppress(StackyardError):
        for one in find_clusters(folder).values():
            with contextlib.suppress(StackyardError):
                found.append(open_cluster(one.folder, are_secrets_needed=False).require())
    return found


def _cluster(wanted: NewCluster) -> str:
    # Quoted: YAML reads some names, such as `on` and `7`, as something else.
    said = f'cluster_name: "{wanted.name}"\n' if wanted.name else "# cluster_name: home\n"
    return (
        "# A Talos cluster. `stackyard cluster explain FIELD` says what a field is for;\n"
        "# `stackyard cluster validate` checks both files. No secret belongs here: see cluster.sops.yaml.\n"
        f"{said}\n"
        "# The network of the nodes; its first address is the gateway unless another is named.\n"
        f"node_cidr: {wanted.network}\n"
        f"# node_default_gateway: {wanted.network.network_address + 1}\n"
        "# The virtual address of the Kubernetes API: free, and in that network.\n"
        f"cluster_api_addr: {wanted.address(0)}\n"
        f"# cluster_pod_cidr: {DEFAULTS['cluster_pod_cidr']}\n"
        f"# cluster_svc_cidr: {DEFAULTS['cluster_svc_cidr']}\n\n"
        "# One version for the image, the installer and the tools.\n"
        f"talos_version: {DEFAULTS['talos_version']}\n"
        f"kubernetes_version: {DEFAULTS['kubernetes_version']}\n"
        f"{_SCHEMATIC if wanted.is_virtual else _METAL_SCHEMATIC}"
        f"{_proxmox(wanted.lab) if wanted.is_virtual else ''}"
    )


def _proxmox(lab: LabPlace | None) -> str:
    place = (
        "proxmox_api_url: https://pve.example.com:8006\n"
        "proxmox_node: pve\n"
        "# Or several, to spread the VMs over:\n"
        "# proxmox_nodes: [pve1, pve2, pve3]\n"
        "# Where no authority signed the certificate:\n"
        "# proxmox_insecure: true\n"
    )
    if lab is not None:
        place = (
            f"proxmox_api_url: {lab.url}\n"
            f"proxmox_nodes: [{', '.join(lab.nodes)}]\n"
            "# No authority signed the certificate of the lab.\n"
            "proxmox_insecure: true\n"
            "# The image factory of the lab.\n"
            f"talos_factory: {lab.factory}\n"
        )
    return (
        "\n# Proxmox VE. The API token belongs in cluster.sops.yaml.\n"
        f"{place}"
        f"# proxmox_iso_storage: {DEFAULTS['proxmox_iso_storage']}\n"
        f"# proxmox_disk_storage: {DEFAULTS['proxmox_disk_storage']}\n"
        "# The size of VMs: a node beats its role, a role beats the cluster.\n"
        "# proxmox_vm_defaults: {cores: 4, memory: 8192, disk_size: 128}\n"
        "# proxmox_vm_worker_defaults: {cores: 8, memory: 16384}\n"
    )


def _nodes(wanted: NewCluster) -> str:
    lines = [
        "# The nodes. An odd number of controllers; workers have `controller: false`.",
        *(["# Proxmox chooses the VM IDs unless all nodes have one."] if wanted.is_virtual else []),
        "nodes:",
    ]
    for number in range(1, wanted.node_count + 1):
        lines += [
            f"  - name: {wanted.prefix}-{number}",
            f"    address: {wanted.address(number)}",
            f"    controller: {'true' if wanted.is_controller(number) else 'false'}",
            *(["    # Where Talos is installed: a path, or the serial number of a disk."] * (number == 1)),
            "    disk: /dev/sda",
            f"    mac_addr: bc:24:11:{':'.join(f'{byte:02x}' for byte in secrets.token_bytes(3))}",
        ]
        if wanted.is_virtual:
            lines.append(f"    # vm_id: {wanted.vm_id(number)}")
        if wanted.is_virtual and number == 1:
            lines += ["    # vm_cores: 4", "    # vm_memory: 8192"]
    return "\n".join(lines) + "\n"


def _secret_fields(wanted: NewCluster) -> str:
    token_id, _, secret = ("", "", "") if wanted.lab is None else wanted.lab.api_token.partition("=")
    proxmox = (
        "# The API token of Proxmox: USER@REALM!NAME, and its secret.\n"
        f'proxmox_api_token_id: "{token_id}"\n'
        f'proxmox_api_token_secret: "{secret}"\n'
    )
    return (
        "# The secrets of the cluster: edit with `stackyard secrets edit cluster.sops.yaml`.\n"
        f"{proxmox if wanted.is_virtual else ''}"
        "# Encrypts the state before it leaves this machine.\n"
        'state_encryption_passphrase: ""\n'
    )


def _rules(recipient: str) -> str:
    lines = [
        f"    {key}: {value if isinstance(value, str) else str(value).lower()}"
        for key, value in FLUX_RULE.items()
        if key != "path_regex"
    ]
    return "\n".join(
        [
            "# Who can read the secrets: add public keys of others here, then `stackyard secrets rotate`.",
            "creation_rules:",
            "  # The first rule that fits counts. Flux reads the kind of an object before it decrypts it.",
            f"  - path_regex: {FLUX_RULE['path_regex']}",
            *lines,
            f"    age: {recipient}",
            "  - path_regex: \\.sops\\.ya?ml$",
            "    mac_only_encrypted: true",
            f"    age: {recipient}",
            "",
        ]
    )
