"""What names what: for each kind of resource, the attributes that name something else, and what that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.desired.firewall_words import name_in
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["Use", "list_uses"]

Key = str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """That something is named.

    Attributes:
        kind: The kind of what is named.
        name: Its name.
        keys: Where it is named, as the resource calls its attributes.
        may_follow: Whether what is named may be made later: Proxmox takes the name of what is not there yet.
    """

    kind: str
    name: str
    keys: tuple[Key, ...]
    may_follow: bool = False


@dataclass(frozen=True, slots=True)
class _Row:
    """That an attribute of a kind of resource names something.

    Attributes:
        owner: The type of the resource, without the provider's prefix; how it begins, with `_` at its end.
        attribute: The attribute, with dots to those inside of it.
        read: Returns what a value names.
        default: The name that counts where there is none.
        may_follow: As `Use` has it.
    """

    owner: str
    attribute: str
    read: Callable[[str], Iterator[tuple[str, str]]]
    default: str = ""
    may_follow: bool = False


def _as(kind: str) -> Callable[[str], Iterator[tuple[str, str]]]:
    def read(value: str) -> Iterator[tuple[str, str]]:
        yield kind, value

    return read


def _in_address(value: str) -> Iterator[tuple[str, str]]:
    """Read a source or destination. The sets of the SDN are made by Proxmox."""
    found = name_in(value)
    if found is not None and found.scope in ("", "dc"):
        yield (IP_SET if found.is_set else ALIAS), found.name


def _in_user(value: str) -> Iterator[tuple[str, str]]:
    _, at, realm = value.rpartition("@")
    if at:
        yield REALM, realm


def _in_token(value: str) -> Iterator[tuple[str, str]]:
    yield USER, value.partition("!")[0]


def _in_job(value: str) -> Iterator[tuple[str, str]]:
    guest = value.partition("-")[0]
    if guest.isdecimal():
        yield GUEST, guest


# What a path of the access list names, by its beginning. Guests come and go, and keep no entry waiting.
_PATHS = {
    ("storage",): STORAGE,
    ("pool",): POOL,
    ("nodes",): NODE,
    ("access", "groups"): USER_GROUP,
    ("access", "realm"): REALM,
    ("mapping", "pci"): PCI,
    ("mapping", "usb"): USB,
    ("mapping", "dir"): DIRECTORY,
    ("sdn", "controllers"): CONTROLLER,
    ("sdn", "fabrics"): FABRIC,
    ("sdn", "zones"): ZONE,
}


def _in_path(value: str) -> Iterator[tuple[str, str]]:
    parts = tuple(value.strip("/").split("/"))
    for start, kind in _PATHS.items():
        if parts[: len(start)] == start and len(parts) > len(start):
            # A pool may be inside of others, whose names its own begins with.
            yield kind, "/".join(parts[1:]) if kind == POOL else parts[len(start)]
    # In the zone of the nodes' own bridges are no vnets.
    if parts[:2] == ("sdn", "zones") and len(parts) > 3 and parts[2] != "localnetwork":
        yield VNET, parts[3]


_TABLE: tuple[_Row, ...] = (
    _Row("acme_certificate", "account", _as(ACCOUNT), default="default"),
    _Row("acme_certificate", "domains.plugin", _as(PLUGIN)),
    *(
        row
        for owner in ("firewall_rules", GROUP)
        for row in (
            _Row(owner, "rule.security_group", _as(GROUP)),
            _Row(owner, "rule.source", _in_address),
            _Row(owner, "rule.dest", _in_address),
        )
    ),
    _Row(IP_SET, "cidr.name", _in_address),
    _Row("user", "groups", _as(USER_GROUP)),
    _Row("user", "user_id", _in_user),
    _Row("acl", "user_id", _as(USER)),
    _Row("acl", "group_id", _as(USER_GROUP)),
    _Row("acl", "token_id", _in_token),
    _Row("acl", "role_id", _as(ROLE)),
    _Row("acl", "path", _in_path, may_follow=True),
    _Row("backup_job", "storage", _as(STORAGE)),
    _Row("backup_job", "pool", _as(POOL)),
    _Row("backup_job", "node", _as(NODE)),
    _Row("replication", "id", _in_job),
    _Row("replication", "target", _as(NODE)),
    _Row("storage_", "nodes", _as(NODE)),
    _Row("hardware_mapping_", "map.node", _as(NODE)),
    _Row("sdn_zone_", "nodes", _as(NODE)),
    _Row("sdn_zone_", "exit_nodes", _as(NODE)),
    _Row("sdn_zone_", "controller", _as(CONTROLLER)),
    _Row("sdn_vnet", "zone", _as(ZONE)),
    _Row("sdn_subnet", "vnet", _as(VNET)),
    _Row("sdn_controller_", "fabric", _as(FABRIC)),
)
# Proxmox has these without anybody's doing.
_BUILT_IN = frozenset(
    {
        (PLUGIN, "standalone"),
        (IP_SET, "management"),
        (ALIAS, "local_network"),
        (USER, "root@pam"),
        (ZONE, "localnetwork"),
    }
)


def list_uses(kind: str, values: Mapping[str, Any]) -> Iterator[Use]:
    """Return everything that a resource names.

    Args:
        kind: Its type, without the provider's prefix.
        values: Its attributes.
    """
    for row in _TABLE:
        if row.owner != kind and not (row.owner.endswith("_") and kind.startswith(row.owner)):
            continue
        for value, keys in _find_values(values, row.attribute.split("."), ()):
            said = row.default if value is None else value
            for target, name in row.read(said) if said and isinstance(said, str) else ():
                if (target, name) not in _BUILT_IN:
                    yield Use(kind=target, name=name, keys=keys, may_follow=row.may_follow)


def _find_values(
    value: Any, parts: list[str], keys: tuple[Key, ...]
) -> Iterator[tuple[Any, tuple[Key, ...]]]:
    """Return the values of an attribute, with their places; lists on the way are gone through."""
    if isinstance(value, list | tuple | set | frozenset):
        for index, one in enumerate(value):
            yield from _find_values(one, parts, (*keys, index))
    elif not parts:
        yield value, keys
    elif hasattr(value, "get"):
        yield from _find_values(value.get(parts[0]), parts[1:], (*keys, parts[0]))
