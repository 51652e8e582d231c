"""Who a change is about, in the words of the user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.render.names import DATA_FIELDS
from stackyard.render.references import guest_kind, short_type, vm_id_in
from stackyard.sources.hypervisor.words import KIND_WORDS, identify_object, name_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.engine.changes import Change

__all__ = [
    "CLUSTER",
    "FILES",
    "KINDS",
    "data_files",
    "describe",
    "identity_in",
    "identity_of",
    "is_guest",
    "is_proxmox",
    "is_snippet",
    "name_in",
    "name_of",
    "node_of",
    "owner_of",
    "scope_of_rules",
    "short_kind",
    "short_type",
    "vm_id_of",
    "volume_of",
]

# What users call the resources that stackyard renders, the older names of the provider included.
KINDS = {
    **KIND_WORDS,
    "vm": "VM",
    "vm2": "VM",
    "cloned_vm": "VM",
    "container": "container",
    "download_file": "file",
    "file": "file",
    "sdn_applier": "SDN applier",
    "haresource": "high availability of",
    "harule": "affinity rule",
    "firewall_options": "firewall options",
    "firewall_rules": "firewall rules",
    "firewall_alias": "firewall alias",
    "firewall_ipset": "IP set",
    "replication": "replication",
    "token": "token",
    "token_role": "role of the token",
    "password": "password of",
}
FILES = ("file", "download_file")
# Whose the firewall is that is of no node and no guest.
CLUSTER = "cluster"
_DATA_FILES = tuple(f"{field}_file_id" for field in DATA_FIELDS)


def short_kind(change: Change) -> str:
    """Return the type of what a change is about, without the provider's prefix."""
    return short_type(change.kind)


def describe(change: Change) -> str:
    """Return what a change is about, as `VM web (100 on pve1)`."""
    if not is_proxmox(change):
        return change.address
    kind = short_kind(change)
    word = KINDS.get(kind, change.kind)
    if kind in KIND_WORDS and not name_object(kind, change.before or change.after or {}):
        # There is one of it in a cluster.
        return word
    about = f"{word} {name_of(change)}"
    facts = [str(fact) for fact in (vm_id_of(change), node_of(change)) if fact is not None]
    return f"{about} ({' on '.join(facts)})" if is_guest(change) and facts else about


def is_guest(change: Change) -> bool:
    """Return whether a change is about a guest."""
    return bool(guest_kind(change.kind))


def name_of(change: Change) -> str:
    """Return the name that the user gives when permitting something.

    Objects of Proxmox have one of their own; anything else has its address, as a label says little among
    modules, `count` and `for_each`.
    """
    if not is_proxmox(change):
        return change.address
    return name_in(short_kind(change), change.before or change.after or {}) or change.name


def is_proxmox(change: Change) -> bool:
    """Return whether a change is about an object of Proxmox."""
    return short_kind(change) != change.kind


def name_in(kind: str, values: Mapping[str, Any]) -> str:
    """Return what a resource is called, from its type and values; empty where they do not say."""
    found: Any = None
    if kind == "container":
        found = (_first(values.get("initialization")) or {}).get("hostname")
    elif kind in ("vm", "vm2", "cloned_vm"):
        found = values.get("name")
    elif kind in ("file", "download_file"):
        found = values.get("file_name")
    elif kind.startswith("firewall_") and (named := _name_firewall(kind, values)):
        found = named
    elif kind in KIND_WORDS:
        found = name_object(kind, values)
    elif kind == "haresource":
        found = values.get("resource_id")
    elif kind.startswith("sdn_") or kind == "harule":
        found = values.get("id")
    return found if isinstance(found, str) else ""


def _name_firewall(kind: str, values: Mapping[str, Any]) -> str:
    """Return the name of a part of a guest's firewall, `100/rules`; empty for that of others."""
    owner = _owner_in(values)
    return "" if owner is None else f"{owner}/{values.get('name') or kind.removeprefix('firewall_')}"


def _owner_in(values: Mapping[str, Any]) -> int | None:
    for name in ("vm_id", "container_id"):
        found = values.get(name)
        if isinstance(found, int) and not isinstance(found, bool):
            return found
    return None


def owner_of(change: Change) -> int | None:
    """Return the id of the guest whose firewall or replication a change is about; None of anything else."""
    kind, values = short_kind(change), change.before or change.after or {}
    if kind.startswith("firewall_"):
        return _owner_in(values)
    if kind == "replication":
        first = str(values.get("id") or "").partition("-")[0]
        return int(first) if first.isdecimal() else None
    return None


def identity_of(change: Change) -> str:
    """Return what names an object that is no guest among all of its kind; empty where that is not known."""
    return identity_in(short_kind(change), change.after or {})


def identity_in(kind: str, values: Mapping[str, Any]) -> str:
    """Return the same from the type of a resource, without its prefix, and its values."""
    parts: tuple[Any, ...]
    if kind.startswith("firewall_"):
        own = scope_of_rules(values) if kind == "firewall_rules" else identify_object(kind, values)
        return _name_firewall(kind, values) or own
    if kind == "pool":
        parts = (values.get("pool_id"),)
    elif kind.startswith("network_linux_"):
        parts = (values.get("node_name"), values.get("name"))
    elif kind == "sdn_subnet":
        parts = (values.get("vnet"), values.get("cidr"))
    elif kind.startswith("sdn_zone_") or kind == "sdn_vnet" or kind == "replication":
        parts = (values.get("id"),)
    elif kind in ("haresource", "harule"):
        parts = (values.get("resource_id" if kind == "haresource" else "rule"),)
    else:
        return identify_object(kind, values)
    # A part that another resource will tell is a mark, and no text.
    texts = [part for part in parts if isinstance(part, str)]
    return ("/" if kind == "sdn_subnet" else ":").join(texts) if len(texts) == len(parts) else ""


def scope_of_rules(values: Mapping[str, Any]) -> str:
    """Return whose firewall rules are, that are not those of a guest: of the cluster, or of a node."""
    node = values.get("node_name")
    return CLUSTER if node is None else f"node/{node}" if isinstance(node, str) else ""


def is_snippet(change: Change) -> bool:
    """Return whether a change is about a file whose text is in the configuration."""
    return (
        is_proxmox(change)
        and short_kind(change) == "file"
        and bool((change.before or change.after or {}).get("source_raw"))
    )


def volume_of(change: Change) -> str | None:
    """Return the volume id of a snippet; one that does not exist yet gets it from its name."""
    values = change.before or change.after or {}
    if isinstance(values.get("id"), str):
        return str(values["id"])
    name = (_first(values.get("source_raw")) or {}).get("file_name")
    return f"{values.get('datastore_id')}:{values.get('content_type')}/{name}" if name else None


def data_files(values: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the volume ids of the cloud-init data that a guest reads, by attribute."""
    init = _first((values or {}).get("initialization")) or {}
    return {name: volume for name in _DATA_FILES if isinstance(volume := init.get(name), str) and volume}


def node_of(change: Change) -> str | None:
    """Return the node that a change is about."""
    found = (change.before or change.after or {}).get("node_name")
    return found if isinstance(found, str) else None


def vm_id_of(change: Change) -> int | None:
    """Return the vm id of a guest, as far as it is known."""
    for values in (change.before, change.after):
        if (found := vm_id_in(values or {})) is not None:
            return found
    return None


def _first(values: Any) -> Any:
    return values[0] if isinstance(values, list) and values else None
