"""The rules of a guest in their order: one whose traffic an earlier rule takes never takes effect."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stackyard.sources.hypervisor.checks.firewall import NEVER_MATCHES, REPEATED, list_in_group
from stackyard.sources.hypervisor.checks.rule_order import PlacedRule, decides, find_taken
from stackyard.sources.hypervisor.checks.rule_traffic import NamedAddresses
from stackyard.sources.hypervisor.files import HypervisorFile
from stackyard.sources.site.damaged import is_lost

if TYPE_CHECKING:
    from stackyard.base.diagnostics import Diagnostics
    from stackyard.desired import Firewall
    from stackyard.sources.site.layers import GuestEntry
    from stackyard.sources.site.load import Site

__all__ = ["check_rule_order"]


def check_rule_order(site: Site, entry: GuestEntry, firewall: Firewall, found: Diagnostics) -> None:
    """Report rules that are never reached.

    Args:
        site: The site, whose files of `hypervisors/` have security groups, aliases and IP sets.
        entry: The guest as it is written.
        firewall: Its firewall as it is built.
        found: Takes the findings.
    """
    if len(firewall.rules) < 2:
        return
    files = [
        HypervisorFile.of(name, one.places, one.model, functools.partial(is_lost, one.places))
        for name, one in site.hypervisors.items()
    ]
    addresses = _join(NamedAddresses.of(files), firewall)
    earlier: list[PlacedRule] = []
    for place, model in enumerate(firewall.rules):
        rule = model.model_dump(exclude_none=True)
        where = entry.place(("firewall", "rules", place), ("firewall", "rules"))
        is_group = model.security_group is not None
        own = [PlacedRule(rule=rule, where=where)] if decides(rule) else []
        mine = list_in_group(files, rule) if is_group else own
        taken = find_taken(mine, earlier, addresses)
        if taken is not None:
            kind = NEVER_MATCHES if taken.is_decided_otherwise else REPEATED
            found.add(kind, taken.describe(where, is_group=is_group), where, also=(taken.first.where,))
        earlier += mine


def _join(shared: NamedAddresses, firewall: Firewall) -> NamedAddresses:
    """Return what names stand for in the rules of a guest; one that the cluster has too is not known."""
    aliases = {name.lower(): one.cidr for name, one in firewall.aliases.items()}
    sets = {
        name.lower(): [(entry.name, entry.nomatch) for entry in one.entries]
        for name, one in firewall.ipsets.items()
    }
    both = {*(aliases.keys() & shared.aliases.keys()), *(sets.keys() & shared.sets.keys())}
    return NamedAddresses(
        {name: one for name, one in {**shared.aliases, **aliases}.items() if name not in both},
        {name: one for name, one in {**shared.sets, **sets}.items() if name not in both},
    )
