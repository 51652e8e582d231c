"""Firewall rules in their order: the first that matches decides, so that a later one may never be reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.sources.hypervisor.checks.rule_traffic import CONDITIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.base.errors import Location
    from stackyard.sources.hypervisor.checks.rule_traffic import NamedAddresses

__all__ = ["PlacedRule", "TakenTraffic", "decides", "find_taken"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRule:
    """A rule that decides, and where it is: in the list itself, or in a group that the list includes."""

    rule: Mapping[str, Any]
    where: Location

    def __str__(self) -> str:
        said = [f"{key} {self.rule[key]}" for key in CONDITIONS if self.rule.get(key) is not None]
        return " ".join((self.rule["type"], self.rule["action"], *(said or ("everything",))))


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenTraffic:
    """That an earlier rule takes all traffic of a place in a list.

    Attributes:
        first: The earlier rule.
        is_decided_otherwise: Whether it does something else with that traffic.
    """

    first: PlacedRule
    is_decided_otherwise: bool

    def describe(self, where: Location, *, is_group: bool) -> str:
        """Return what is said of it at the place of the later rule."""
        what = "the rules of this group are" if is_group else "this one is"
        there = self.first.where
        place = f"of line {there.line}" if there.path == where.path else f"in {there}"
        return f"The rule {place} takes all traffic that {what} for: {self.first}."


def decides(rule: Mapping[str, Any]) -> bool:
    """Return whether a rule is complete and on."""
    return (
        rule.get("type") is not None and rule.get("action") is not None and rule.get("enabled") is not False
    )


def find_taken(
    mine: Sequence[PlacedRule], earlier: Sequence[PlacedRule], addresses: NamedAddresses
) -> TakenTraffic | None:
    """Return what takes all the traffic of a place in a list; None where something is left for it.

    Args:
        mine: What decides at that place: a rule, or those of a group.
        earlier: What decides before it.
        addresses: What aliases and sets stand for.
    """
    taken = [(one, _find_first(earlier, one, addresses)) for one in mine]
    pairs = [(one, first) for one, first in taken if first is not None]
    if not pairs or len(pairs) < len(taken):
        return None
    others = [pair for pair in pairs if pair[0].rule["action"].upper() != pair[1].rule["action"].upper()]
    _, first = (others or pairs)[0]
    return TakenTraffic(first=first, is_decided_otherwise=bool(others))


def _find_first(
    earlier: Sequence[PlacedRule], one: PlacedRule, addresses: NamedAddresses
) -> PlacedRule | None:
    """Return the first rule that takes all the traffic of another."""
    for first in earlier:
        if first.rule["type"] == one.rule["type"] and addresses.takes(first.rule, one.rule):
            return first
    return None
