"""The base of all entities and the words they share."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from stackyard.desired.values import Many, Value
from stackyard.sources.site.addresses import Interface

__all__ = [
    "CidrAddress",
    "Entity",
    "HostAddress",
    "KeyLine",
    "Line",
    "Many",
    "Name",
    "Named",
    "Port",
    "RootLogin",
    "TimeZone",
    "Url",
    "YesNo",
]

T = TypeVar("T")


class Entity(Value):
    """A file of a site, or a part of one: frozen, strict about types, refusing what it does not know."""


def _as_word(value: Any) -> Any:
    """Take `yes` without quotes, which YAML reads as a boolean, for the word that it was meant to be."""
    return ("yes" if value else "no") if isinstance(value, bool) else value


def _nothing_as_empty(value: Any) -> Any:
    """Take a key with nothing after it for an empty mapping, as people write it."""
    return {} if value is None else value


def _cidr(text: str) -> str:
    if "/" not in text:
        raise ValueError("write the address with its prefix length, as 192.0.2.10/24")
    return str(Interface.parse(text))


def _host(text: str) -> str:
    if "/" in text:
        raise ValueError("write the address alone, without a prefix length")
    return Interface.parse(text).address


_PUBLIC_KEY = re.compile(r"(?:ssh-|ecdsa-|sk-ssh-|sk-ecdsa-)[a-z0-9@.-]+ \S+(?: .*)?")


def _public_key(text: str) -> str:
    if not _PUBLIC_KEY.fullmatch(text.strip()):
        raise ValueError("write a public key as ssh-keygen does, on one line: `ssh-ed25519 AAAA... name`")
    return text.strip()


# The rules are those of the model, spelled so that thousands of them take no time.
HostAddress = Annotated[str, AfterValidator(_host)]
Line = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=1024)]
# The stem of a file, and so what others refer to it by.
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=128)]
Named = Annotated[dict[str, T], BeforeValidator(_nothing_as_empty)]
YesNo = Annotated[Literal["yes", "no"], BeforeValidator(_as_word)]
RootLogin = Annotated[Literal["yes", "no", "prohibit-password"], BeforeValidator(_as_word)]
CidrAddress = Annotated[str, AfterValidator(_cidr)]
KeyLine = Annotated[str, AfterValidator(_public_key)]
Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]+\S*$", max_length=2048)]
TimeZone = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$")]
Port = Annotated[int, Field(ge=1, le=65535)]
