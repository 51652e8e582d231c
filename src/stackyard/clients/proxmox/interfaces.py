"""The network interfaces that a guest reports: by the agent of a VM, or by the network of a container.

A guest decides what is in them. What is read here is of the type that it should be, of a size that can be
worked with, and every address was parsed; anything else is refused, and says nothing about other guests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.addresses import is_usable, parse_address, parse_interface
from stackyard.clients.proxmox.encoding import quote
from stackyard.clients.proxmox.failures import AnswerUnusableError

if TYPE_CHECKING:
    from stackyard.base.addresses import Address
    from stackyard.clients.proxmox.client import Client

__all__ = [
    "GuestInterface",
    "GuestReportError",
    "agent_interfaces",
    "container_interfaces",
    "read_agent_interfaces",
    "read_container_interfaces",
]

# A node of Kubernetes has an interface for each pod, and an address for each service.
MOST_INTERFACES = 4_096
MOST_ADDRESSES = 16_384
_LONGEST_NAME = 256
_MAC = re.compile(r"[0-9A-F]{2}(:[0-9A-F]{2}){5}")


class GuestReportError(Exception):
    """What a guest reports cannot be used; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestInterface:
    """A network interface inside a guest.

    Attributes:
        name: What the guest calls it; any text, and empty where it is none.
        mac: Its hardware address in capitals; empty where it reports none.
        addresses: Its addresses in the order of the report.
    """

    name: str
    mac: str
    addresses: tuple[Address, ...]

    def usable(self) -> Iterator[str]:
        """Return the addresses that other machines can use."""
        return (str(address) for address in self.addresses if is_usable(address))

    def of_version(self, version: int) -> list[str]:
        """Return the addresses of IPv4 or IPv6."""
        return [str(address) for address in self.addresses if address.version == version]


async def read_agent_interfaces(client: Client, node: str, vm_id: int) -> tuple[GuestInterface, ...]:
    """Ask the agent of a VM for its interfaces.

    Raises:
        GuestReportError: The answer cannot be used.
        RefusedError: There is none, as while the guest boots.
    """
    path = f"/nodes/{quote(node)}/qemu/{vm_id}/agent/network-get-interfaces"
    try:
        return agent_interfaces(await client.get(path))
    except AnswerUnusableError as err:
        raise GuestReportError(f"its agent gives an answer that cannot be used: {err.detail}") from err


async def read_container_interfaces(client: Client, node: str, vm_id: int) -> tuple[GuestInterface, ...]:
    """Return the interfaces of a running container.

    Raises:
        GuestReportError: They cannot be used.
        RefusedError: There are none, as while the container begins.
    """
    path = f"/nodes/{quote(node)}/lxc/{vm_id}/interfaces"
    try:
        return container_interfaces(await client.get(path))
    except AnswerUnusableError as err:
        raise GuestReportError(f"the container gives an answer that cannot be used: {err.detail}") from err


def agent_interfaces(answer: object) -> tuple[GuestInterface, ...]:
    """Return what the agent of a VM answered to `network-get-interfaces`.

    Raises:
        GuestReportError: It cannot be used.
    """
    if answer is None:
        return ()
    if not isinstance(answer, Mapping):
        raise GuestReportError("its agent does not answer with an object.")
    return _read(answer.get("result"), "its agent")


def container_interfaces(rows: object) -> tuple[GuestInterface, ...]:
    """Return the interfaces of a container.

    Raises:
        GuestReportError: They cannot be used.
    """
    return _read(rows, "the container")


def _read(rows: object, who: str) -> tuple[GuestInterface, ...]:
    listed = _rows(rows, who, "interfaces", MOST_INTERFACES)
    found, left = [], MOST_ADDRESSES
    for row in listed:
        reported = _rows(row.get("ip-addresses"), who, "addresses", left)
        left -= len(reported)
        found.append(
            GuestInterface(
                name=_name(row.get("name")),
                mac=_mac(row.get("hardware-address") or row.get("hwaddr")),
                addresses=tuple(dict.fromkeys(_addresses(row, reported))),
            )
        )
    return tuple(found)


def _rows(value: object, who: str, what: str, most: int) -> Sequence[Mapping[str, Any]]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(row, Mapping) for row in value):
        raise GuestReportError(f"{who} does not report its {what} as a list of objects.")
    if len(value) > most:
        raise GuestReportError(f"{who} reports too many {what}: {len(value):,}.")
    return value


def _addresses(row: Mapping[str, Any], reported: Sequence[Mapping[str, Any]]) -> Iterator[Address]:
    for one in reported:
        try:
            yield parse_address(one.get("ip-address"))
        except ValueError:
            # One that is none, or that means something inside of the guest only.
            continue
    if reported:
        return
    # Older versions of Proxmox report one address of each family of a container, with its prefix length.
    for field in ("inet", "inet6"):
        try:
            yield parse_interface(row.get(field)).ip
        except ValueError:
            continue


def _name(value: object) -> str:
    return value if isinstance(value, str) and len(value) <= _LONGEST_NAME else ""


def _mac(value: object) -> str:
    upper = value.upper() if isinstance(value, str) and len(value) < 64 else ""
    return upper if _MAC.fullmatch(upper) else ""
