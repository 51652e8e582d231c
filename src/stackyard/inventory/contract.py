"""The inventory as a document with a version: every guest that should be there, and what it is reached by.

Its schema is `inventory.schema.json`. Readers stop where the first number of the version differs; keys that
come on top raise the second.
"""

from __future__ import annotations

import functools
import importlib.resources
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.addresses import parse_interface
from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.base.documents.schemacheck import SchemaChecker
from stackyard.base.errors import InvalidInputError
from stackyard.desired import Container
from stackyard.render.references import address_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.desired import Desired, Guest
    from stackyard.inventory.facts import Fact

__all__ = [
    "EXTRAS",
    "PCT",
    "SCHEMA_VERSION",
    "IncompleteError",
    "Inventory",
    "Origin",
    "parse",
    "render",
    "schema",
]

SCHEMA_VERSION = "2.4.0"
PCT = "community.proxmox.proxmox_pct_remote"
_DOCKER = "docker"
_ROOT = "root"
# What a source says beside its guests, and readers may want: kept as it is.
EXTRAS = ("constants", "host_services", "ingress", "ingress_vip", "ingress_hosts", "node_storage")
# The disks of the Splunk machine that are tiers of its storage.
_TIERS = {"virtio2": "fast", "virtio3": "bulk"}

NOT_THERE = Kind(
    code="E-INVENTORY-MISSING",
    summary="A guest that should be there is not in the state",
    remedy="Apply the whole target; an inventory without it would make its readers forget it.",
)
NOT_WANTED = Kind(
    code="E-INVENTORY-EXTRA",
    summary="The state has a guest that should not be there",
    remedy="Apply the whole target, or write the guest down.",
)
NO_ADDRESS = Kind(
    code="E-INVENTORY-ADDRESS",
    summary="A guest that runs has no address",
    remedy="Wait until its agent answers and apply again, or give it a static address.",
)
NOT_VALID = Kind(
    code="E-INVENTORY-SCHEMA",
    summary="The inventory does not fit its schema",
    remedy="Correct the place that is named in the input of the guest.",
)


class IncompleteError(InvalidInputError):
    """An inventory would not say what is true of every guest; the one before it stays."""

    code = "E-INVENTORY-INCOMPLETE"
    summary = "The inventory cannot be published"
    default_remedy = "Correct what is listed; the inventory that was published before stays."


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where an inventory comes from.

    Attributes:
        target: The target.
        desired: The fingerprint of what should be there.
        version: Which version of its source that was, where the source has versions.
        state: Which version of the state it was rendered from.
        etag: What the store of the source calls the content, for readers that ask the store themselves.
    """

    target: str
    desired: str
    version: str = ""
    state: str = ""
    etag: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """An inventory that is whole.

    Attributes:
        document: What it says.
    """

    document: Mapping[str, Any]

    def data(self) -> bytes:
        """Return it as it is published."""
        return orjson.dumps(self.document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"

    @property
    def origin(self) -> Origin:
        """Where it comes from."""
        said = self.document["desired_state"]
        return Origin(
            target=said["target"],
            desired=said["fingerprint"],
            # Until 2.3 there was one word for both.
            version=said.get("version", said["etag"]),
            state=said["state"],
            etag=said["etag"] if "version" in said else "",
        )

    def hosts(self) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
        """Return key and row of every guest, and whether it is a container."""
        yield from ((key, row, True) for key, row in self.document["containers"].items())
        yield from ((key, row, False) for key, row in self.document["vms"].items())
        yield from ((key, row, False) for key, row in self.document.get("splunk_vm", {}).items())

    def node_host(self, node: str) -> str | None:
        """Return what a node is reached by, where the source of the inventory says what it is called."""
        role = (self.document["nodes"].get(node) or {}).get("role")
        domain = self.document["domain"]
        return None if role is None else f"{role}.{domain}" if domain else node


def render(
    desired: Desired,
    facts: Mapping[str, Fact],
    origin: Origin,
    *,
    extras: Mapping[str, Any] | None = None,
) -> Inventory:
    """Render the inventory of a target.

    Args:
        desired: What should be there.
        facts: What the state has, by address of the resource.
        origin: Where both come from.
        extras: What the source says beside its guests.

    Raises:
        IncompleteError: The state does not have exactly the guests that should be there, or lacks something
            of one of them; the error names every guest.
    """
    found = Diagnostics()
    said = extras or {}
    connections = said.get("connections") or {}
    rows = {
        guest.key: _row(guest, facts.get(address_of(guest)), connections.get(guest.key), found)
        for guest in _guests(desired)
    }
    wanted = {address_of(guest) for guest in desired.guests}
    for address in sorted(facts.keys() - wanted):
        found.add(NOT_WANTED, f"{address} ({facts[address].vm_id} on {facts[address].node}) is not wanted.")
    document = _document(desired, rows, origin, said)
    if not found.errors:
        _check(document, found)
    if found.errors:
        raise IncompleteError(f"The inventory of {origin.target} is not whole.", tuple(found.errors))
    return Inventory(document=document)


def parse(data: bytes) -> Inventory:
    """Read an inventory that was published.

    Raises:
        IncompleteError: It is none, or of a version that is not known.
    """
    try:
        document = parse_json(data, LARGE)
        version = str(document["schema_version"])
    except (JsonError, KeyError, TypeError) as err:
        raise IncompleteError("This is no inventory.") from err
    if version.partition(".")[0] != SCHEMA_VERSION.partition(".")[0]:
        raise IncompleteError(f"The inventory has version {version}, and {SCHEMA_VERSION} is known.")
    found = Diagnostics()
    _check(document, found)
    if found.errors:
        raise IncompleteError("The inventory does not fit its schema.", tuple(found.errors))
    return Inventory(document=document)


@functools.cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of the document."""
    text = importlib.resources.files(__package__).joinpath("inventory.schema.json").read_bytes()
    document: dict[str, Any] = parse_json(text, LARGE)
    return document


