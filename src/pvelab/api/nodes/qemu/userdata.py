"""What a VM's cloud-init drive says, made from its configuration: `user`, `network` and `meta`."""

from __future__ import annotations

import hashlib
import ipaddress
import re
import urllib.parse
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu.networks import parse_network
from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.world import World

__all__ = ["authorized_keys", "hostname_of", "render"]

_MASKED = "**********"


def render(world: World, node: str, vmid: int, config: Mapping[str, Any], *, part: str, masked: bool) -> str:
    """Return one part of the data.

    Args:
        world: The lab.
        node: The node of the VM, whose DNS servers count where the VM has none.
        vmid: The VM.
        config: Its configuration.
        part: `user`, `network` or `meta`.
        masked: Whether the password is hidden.
    """
    nocloud = _is_nocloud(config)
    network = _nocloud_network if nocloud else _eni_network
    if part == "user":
        return _user(vmid, config, masked=masked)
    if part == "network":
        return network(world, node, config)
    # The identity of an instance changes with everything that it gets, the real password among it.
    text = _user(vmid, config, masked=False) + network(world, node, config)
    identity = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    if nocloud:
        return f"instance-id: {identity}\n"
    return (
        f'{{\n     "uuid": "{identity}",\n     "network_config": {{ "content_path": "/content/0000" }}\n}}\n'
    )


def hostname_of(vmid: int, config: Mapping[str, Any]) -> tuple[str, str]:
    """Return the short and the full name of a VM."""
    name = str(config.get("name", f"VM{vmid}"))
    if "." in name:
        return name.partition(".")[0], name
    search = config.get("searchdomain")
    return name, f"{name}.{search}" if search else name


def authorized_keys(config: Mapping[str, Any]) -> list[str]:
    """Return the SSH keys of a VM's user."""
    lines = urllib.parse.unquote(str(config.get("sshkeys", ""))).split("\n")
    return [line.rstrip("\r") for line in lines if line.strip()]


def _is_nocloud(config: Mapping[str, Any]) -> bool:
    windows = str(config.get("ostype", "")).startswith(("win", "wxp", "w2k", "wvista"))
    return str(config.get("citype", "configdrive2" if windows else "nocloud")) == "nocloud"


def _user(vmid: int, config: Mapping[str, Any], *, masked: bool) -> str:
    short, full = hostname_of(vmid, config)
    lines = ["#cloud-config", f"hostname: {short}", "manage_etc_hosts: true", f"fqdn: {full}"]
    user, password = config.get("ciuser"), config.get("cipassword")
    if user is not None:
        lines.append(f"user: {user}")
    if user == "root":
        lines.append("disable_root: False")
    if password is not None:
        lines.append(f"password: {_MASKED if masked else password}")
    if "sshkeys" in config:
        lines.append("ssh_authorized_keys:")
        lines += [f"  - {key}" for key in authorized_keys(config)]
    lines += ["chpasswd:", "  expire: False"]
    if user != "root":
        lines += ["users:", "  - default"]
    if int(config.get("ciupgrade", 1)):
        lines.append("package_upgrade: true")
    return "\n".join(lines) + "\n"


def _interfaces(world: World, config: Mapping[str, Any]) -> list[tuple[int, str, dict[str, str]]]:
    """Return the NICs that cloud-init sets up: number, MAC address and how; in the order of their names."""
    found = []
    for key in sorted(key for key in config if re.fullmatch(r"net\d+", key)):
        number = int(key[3:])
        setting = config.get(f"ipconfig{number}")
        if setting:
            how = dict(part.partition("=")[::2] for part in str(setting).split(",") if part)
            found.append((number, str(parse_network(world, str(config[key]))["macaddr"]).lower(), how))
    return found


def _dns(world: World, node: str, config: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the search domains and the name servers, the node's where the VM has none."""
    host = world.store.get("dns", node) or {}
    search = str(config.get("searchdomain", host.get("search", ""))).split()
    if "nameserver" in config:
        return search, str(config["nameserver"]).split()
    return search, [str(host[key]) for key in ("dns1", "dns2", "dns3") if host.get(key)]


def _nocloud_network(world: World, node: str, config: Mapping[str, Any]) -> str:
    lines = ["version: 1", "config:"]
    for number, mac, how in _interfaces(world, config):
        lines += [
            "    - type: physical",
            f"      name: eth{number}",
            f"      mac_address: '{mac}'",
            "      subnets:",
        ]
        lines += _nocloud_subnet4(how) + _nocloud_subnet6(how)
    search, servers = _dns(world, node, config)
    lines.append("    - type: nameserver")
    for title, values in (("address", servers), ("search", search)):
        if values:
            lines.append(f"      {title}:")
            lines += [f"      - '{value}'" for value in values]
    return "\n".join(lines) + "\n"


def _nocloud_subnet4(how: Mapping[str, str]) -> list[str]:
    if "ip" not in how:
        return []
    if how["ip"] == "dhcp":
        return ["      - type: dhcp4"]
    address = _interface(how["ip"])
    lines = [
        "      - type: static",
        f"        address: '{address.ip}'",
        f"        netmask: '{address.netmask}'",
    ]
    return [*lines, f"        gateway: '{how['gw']}'"] if "gw" in how else lines


def _nocloud_subnet6(how: Mapping[str, str]) -> list[str]:
    if "ip6" not in how:
        return []
    if how["ip6"] in ("dhcp", "auto"):
        return [f"      - type: {'dhcp6' if how['ip6'] == 'dhcp' else 'ipv6_slaac'}"]
    lines = ["      - type: static6", f"        address: '{how['ip6']}'"]
    return [*lines, f"        gateway: '{how['gw6']}'"] if "gw6" in how else lines


def _eni_network(world: World, node: str, config: Mapping[str, Any]) -> str:
    lines = ["auto lo", "iface lo inet loopback", ""]
    search, servers = _dns(world, node, config)
    if servers:
        lines.append(f"        dns_nameservers {' '.join(servers)}")
    if search:
        lines.append(f"        dns_search {' '.join(search)}")
    for number, _, how in _interfaces(world, config):
        lines.append(f"auto eth{number}")
        lines += _eni_stanza(f"eth{number} inet", how.get("ip"), how.get("gw"))
        lines += _eni_stanza(f"eth{number} inet6", how.get("ip6"), how.get("gw6"))
    return "\n".join(lines) + "\n"


def _eni_stanza(what: str, address: str | None, gateway: str | None) -> list[str]:
    if address is None:
        return []
    if address in ("dhcp", "auto"):
        return [f"iface {what} {address}"]
    interface = _interface(address)
    mask = interface.netmask if interface.version == 4 else interface.network.prefixlen
    lines = [f"iface {what} static", f"        address {interface.ip}", f"        netmask {mask}"]
    return [*lines, f"        gateway {gateway}"] if gateway else lines


def _interface(text: str) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface:
    if "/" not in text:
        raise PveError(f"not a CIDR: {text}")
    return ipaddress.ip_interface(text)
