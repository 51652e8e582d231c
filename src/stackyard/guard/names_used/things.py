"""What can be named: how it is called, where Proxmox lists it, and who sees it there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.guard.declared import (
    ACCOUNT,
    ALIAS,
    CONTROLLER,
    DIRECTORY,
    FABRIC,
    GROUP,
    GUEST,
    IP_SET,
    NODE,
    PCI,
    PLUGIN,
    POOL,
    REALM,
    ROLE,
    STORAGE,
    USB,
    USER,
    USER_GROUP,
    VNET,
    ZONE,
)
from stackyard.guard.facts import ApiRead, rights_on
from stackyard.render.references import short_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.desired import Desired
    from stackyard.guard.facts import Facts

__all__ = ["THINGS", "Thing", "ask_names", "is_seen", "list_made", "list_there", "same_name"]

_MAPPING = ("Mapping.Audit", "Mapping.Modify", "Mapping.Use")
_SDN = ("SDN.Audit", "SDN.Allocate")
_USERS = ("User.Modify", "Sys.Audit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """A kind of thing that others name.

    Attributes:
        word: What it is called.
        path: Where Proxmox lists it; empty where the list of the cluster has it.
        key: The key of its name there.
        seen_on: The path whose privileges show it, with `{}` for its name; empty where everyone sees all.
        seen_by: The privileges that show it, one of which is enough.
        ignores_case: Whether Proxmox takes its name in capitals, too.
        types: How the types of its resources begin, without the provider's prefix.
    """

    word: str
    path: str = ""
    key: str = "name"
    seen_on: str = ""
    seen_by: tuple[str, ...] = ()
    ignores_case: bool = False
    types: tuple[str, ...] = ()


# The lists of the firewall and of ACME are refused as a whole to those who may not see them.
THINGS: Mapping[str, Thing] = {
    ACCOUNT: Thing(word="ACME account", path="/cluster/acme/account", types=(ACCOUNT,)),
    PLUGIN: Thing(word="ACME plugin", path="/cluster/acme/plugins", key="plugin", types=(PLUGIN,)),
    GROUP: Thing(word="security group", path="/cluster/firewall/groups", key="group", types=(GROUP,)),
    IP_SET: Thing(word="IP set", path="/cluster/firewall/ipset", ignores_case=True, types=(IP_SET,)),
    ALIAS: Thing(word="alias", path="/cluster/firewall/aliases", ignores_case=True, types=(ALIAS,)),
    STORAGE: Thing(
        word="storage",
        path="/storage",
        key="storage",
        seen_on="/storage/{}",
        seen_by=("Datastore.Audit", "Datastore.AllocateSpace"),
        types=("storage_",),
    ),
    POOL: Thing(
        word="pool", path="/pools", key="poolid", seen_on="/pool/{}", seen_by=("Pool.Audit",), types=("pool",)
    ),
    ROLE: Thing(word="role", path="/access/roles", key="roleid", types=("role",)),
    REALM: Thing(word="realm", path="/access/domains", key="realm", types=("realm_",)),
    USER: Thing(
        word="user",
        path="/access/users",
        key="userid",
        seen_on="/access/groups",
        seen_by=_USERS,
        types=("user",),
    ),
    USER_GROUP: Thing(
        word="group",
        path="/access/groups",
        key="groupid",
        seen_on="/access/groups/{}",
        seen_by=(*_USERS, "Group.Allocate"),
        types=("group",),
    ),
    PCI: Thing(
        word="PCI mapping",
        path="/cluster/mapping/pci",
        key="id",
        seen_on="/mapping/pci/{}",
        seen_by=_MAPPING,
        types=("hardware_mapping_pci",),
    ),
    USB: Thing(
        word="USB mapping",
        path="/cluster/mapping/usb",
        key="id",
        seen_on="/mapping/usb/{}",
        seen_by=_MAPPING,
        types=("hardware_mapping_usb",),
    ),
    DIRECTORY: Thing(
        word="directory mapping",
        path="/cluster/mapping/dir",
        key="id",
        seen_on="/mapping/dir/{}",
        seen_by=_MAPPING,
        types=("hardware_mapping_dir",),
    ),
    ZONE: Thing(
        word="SDN zone",
        path="/cluster/sdn/zones",
        key="zone",
        seen_on="/sdn/zones/{}",
        seen_by=_SDN,
        types=("sdn_zone_",),
    ),
    VNET: Thing(
        word="SDN vnet",
        path="/cluster/sdn/vnets",
        key="vnet",
        seen_on="/sdn/zones",
        seen_by=_SDN,
        types=("sdn_vnet",),
    ),
    CONTROLLER: Thing(
        word="SDN controller",
        path="/cluster/sdn/controllers",
        key="controller",
        seen_on="/sdn/controllers/{}",
        seen_by=_SDN,
        types=("sdn_controller_",),
    ),
    FABRIC: Thing(
        word="SDN fabric",
        path="/cluster/sdn/fabrics/fabric",
        key="id",
        seen_on="/sdn/fabrics/{}",
        seen_by=_SDN,
        types=("sdn_fabric_openfabric", "sdn_fabric_ospf"),
    ),
    NODE: Thing(word="node"),
    GUEST: Thing(word="guest", seen_on="/vms/{}", seen_by=("VM.Audit",)),
}


def same_name(kind: str, name: str) -> str:
    """Return a name in the form in which two of a kind are compared."""
    return name.lower() if THINGS[kind].ignores_case else name


def ask_names(kind: str, name: str) -> Iterator[ApiRead]:
    """Ask for the list of a kind, and for whether the token would see a name in it."""
    thing = THINGS[kind]
    if thing.path:
        yield ApiRead(thing.path)
    if thing.seen_on:
        yield from rights_on(thing.seen_on.format(name))


def list_there(kind: str, facts: Facts) -> list[str] | None:
    """Return the names of a kind that the cluster has; None where it does not tell."""
    if kind == NODE:
        return sorted(node.name for node in facts.cluster.nodes)
    if kind == GUEST:
        return [str(vm_id) for vm_id in sorted(guest.vm_id for guest in facts.cluster.guests)]
    thing = THINGS[kind]
    question = ApiRead(thing.path)
    if not isinstance(facts.answers.get(question), list):
        return None
    return sorted(str(row.get(thing.key)) for row in facts.rows(question))


def is_seen(kind: str, name: str, facts: Facts) -> bool:
    """Return whether the token is known to see a name in its list, if it is there."""
    thing = THINGS[kind]
    return not thing.seen_on or facts.may(thing.seen_on.format(name), *thing.seen_by) is True


def list_made(desired: Desired) -> frozenset[tuple[str, str]]:
    """Return kind and name of everything that a model makes itself."""
    made = {(GUEST, str(guest.vm_id)) for guest in desired.guests if guest.vm_id is not None}
    made |= {(POOL, pool.name) for pool in desired.pools}
    made |= {(ZONE, zone.name) for zone in desired.zones}
    made |= {(VNET, vnet.name) for vnet in desired.vnets}
    for one in desired.objects:
        kind = short_type(one.key.type)
        made |= {
            (known, same_name(known, one.key.name))
            for known, thing in THINGS.items()
            if any(kind == type_ or (type_.endswith("_") and kind.startswith(type_)) for type_ in thing.types)
        }
    return frozenset(made)