@functools.cache
def _make_checker() -> SchemaChecker:
    return SchemaChecker(schema())


def _check(document: Mapping[str, Any], found: Diagnostics) -> None:
    for error in _make_checker().findings(document):
        path = ".".join(str(part) for part in error.path)
        found.add(NOT_VALID, f"`{path}`: {error.message}.")


def _guests(desired: Desired) -> Iterator[Guest]:
    return (guest for guest in desired.guests if not guest.is_template)


def _row(guest: Guest, fact: Fact | None, connection: str | None, found: Diagnostics) -> dict[str, Any]:
    if fact is None or not fact.vm_id or not fact.node:
        found.add(NOT_THERE, f"{guest.key} ({guest.name}) is not in the state.")
        return {}
    addresses = [*_static(guest), *fact.addresses]
    if guest.started and not addresses:
        found.add(NO_ADDRESS, f"{guest.key} ({guest.name}, {fact.vm_id} on {fact.node}) has no address.")
    row = {
        "vmid": fact.vm_id,
        "hostname": guest.name,
        "ip": addresses[0] if addresses else None,
        "fqdn": _fqdn(guest),
        # As DHCP servers and network controllers write it.
        "mac": None if fact.mac is None else fact.mac.lower(),
        "node": fact.node,
        "ansible_user": _user(guest),
        "on_boot": guest.on_boot,
        "started": guest.started,
        "tags": sorted(guest.tags),
        "pool_id": guest.pool,
        "cpu_cores": guest.cpu.cores,
        **_sizes(guest),
    }
    if isinstance(guest, Container):
        return {**row, "ansible_connection": connection or PCT, "ansible_pct_vmid": fact.vm_id}
    return {**row, "ansible_connection": connection or "ssh", "gateway": _gateway(guest)}


def _static(guest: Guest) -> list[str]:
    """Return the addresses that the input itself says."""
    said = [address for nic in guest.nics for address in (nic.ipv4, nic.ipv6) if address and "/" in address]
    return [str(parse_interface(address).ip) for address in said]


def _gateway(guest: Guest) -> str | None:
    return next((nic.gateway4 or nic.gateway6 for nic in guest.nics if nic.gateway4 or nic.gateway6), None)


def _fqdn(guest: Guest) -> str:
    domain = guest.dns.domain if guest.dns is not None else None
    return f"{guest.name}.{domain}" if domain else guest.name


def _user(guest: Guest) -> str:
    if isinstance(guest, Container) or guest.cloud_init is None:
        return _ROOT
    return next((user.name for user in guest.cloud_init.users if user.name), _ROOT)


def _sizes(guest: Guest) -> dict[str, Any]:
    if isinstance(guest, Container):
        disk = guest.root_disk
        return {
            "memory_mb": guest.memory.dedicated_mib,
            "disk_gb": disk.size_gib if disk is not None else None,
            "datastore": disk.datastore if disk is not None else None,
        }
    first = guest.disks[0] if guest.disks else None
    return {
        "memory_mb": guest.memory.dedicated_mib,
        "disk_gb": first.size_gib if first is not None else None,
        "datastore": first.datastore if first is not None else None,
        "disks": [
            {"interface": disk.interface, "size_gb": disk.size_gib, "datastore": disk.datastore}
            for disk in guest.disks[1:]
        ],
    }


def _document(
    desired: Desired, rows: Mapping[str, Any], origin: Origin, extras: Mapping[str, Any]
) -> dict[str, Any]:
    keys = {guest.key for guest in desired.containers}
    containers = {key: row for key, row in rows.items() if key in keys}
    splunk = extras.get("splunk")
    vms = {key: row for key, row in rows.items() if key not in keys and key != splunk}
    nodes = sorted({guest.node for guest in desired.guests})
    domains = {guest.dns.domain for guest in desired.guests if guest.dns is not None and guest.dns.domain}
    return {
        "schema_version": SCHEMA_VERSION,
        "desired_state": {
            "target": origin.target,
            "fingerprint": origin.desired,
            "version": origin.version,
            "etag": origin.etag or origin.version,
            "state": origin.state,
        },
        "domain": extras.get("domain") or (next(iter(domains)) if len(domains) == 1 else ""),
        "proxmox_node": extras.get("proxmox_node") or (nodes[0] if nodes else ""),
        "proxmox_user": extras.get("proxmox_user") or _ROOT,
        "containers": containers,
        "vms": vms,
        "docker_vms": {key: row for key, row in vms.items() if _DOCKER in row.get("tags", ())},
        "splunk_vm": {key: row for key, row in rows.items() if key == splunk},
        "splunk_storage": _tiers(rows.get(splunk or "", {})),
        "nodes": extras.get("nodes") or {node: {} for node in nodes},
        **{key: extras.get(key, _EMPTY[key]) for key in EXTRAS},
    }


def _tiers(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tiers of the storage of the Splunk machine, by their names."""
    return {
        _TIERS[disk["interface"]]: {
            "datastore_id": disk["datastore"],
            "disk_interface": disk["interface"],
            "size_gb": disk["size_gb"],
        }
        for disk in row.get("disks", ())
        if disk["interface"] in _TIERS
    }


_EMPTY: dict[str, Any] = {
    "constants": {},
    "host_services": {},
    "ingress": [],
    "ingress_vip": "",
    "ingress_hosts": [],
    "node_storage": {},
}
