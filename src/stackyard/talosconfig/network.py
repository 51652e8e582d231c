"""The network of a node: in `machine.network` up to Talos 1.11, in documents of their own afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.talosconfig.settings import make_document

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.talosconfig.settings import MachineInput

__all__ = [
    "list_network_documents",
    "make_nameservers",
    "make_network_section",
    "make_registries",
    "make_time",
]

# The name of the card with the MAC address of the node, whatever the kernel calls it.
LINK = "net0"
RESOLVER, TIME = "ResolverConfig", "TimeSyncConfig"


def make_network_section(given: MachineInput) -> dict[str, Any]:
    """Return `machine.network` in the classic form."""
    network, node = given.cluster.network, given.node
    address: dict[str, Any] = {
        "addresses": [_address(given)],
        "routes": [{"network": "0.0.0.0/0", "gateway": str(network.gateway)}],
        **({"mtu": node.mtu} if node.mtu else {}),
        **({"vip": {"ip": given.virtual_address}} if given.virtual_address else {}),
    }
    card: dict[str, Any] = {"deviceSelector": {"hardwareAddr": node.mac_addr}, "dhcp": False}
    tag = _talos_tag(given)
    if tag is None:
        card |= address
    else:
        card |= {"mtu": node.mtu} if node.mtu else {}
        card["vlans"] = [{"vlanId": tag, "dhcp": False, **address}]
    return {"hostname": node.name, "interfaces": [card], **make_nameservers(given)}


def make_nameservers(given: MachineInput) -> dict[str, Any]:
    """Return the name servers in the classic form; empty if they are a document."""
    servers = [str(one) for one in given.cluster.network.dns_servers]
    return {} if given.has_document(RESOLVER) else {"nameservers": servers}


def make_time(given: MachineInput) -> dict[str, Any]:
    """Return `machine.time` in the classic form; empty if it is a document."""
    return {} if given.has_document(TIME) else {"servers": list(given.cluster.network.ntp_servers)}


def make_registries(given: MachineInput) -> dict[str, Any]:
    """Return `machine.registries` in the classic form; empty without mirrors."""
    mirrors = sorted(given.settings.registry_mirrors.items())
    return {"mirrors": {name: {"endpoints": list(urls)} for name, urls in mirrors}} if mirrors else {}


def list_network_documents(given: MachineInput) -> list[dict[str, Any]]:
    """Return the documents of the network."""
    return [
        make_document("HostnameConfig", auto="off", hostname=given.node.name),
        *_list_links(given),
        *_list_servers(given),
        *(
            make_document("RegistryMirrorConfig", name=name, endpoints=[{"url": url} for url in urls])
            for name, urls in sorted(given.settings.registry_mirrors.items())
        ),
    ]


def _list_servers(given: MachineInput) -> Iterator[dict[str, Any]]:
    network = given.cluster.network
    host = {"hostDNS": {"enabled": True, "forwardKubeDNSToHost": True}}
    if given.has_document(RESOLVER):
        servers = [{"address": str(one)} for one in network.dns_servers]
        extra = host if given.contract.has_kubernetes_documents else {}
        yield make_document(RESOLVER, nameservers=servers, **extra)
    if given.has_document(TIME):
        yield make_document(TIME, enabled=True, ntp={"servers": list(network.ntp_servers)})


def _list_links(given: MachineInput) -> list[dict[str, Any]]:
    node, tag = given.node, _talos_tag(given)
    address = {
        "addresses": [{"address": _address(given)}],
        "routes": [{"gateway": str(given.cluster.network.gateway)}],
    }
    mtu = {"mtu": node.mtu} if node.mtu else {}
    selector = {"match": f'mac(link.hardware_addr) == "{node.mac_addr}"'}
    documents = [make_document("LinkAliasConfig", name=LINK, selector=selector)]
    name = LINK if tag is None else f"{LINK}.{tag}"
    if tag is None:
        documents.append(make_document("LinkConfig", name=LINK, up=True, **mtu, **address))
    else:
        documents += [
            make_document("LinkConfig", name=LINK, up=True, **mtu),
            make_document("VLANConfig", name=name, vlanID=tag, parent=LINK, up=True, **mtu, **address),
        ]
    if given.virtual_address:
        documents.append(make_document("Layer2VIPConfig", name=given.virtual_address, link=name))
    return documents


def _address(given: MachineInput) -> str:
    return f"{given.node.address}/{given.cluster.network.node_cidr.prefixlen}"


def _talos_tag(given: MachineInput) -> int | None:
    """Return the VLAN that Talos itself must tag: none if Proxmox does."""
    network = given.cluster.network
    return None if network.is_tagged_by_proxmox and given.node.vm is not None else network.vlan_tag
