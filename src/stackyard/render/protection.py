"""What protects a guest as resources: its firewall, and the copies of its disks on other nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.desired import Container
from stackyard.render.names import label
from stackyard.render.references import address_of
from stackyard.render.terms import Expression, Json, blocks, expression, normalize_number, present

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.desired import Desired, Firewall, FirewallRule, Guest, Replication

__all__ = [
    "FIREWALL_ALIAS",
    "FIREWALL_OPTIONS",
    "FIREWALL_RULES",
    "FIREWALL_SET",
    "REPLICATION",
    "ProtectionResource",
    "list_protection",
    "protection_resources",
]

FIREWALL_OPTIONS = "proxmox_virtual_environment_firewall_options"
FIREWALL_RULES = "proxmox_virtual_environment_firewall_rules"
FIREWALL_ALIAS = "proxmox_virtual_environment_firewall_alias"
FIREWALL_SET = "proxmox_virtual_environment_firewall_ipset"
REPLICATION = "proxmox_replication"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectionResource:
    """A resource that belongs to a guest.

    Attributes:
        type: Its type.
        label: Its name in the configuration.
        arguments: What it says.
        import_id: What the providers import it as, for a guest whose id is known.
    """

    type: str
    label: str
    arguments: dict[str, Json]
    import_id: str

    @property
    def address(self) -> str:
        """Its address."""
        return f"{self.type}.{self.label}"


def protection_resources(desired: Desired) -> dict[str, dict[str, Json]]:
    """Return the resources of all guests by type and label."""
    resources: dict[str, dict[str, Json]] = {}
    for guest in desired.guests:
        for one in list_protection(guest):
            resources.setdefault(one.type, {})[one.label] = one.arguments
    return resources


def list_protection(guest: Guest) -> Iterator[ProtectionResource]:
    """Return the firewall and the replications of a guest as resources; none of one without."""
    if guest.firewall is not None:
        yield from _firewall(guest, guest.firewall)
    before: tuple[str, ...] = ()
    for place, job in enumerate(guest.replication):
        made = _replication(guest, job, place if job.number is None else job.number, before)
        # One after the other: Proxmox takes no second job to a node before the first is gone.
        before = (made.address,)
        yield made


def _firewall(guest: Guest, firewall: Firewall) -> Iterator[ProtectionResource]:
    own = label(guest.key)
    kind = "container" if isinstance(guest, Container) else "vm"
    import_id = f"{kind}/{guest.node}/{guest.vm_id}"
    aliases = {name: label(f"{guest.key}/{name}") for name in firewall.aliases}
    sets = {name: label(f"{guest.key}/{name}") for name in firewall.ipsets}
    for name, alias in firewall.aliases.items():
        said: dict[str, Json] = {"name": name, "cidr": alias.cidr, "comment": alias.comment}
        yield _of_guest(guest, FIREWALL_ALIAS, aliases[name], said, f"{import_id}/{name}")
    named = tuple(f"{FIREWALL_ALIAS}.{one}" for one in aliases.values())
    for name, ipset in firewall.ipsets.items():
        entries = [
            {"name": entry.name, "nomatch": entry.nomatch or None, "comment": entry.comment}
            for entry in ipset.entries
        ]
        said = {"name": name, "comment": ipset.comment, "cidr": blocks(*entries)}
        yield _of_guest(guest, FIREWALL_SET, sets[name], said, f"{import_id}/{name}", named)
    named += tuple(f"{FIREWALL_SET}.{one}" for one in sets.values())
    before = named
    if firewall.rules:
        said = {"rule": blocks(*map(_rule, firewall.rules))}
        yield _of_guest(guest, FIREWALL_RULES, own, said, import_id, named)
        before += (f"{FIREWALL_RULES}.{own}",)
    # Last: what it lets in has to be there before it closes.
    yield _of_guest(guest, FIREWALL_OPTIONS, own, _options(guest, firewall), import_id, before)


def _of_guest(
    guest: Guest, type_: str, name: str, said: dict[str, Json], import_id: str, after: tuple[str, ...] = ()
) -> ProtectionResource:
    made = address_of(guest)
    whose = "container_id" if isinstance(guest, Container) else "vm_id"
    arguments = {
        **present(
            {
                "node_name": expression(f"{made}.node_name"),
                whose: _vm_id(guest),
                **said,
                "depends_on": after,
            }
        ),
        **_lifecycle(guest),
    }
    return ProtectionResource(type=type_, label=name, arguments=arguments, import_id=import_id)


def _vm_id(guest: Guest) -> int | Expression:
    """Return the id of a guest; the resource knows it where the model does not."""
    return expression(f"{address_of(guest)}.vm_id") if guest.vm_id is None else guest.vm_id


def _lifecycle(guest: Guest) -> dict[str, Json]:
    # Proxmox removes all of it with the guest, also when one with the same number is made in its place.
    return {"lifecycle": {"replace_triggered_by": [f"{address_of(guest)}.id"]}}


def _rule(rule: FirewallRule) -> dict[str, Json]:
    return rule.model_dump()


def _options(guest: Guest, firewall: Firewall) -> dict[str, Json]:
    options = firewall.options.model_dump()
    if options["dhcp"] is None:
        # Without this, the answers of a DHCP server are dropped with everything else that is not let in.
        options["dhcp"] = any(nic.ipv4 in (None, "dhcp") or nic.ipv6 == "dhcp" for nic in guest.nics)
    return options


def _replication(guest: Guest, job: Replication, number: int, after: tuple[str, ...]) -> ProtectionResource:
    arguments = {
        **present(
            {
                "id": Expression(f"{_vm_id(guest)}-{number}"),
                "type": "local",
                "target": job.target,
                "schedule": job.schedule,
                "rate": normalize_number(job.rate),
                "comment": job.comment,
                "disable": job.disable,
                "depends_on": (address_of(guest), *after),
            }
        ),
        **_lifecycle(guest),
    }
    name = f"{label(guest.key)}_{number}"
    import_id = f"{guest.vm_id}-{number}"
    return ProtectionResource(type=REPLICATION, label=name, arguments=arguments, import_id=import_id)
