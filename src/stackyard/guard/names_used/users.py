"""Who names something: objects of hypervisors, the firewalls of guests, and the roles of tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.guard.declared import ALIAS, IP_SET
from stackyard.guard.facts import ApiRead
from stackyard.guard.names_used.things import same_name
from stackyard.guard.names_used.uses import Use, list_uses
from stackyard.render.names import label
from stackyard.render.objects import address_of_object
from stackyard.render.protection import FIREWALL_RULES, list_protection
from stackyard.render.references import short_type
from stackyard.sources.hypervisor.sections import CLUSTER, NODE
from stackyard.sources.hypervisor.words import KIND_WORDS, name_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.desired import ClusterObject, Desired, Guest

__all__ = ["ACL", "User", "field_in_file", "list_users", "name_user"]

ACL = ApiRead("/access/acl")
# What attributes are called in files, by the kind of resource.
_FILE_NAMES = {
    kind: {attribute: name for name, attribute in section.names.items()}
    for section in (*NODE, *CLUSTER)
    for kind in section.kinds.values()
}
_Field = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Something that names others.

    Attributes:
        address: The address of its resource; empty where no resource is behind it.
        label: What its place in the input is known by.
        who: What it is called.
        kind: The type of its resource, without the provider's prefix.
        values: Its attributes.
        node: The node that it belongs to; empty where that is the whole cluster.
        within: The field of the input that it is in.
        own: Kinds and names that it has itself.
    """

    address: str
    label: str
    who: str
    kind: str
    values: Mapping[str, Any]
    node: str = ""
    within: _Field = ()
    own: frozenset[tuple[str, str]] = field(default_factory=frozenset)

    def list_uses(self) -> Iterator[Use]:
        """Return what it names, each once, its own names left out."""
        seen = set(self.own)
        for use in list_uses(self.kind, self.values):
            what = (use.kind, same_name(use.kind, use.name))
            if what not in seen:
                seen.add(what)
                yield use

    def field_of(self, use: Use) -> _Field:
        """Return the field of the input that names something."""
        return (*self.within, *field_in_file(self.kind, use.keys, is_guest=bool(self.within)))


def field_in_file(kind: str, keys: _Field, *, is_guest: bool = False) -> _Field:
    """Return a field by the names that it has in a file."""
    names = {"rule": "rules"} if is_guest else _FILE_NAMES.get(kind, {})
    # The name of an entry is its key, and no attribute.
    return tuple(names.get(str(key), key) if isinstance(key, str) else key for key in keys)


def list_users(desired: Desired) -> Iterator[User]:
    """Return everything of a model that names something."""
    for one in desired.objects:
        yield _of_object(one)
    for guest in desired.guests:
        yield from _of_guest(guest)
    for grant in desired.credentials.grants:
        # As `path.credentials` calls the row of a plan.
        name = f'token_role["{grant.token} ({grant.role} on {grant.path})"]'
        values = {"path": grant.path, "role_id": grant.role, "token_id": grant.token}
        who = f"The ACL entry {name_object('acl', values)}"
        yield User(address="", label=name, who=who, kind="acl", values=values)


def name_user(one: ClusterObject) -> str:
    """Return what an object is called at the start of a sentence: `The user anna@pve`."""
    kind = short_type(one.key.type)
    name, node = name_object(kind, one.attributes), str(one.attributes.get("node_name") or "")
    about = f"The {KIND_WORDS.get(kind, kind)} {'' if name == node else name}".rstrip()
    return f"{about} of {node}" if node else about


def _of_object(one: ClusterObject) -> User:
    address = address_of_object(one.key)
    return User(
        address=address,
        label=address,
        who=name_user(one),
        kind=short_type(one.key.type),
        values=one.attributes,
        node=str(one.attributes.get("node_name") or ""),
    )


def _of_guest(guest: Guest) -> Iterator[User]:
    firewall = guest.firewall
    if firewall is None or not firewall.rules:
        return
    own = {(IP_SET, same_name(IP_SET, name)) for name in firewall.ipsets}
    own |= {(ALIAS, same_name(ALIAS, name)) for name in firewall.aliases}
    yield User(
        address=next(part.address for part in list_protection(guest) if part.type == FIREWALL_RULES),
        label=label(guest.key),
        who=f"The firewall of {guest.name}",
        kind="firewall_rules",
        values={"rule": [rule.model_dump() for rule in firewall.rules]},
        node=guest.node,
        within=("firewall",),
        own=frozenset(own),
    )
