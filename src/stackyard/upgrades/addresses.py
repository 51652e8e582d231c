"""Addresses of providers and modules: `hashicorp/aws`, `registry.example.com/acme/vm/proxmox//small`."""

from __future__ import annotations

import re
from typing import NamedTuple

from stackyard.engine.version import Flavour

__all__ = ["DEFAULT_HOSTS", "ModuleAddress", "ProviderAddress", "parse_module", "parse_provider"]

# Where each engine looks for an address that names no host.
DEFAULT_HOSTS = {Flavour.TOFU: "registry.opentofu.org", Flavour.TERRAFORM: "registry.terraform.io"}
_OLD_NAMESPACE = "hashicorp"
_HOST = re.compile(r"[0-9a-z-]{1,63}(?:\.[0-9a-z-]{1,63}){0,20}(?::\d{1,5})?", re.IGNORECASE | re.ASCII)
_PART = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z_-]{0,62}[0-9A-Za-z])?", re.ASCII)
# The engines refuse these as registries of modules: such a source is a git repository.
_GIT_HOSTS = frozenset({"github.com", "bitbucket.org", "gitlab.com"})


class ProviderAddress(NamedTuple):
    """The address of a provider."""

    host: str
    namespace: str
    type: str

    def __str__(self) -> str:
        return "/".join(self)

    @property
    def short(self) -> str:
        """The address without the host, where that is the one that the engines look at by themselves."""
        return str(self) if self.host not in DEFAULT_HOSTS.values() else f"{self.namespace}/{self.type}"


class ModuleAddress(NamedTuple):
    """The address of a module in a registry."""

    host: str
    namespace: str
    name: str
    system: str

    def __str__(self) -> str:
        return "/".join(self)

    @property
    def short(self) -> str:
        """The address without the host, where that is the one that the engines look at by themselves."""
        return str(self) if self.host not in DEFAULT_HOSTS.values() else "/".join(self[1:])


def parse_provider(source: str, default_host: str) -> ProviderAddress | None:
    """Return the address that a source names, None where it names none.

    Args:
        source: `aws`, `hashicorp/aws` or `HOST/NAMESPACE/TYPE`.
        default_host: The host of an address that names none.
    """
    parts = source.split("/")
    if len(parts) == 1:
        parts = [_OLD_NAMESPACE, *parts]
    host = parts.pop(0) if len(parts) == 3 else default_host
    if len(parts) != 2 or not _HOST.fullmatch(host) or not all(map(_PART.fullmatch, parts)):
        return None
    return ProviderAddress(host.lower(), *(one.lower() for one in parts))


def parse_module(source: str, default_host: str) -> ModuleAddress | None:
    """Return the address that a source names, None where it is no module of a registry."""
    parts = source.partition("//")[0].split("/")
    host = parts.pop(0) if len(parts) == 4 else default_host
    if len(parts) != 3 or not _HOST.fullmatch(host) or host.lower() in _GIT_HOSTS:
        return None
    return ModuleAddress(host.lower(), *parts) if all(map(_PART.fullmatch, parts)) else None
