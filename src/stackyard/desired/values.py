"""The base of all values of the model, and the kinds of words and numbers they are made of."""

from __future__ import annotations

import ipaddress
import os
import re
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, StringConstraints

from stackyard.base.addresses import parse_address, parse_interface

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Address4",
    "Address6",
    "DnsName",
    "GuestName",
    "HostAddress",
    "InterfaceName",
    "Key",
    "Line",
    "Mac",
    "Many",
    "Mtu",
    "NetworkAddress",
    "SdnName",
    "Seconds",
    "Tag",
    "Tags",
    "Value",
    "VlanTag",
    "VmId",
]

T = TypeVar("T")

# Plugins of pydantic are for programs that watch their own models. To look for them reads the metadata of
# every distribution, which takes longer than to read a site.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


class Value(BaseModel):
    """A part of the model: frozen, hashable, strict about types and about what it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)

    @classmethod
    def model_rebuild(cls, **options: Any) -> bool | None:
        """Build the validator, the parts first: built later, each would be built again for every whole."""
        if not cls.__pydantic_complete__:
            for field in cls.__pydantic_fields__.values():
                for part in _parts(field.annotation):
                    if not part.__pydantic_complete__:
                        part.model_rebuild(**options)
        return super().model_rebuild(**options)


def _parts(annotation: Any) -> Iterator[type[Value]]:
    """Return the values that a type is made of."""
    if isinstance(annotation, type) and not get_args(annotation):
        if issubclass(annotation, Value):
            yield annotation
        return
    for argument in get_args(annotation):
        yield from _parts(argument)


# Lists come as lists from YAML and JSON, and are kept as tuples: a value must be hashable.
Many = Annotated[tuple[T, ...], Strict(False)]

_MAC = re.compile(r"[0-9A-F]{2}(:[0-9A-F]{2}){5}")
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"


def _mac(text: str) -> str:
    upper = text.upper()
    if not _MAC.fullmatch(upper):
        raise ValueError("a MAC address is six pairs of hexadecimal digits with colons, as 02:00:00:12:34:56")
    if int(upper[:2], 16) & 1:
        raise ValueError("this is a multicast MAC address; the second digit has to be even")
    return upper


def _address4(text: str) -> str:
    if text in ("dhcp", "manual"):
        return text
    if "/" not in text:
        raise ValueError("write `dhcp`, or an address with its prefix length, as 192.0.2.10/24")
    return _interface(text, 4)


def _address6(text: str) -> str:
    if text in ("dhcp", "auto", "manual"):
        return text
    if "/" not in text:
        raise ValueError("write `auto`, `dhcp`, or an address with its prefix length, as 2001:db8::10/64")
    return _interface(text, 6)


def _interface(text: str, version: int) -> str:
    found = parse_interface(text)
    if found.version != version:
        raise ValueError(f"{text} is not an IPv{version} address")
    return str(found)


def _host_address(text: str) -> str:
    return str(parse_address(text))


def _network_address(text: str) -> str:
    found = parse_interface(text)
    # Refused where bits of a host are set, as `ip_network` does.
    return str(ipaddress.ip_network(str(found)))


def _tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    # Proxmox keeps tags sorted and once each; keeping them so makes two spellings one value.
    return tuple(sorted(set(tags)))


def _one_line(text: str) -> str:
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise ValueError("this has to be one line without control characters")
    return text


Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_./@-]*$", max_length=128)]
Line = Annotated[str, StringConstraints(min_length=1, max_length=1024), AfterValidator(_one_line)]
GuestName = Annotated[str, StringConstraints(pattern=rf"^{_LABEL}(?:\.{_LABEL})*$", max_length=253)]
DnsName = Annotated[str, StringConstraints(pattern=rf"^{_LABEL}(?:\.{_LABEL})*\.?$", max_length=254)]
InterfaceName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z][a-zA-Z0-9_]{0,14}([:.]\d+)?$")]
SdnName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z][a-zA-Z0-9]{0,7}$")]
Tag = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_][a-z0-9_.+-]*$", max_length=128)]
Tags = Annotated[Many[Tag], AfterValidator(_tags)]
Mac = Annotated[str, AfterValidator(_mac)]
Address4 = Annotated[str, AfterValidator(_address4)]
Address6 = Annotated[str, AfterValidator(_address6)]
HostAddress = Annotated[str, AfterValidator(_host_address)]
NetworkAddress = Annotated[str, AfterValidator(_network_address)]
VmId = Annotated[int, Field(ge=100, le=999_999_999)]
VlanTag = Annotated[int, Field(ge=1, le=4094)]
Mtu = Annotated[int, Field(ge=576, le=65520)]
Seconds = Annotated[int, Field(ge=0, le=86400)]
