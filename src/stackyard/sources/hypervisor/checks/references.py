"""Names of other objects lead to something: nodes, secrets, storages, pools, zones, groups, realms."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Kind, Severity
from stackyard.base.suggestions import did_you_mean
from stackyard.sources.hypervisor.build import is_secret

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.hypervisor.build import Entry
    from stackyard.sources.hypervisor.files import HypervisorFile, Key, SiteFacts

__all__ = ["BAD_NAME", "NOT_IN_FILES", "check_name", "check_references"]

NOT_IN_FILES = Kind(
    code="W-HYPERVISOR-NAME",
    summary="A name is in no file",
    remedy="Correct it, or describe what it names; nothing is wrong if it exists in Proxmox already.",
    severity=Severity.WARNING,
)
NO_SECRET = Kind(
    code="E-HYPERVISOR-SECRET",
    summary="A secret is missing",
    remedy="Add it with `stackyard secrets edit`, or correct the name.",
)
BAD_NAME = Kind(
    code="E-HYPERVISOR-NAME",
    summary="Proxmox does not take a name",
    remedy="Write another name.",
)


@dataclass(frozen=True, slots=True)
class _Reference:
    """That an attribute of a section names entries of another."""

    section: str
    attribute: str
    target: str
    what: str
    others: frozenset[str] = frozenset()


_REFERENCES = (
    _Reference("users", "groups", "groups", "group"),
    _Reference("backups", "storage", "storages", "storage", frozenset({"local", "local-lvm", "local-zfs"})),
    _Reference("backups", "pool", "pools", "pool"),
    _Reference("sdn.vnets", "zone", "sdn.zones", "zone"),
    _Reference("sdn.subnets", "vnet", "sdn.vnets", "vnet"),
    _Reference("sdn.zones", "controller", "sdn.controllers", "controller"),
    _Reference("sdn.controllers", "fabric", "sdn.fabrics", "fabric"),
    _Reference("acme_certificate", "account", "acme.accounts", "ACME account", frozenset({"default"})),
)
# Where nodes are named, as Proxmox calls them.
_NODES = (
    ("storages", "nodes"),
    ("sdn.zones", "nodes"),
    ("sdn.zones", "exit_nodes"),
    ("backups", "node"),
    ("replications", "target"),
)
_MAPPINGS = ("mappings.pci", "mappings.usb", "mappings.directories")
_LONGEST_SDN_NAME = 8
# Sections whose entries have names of plain characters. A pool may be inside of others.
_PLAIN = (
    "storages",
    "pools",
    "realms",
    "groups",
    "roles",
    "mappings.pci",
    "mappings.usb",
    "mappings.directories",
    "metrics",
    "backups",
    "acme.accounts",
    "acme.plugins",
    "sdn.controllers",
    "sdn.fabrics",
)
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")
# How deep a pool may be in others.
_DEEPEST_POOL = 3


def check_references(files: Sequence[HypervisorFile], site: SiteFacts, found: Diagnostics) -> None:
    """Check every name that an entry has of something else."""
    for file in files:
        for reference in _REFERENCES:
            for entry in file.section(reference.section):
                for name, keys in _texts(entry, reference.attribute):
                    if name not in reference.others:
                        check_name(files, reference.target, name, reference.what).add(
                            file, entry, keys, found
                        )
        for entry in file.entries:
            for name, keys in _secrets(dict(entry.values), ()):
                if site.secrets is not None and name not in site.secrets:
                    detail = f"secrets.yaml has no `{name}`.{did_you_mean(name, site.secrets)}"
                    found.add(NO_SECRET, detail, file.place(entry, *keys))
        _check_nodes(file, site, found)
        _check_sdn_names(file, found)
        _check_plain_names(file, found)


@dataclass(frozen=True, slots=True)
class _Lookup:
    """Whether a name is in the files, and what to say where it is not."""

    is_known: bool
    detail: str

    def add(self, file: HypervisorFile, entry: Entry, keys: tuple[Key, ...], found: Diagnostics) -> None:
        """Add a finding where the name is not known."""
        if not self.is_known:
            found.add(NOT_IN_FILES, self.detail, file.place(entry, *keys))


def check_name(files: Sequence[HypervisorFile], section: str, name: str, what: str) -> _Lookup:
    """Return whether a section of a file has a name."""
    is_known = any(file.may_have(section, name) for file in files)
    known = {one for file in files for one in file.names(section)}
    return _Lookup(is_known, f"There is no {what} '{name}' in hypervisors/.{did_you_mean(name, known)}")


def _texts(entry: Entry, attribute: str) -> Iterator[tuple[str, tuple[Key, ...]]]:
    value = entry.values.get(attribute)
    if isinstance(value, str):
        yield value, (attribute,)
    elif isinstance(value, list | tuple):
        yield from ((one, (attribute, index)) for index, one in enumerate(value) if isinstance(one, str))


def _secrets(value: Any, keys: tuple[Key, ...]) -> Iterator[tuple[str, tuple[Key, ...]]]:
    if is_secret(value):
        yield value["secret"], (*keys, "secret")
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _secrets(part, (*keys, key))


def _check_nodes(file: HypervisorFile, site: SiteFacts, found: Diagnostics) -> None:
    # A site with one node says nothing of the others of its cluster.
    if site.nodes is None or len(site.nodes) < 2:
        return
    named = [
        (name, entry, keys)
        for section, attribute in _NODES
        for entry in file.section(section)
        for name, keys in _texts(entry, attribute)
    ]
    for entry in file.section("acl"):
        # What Proxmox has below /nodes are its nodes.
        top, _, node = entry.values["path"].strip("/").partition("/")
        named += [(node, entry, ("path",))] if top == "nodes" and node else []
    for entry in file.section(*_MAPPINGS):
        for index, one in enumerate(entry.values["map"]):
            named.append((one["node"], entry, ("map", index, "node")))
    for name, entry, keys in named:
        if name not in site.nodes.values():
            detail = f"There is no node '{name}' in nodes/.{did_you_mean(name, site.nodes.values())}"
            found.add(NOT_IN_FILES, detail, file.place(entry, *keys))


def _check_sdn_names(file: HypervisorFile, found: Diagnostics) -> None:
    for entry in file.section("sdn.zones", "sdn.vnets"):
        name = entry.name
        is_name = name.isascii() and name.isalnum() and name[0].isalpha() and len(name) <= _LONGEST_SDN_NAME
        if not is_name:
            detail = (
                f"'{name}' is no name for a zone or vnet: up to eight letters and digits, a letter first."
            )
            found.add(BAD_NAME, detail, file.key_place(entry))


def _check_plain_names(file: HypervisorFile, found: Diagnostics) -> None:
    """Check names that become parts of paths and of files of Proxmox."""
    for entry in file.section(*_PLAIN):
        parts = entry.name.split("/")
        if entry.section.name == "pools" and len(parts) > 1:
            _check_nested(file, entry, parts, found)
        elif not _PLAIN_NAME.fullmatch(entry.name):
            detail = f"'{entry.name}' is no name: it has letters, digits, `.`, `_` and `-`."
            found.add(BAD_NAME, detail, file.key_place(entry))


def _check_nested(file: HypervisorFile, pool: Entry, parts: list[str], found: Diagnostics) -> None:
    """Check a pool that is inside of another."""
    if not all(map(_PLAIN_NAME.fullmatch, parts)):
        detail = f"'{pool.name}' is no name: its parts have letters, digits, `.`, `_` and `-`."
        found.add(BAD_NAME, detail, file.key_place(pool))
    elif len(parts) > _DEEPEST_POOL:
        detail = f"'{pool.name}' is {len(parts)} levels deep; Proxmox has {_DEEPEST_POOL}."
        found.add(BAD_NAME, detail, file.key_place(pool))
    elif not file.may_have("pools", above := "/".join(parts[:-1])):
        found.add(
            NOT_IN_FILES,
            f"'{pool.name}' is in the pool '{above}', which the file lacks.",
            file.key_place(pool),
        )
