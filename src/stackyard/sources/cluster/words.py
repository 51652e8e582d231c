"""The kinds of text and number that the fields of a cluster are made of.

A text of the wrong form is an error of a type of its own, so that each has its own code.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from stackyard.base.diagnostics import Kind
from stackyard.desired.values import Line

__all__ = [
    "FORMS",
    "ApiUrl",
    "Cidr",
    "Domain",
    "HttpsUrl",
    "Ip",
    "MacAddress",
    "NodeName",
    "SchematicId",
    "Version",
    "Vlan",
]

HOST_BITS = Kind(
    code="E-CLUSTER-HOST-BITS",
    summary="A network has bits of a host set",
    remedy="Write the address of the network itself, as the message says.",
)
BAD_CIDR = Kind(
    code="E-CLUSTER-CIDR",
    summary="This is not an IPv4 network",
    remedy="Write an address and a prefix length, as 192.0.2.0/24.",
)
BAD_ADDRESS = Kind(
    code="E-CLUSTER-ADDRESS",
    summary="This is not an IPv4 address",
    remedy="Write four numbers with points, without a prefix length, as 192.0.2.10.",
)
BAD_MAC = Kind(
    code="E-CLUSTER-MAC",
    summary="This is not the MAC address of a card",
    remedy="Write six pairs of hexadecimal digits, as bc:24:11:00:00:01; the second digit is even.",
)
BAD_VLAN = Kind(
    code="E-CLUSTER-VLAN",
    summary="This is not a VLAN",
    remedy="Write a number from 1 to 4094, or remove the field where ports are untagged.",
)
BAD_NAME = Kind(
    code="E-CLUSTER-NODE-NAME",
    summary="A node cannot have this name",
    remedy="Use 1 to 63 of a-z, 0-9 and `-`, no `-` at either end, and none of the reserved words.",
)
BAD_SCHEMATIC = Kind(
    code="E-CLUSTER-SCHEMATIC-ID",
    summary="This is not the id of a schematic",
    remedy="Copy the 64 hexadecimal digits that the Image Factory shows, or describe it in talos_schematic.",
)
BAD_VERSION = Kind(
    code="E-CLUSTER-VERSION",
    summary="This is not a version",
    remedy="Write three numbers without `v`, as 1.12.1.",
)
BAD_URL = Kind(
    code="E-CLUSTER-URL",
    summary="This is not the address of a service",
    remedy="Write https://HOST:PORT, for Proxmox with or without /api2/json at its end; no user, no query.",
)
BAD_DOMAIN = Kind(
    code="E-CLUSTER-DOMAIN",
    summary="This is not a domain",
    remedy="Write a name with at least one point, as example.com, in lower case.",
)

# What each type of error is called, and its code.
FORMS = {
    "cluster_host_bits": HOST_BITS,
    "cluster_cidr": BAD_CIDR,
    "cluster_address": BAD_ADDRESS,
    "cluster_mac": BAD_MAC,
    "cluster_vlan": BAD_VLAN,
    "cluster_node_name": BAD_NAME,
    "cluster_schematic": BAD_SCHEMATIC,
    "cluster_version": BAD_VERSION,
    "cluster_url": BAD_URL,
    "cluster_domain": BAD_DOMAIN,
}

_LONGEST = 60
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
# Folders of patches have these names.
_RESERVED = ("global", "controller", "worker")
_VERSION = re.compile(r"(0|[1-9][0-9]{0,3})(\.(0|[1-9][0-9]{0,3})){2}(-(alpha|beta|rc)\.[0-9]{1,3})?")
_DOMAIN = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
_HIGHEST_VLAN = 4094


def _refuse(form: str, text: object, why: str) -> PydanticCustomError:
    shown = str(text)
    return PydanticCustomError(
        f"cluster_{form}",
        "{text} {why}",
        {
            "text": shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}...",
            "why": why if why.endswith("?") else f"{why}.",
        },
    )


def _cidr(value: Any) -> IPv4Network:
    if isinstance(value, IPv4Network):
        return value
    if not isinstance(value, str) or "/" not in value:
        raise _refuse("cidr", value, "is not a network with a prefix length")
    try:
        network = IPv4Network(value, strict=False)
    except ValueError:
        raise _refuse("cidr", value, "is not an IPv4 network") from None
    if value.partition("/")[0] != str(network.network_address):
        raise _refuse("host_bits", value, f"has host bits set. Did you mean {network}?")
    return network


def _address(value: Any) -> IPv4Address:
    if isinstance(value, IPv4Address):
        return value
    try:
        return IPv4Address(value if isinstance(value, str) else "")
    except ValueError:
        why = "has a prefix length" if isinstance(value, str) and "/" in value else "is not an IPv4 address"
        raise _refuse("address", value, why) from None


def _mac(value: str) -> str:
    lower = value.lower()
    if not _MAC.fullmatch(lower):
        raise _refuse("mac", value, "is not six pairs of hexadecimal digits with colons")
    if int(lower[:2], 16) & 1:
        raise _refuse("mac", value, "is a multicast address")
    return lower


def _vlan(value: Any) -> int:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    digits = str(value) if is_number or isinstance(value, str) else ""
    if not digits.isascii() or not digits.isdigit() or len(digits) > _LONGEST:
        raise _refuse("vlan", value, "is not a number")
    if not 1 <= int(digits) <= _HIGHEST_VLAN:
        raise _refuse("vlan", value, f"is not from 1 to {_HIGHEST_VLAN}")
    return int(digits)


def _node_name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise _refuse("node_name", value, "is not a host name")
    if value in _RESERVED:
        raise _refuse("node_name", value, "is reserved: it is the name of a group of nodes")
    return value


def _schematic_id(value: str) -> str:
    wrong = sorted({one for one in value if one not in "0123456789abcdef"})
    if wrong:
        raise _refuse("schematic", value, f"has {wrong[0]!r}, which is no hexadecimal digit in lower case")
    if len(value) != 64:
        raise _refuse("schematic", value, f"has {len(value)} digits, not 64")
    return value


def _version(value: str) -> str:
    if _VERSION.fullmatch(value):
        return value
    bare = value.removeprefix("v")
    hint = f". Did you mean {bare}?" if _VERSION.fullmatch(bare) else ""
    raise _refuse("version", value, f"is not a version{hint}")


def _url(value: str) -> str:
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise _refuse("url", value, "is not an address") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise _refuse("url", value, "is not an address of the form https://HOST:PORT")
    if parts.username is not None or parts.password is not None:
        # The text is not shown: there is a password in it.
        raise _refuse("url", f"An address at {parts.hostname}", "has a user or password in it")
    if parts.query or parts.fragment or any(one <= " " for one in value):
        raise _refuse("url", value, "has a query, a fragment or space in it")
    return value


def _api_url(value: str) -> str:
    path = urlsplit(_url(value)).path.rstrip("/")
    if path not in ("", "/api2/json"):
        raise _refuse("url", value, f"leads to {path}, which is not the API of Proxmox")
    return value


def _domain(value: str) -> str:
    if len(value) > 253 or not _DOMAIN.fullmatch(value):
        raise _refuse("domain", value, "is not a domain")
    return value


def _shape(pattern: str) -> Any:
    """Return what an editor holds a text against; the errors of `stackyard` say more."""
    return Field(json_schema_extra={"pattern": pattern})


Cidr = Annotated[IPv4Network, BeforeValidator(_cidr)]
Ip = Annotated[IPv4Address, BeforeValidator(_address)]
MacAddress = Annotated[str, AfterValidator(_mac), _shape(r"^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$")]
Vlan = Annotated[int, BeforeValidator(_vlan, json_schema_input_type=int | str)]
NodeName = Annotated[str, AfterValidator(_node_name), _shape(f"^{_NAME.pattern}$")]
SchematicId = Annotated[str, AfterValidator(_schematic_id), _shape("^[0-9a-f]{64}$")]
Version = Annotated[str, AfterValidator(_version), _shape(f"^{_VERSION.pattern}$")]
HttpsUrl = Annotated[Line, AfterValidator(_url)]
ApiUrl = Annotated[Line, AfterValidator(_api_url)]
Domain = Annotated[str, AfterValidator(_domain)]
