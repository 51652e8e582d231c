"""The next step from the rules that a list has to those that it should have.

Each step is one that leaves every rule in force which was and is to stay: a rule is changed where it is, or
moved, and goes only when all others are in place. Proxmox puts a new rule before all others. One that belongs
elsewhere is therefore created switched off, moved, and switched on where it belongs. A step depends on what
the list has and on nothing else, so that a lost answer or a killed run cannot lead to a second copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from stackyard.provider.resources.firewall.rules import FirewallRule

__all__ = ["Change", "Move", "Prepend", "Remove", "Step", "next_step"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepend:
    """Put rules before all others, in their order."""

    rules: tuple[FirewallRule, ...]
    switched_on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Turn the rule at a position into another."""

    position: int
    rule: FirewallRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Put the rule at a position before the one that is at another position now."""

    position: int
    before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Remove the rule at a position."""

    position: int


Step = Prepend | Change | Move | Remove


@dataclass(frozen=True, slots=True)
class _Slot:
    """A rule that is to be in the list and is not: the rule, and the position that it belongs at."""

    rule: FirewallRule
    position: int
    # The positions before which it can be: rows up to the next one that stays.
    end: int


def next_step(rows: Sequence[FirewallRule], wanted: Sequence[FirewallRule]) -> Step | None:
    """Return the next step; None when the list is as it should be."""
    pairs = _match([row.conditions for row in rows], [rule.conditions for rule in wanted])
    slots = list(_list_slots(pairs, wanted, len(rows)))
    kept = {position for position, _ in pairs}
    free = [position for position in range(len(rows)) if position not in kept]
    return (
        _move(rows, free, slots)
        or _change_free(free, slots)
        or _prepend(slots)
        # Only now is every rule at its place, so that one may be switched on.
        or _change_kept(rows, wanted, pairs)
        or (Remove(position=free[-1]) if free else None)
    )


def _move(rows: Sequence[FirewallRule], free: Sequence[int], slots: Sequence[_Slot]) -> Step | None:
    for slot in slots:
        for position in free:
            if rows[position].conditions == slot.rule.conditions:
                return Move(position=position, before=slot.position)
    return None


def _change_kept(
    rows: Sequence[FirewallRule], wanted: Sequence[FirewallRule], pairs: Sequence[tuple[int, int]]
) -> Step | None:
    for position, index in pairs:
        if rows[position].key != wanted[index].key:
            return Change(position=position, rule=wanted[index])
    return None


def _change_free(free: Sequence[int], slots: Sequence[_Slot]) -> Step | None:
    """Turn a rule that is not needed into one that belongs at its place."""
    for slot in slots:
        for position in free:
            if slot.position <= position < slot.end:
                return Change(position=position, rule=slot.rule)
    return None


def _prepend(slots: Sequence[_Slot]) -> Step | None:
    first = tuple(slot.rule for slot in slots if slot.position == 0)
    if first:
        return Prepend(rules=first, switched_on=True)
    return Prepend(rules=(slots[0].rule,), switched_on=False) if slots else None


def _list_slots(
    pairs: Sequence[tuple[int, int]], wanted: Sequence[FirewallRule], count: int
) -> Iterator[_Slot]:
    """Give the rules that no row stands for; `pairs` are in order."""
    start = first = 0
    for position, index in (*pairs, (count, len(wanted))):
        for rule in wanted[first:index]:
            yield _Slot(rule, start, position)
        start, first = position + 1, index + 1


def _match(rows: Sequence[Hashable], wanted: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return the longest run of positions and indexes that can stay as they are, one behind the other."""
    head = 0
    while head < min(len(rows), len(wanted)) and rows[head] == wanted[head]:
        head += 1
    tail = 0
    while tail < min(len(rows), len(wanted)) - head and rows[-1 - tail] == wanted[-1 - tail]:
        tail += 1
    middle = _match_middle(rows[head : len(rows) - tail], wanted[head : len(wanted) - tail])
    ends = [(len(rows) - tail + one, len(wanted) - tail + one) for one in range(tail)]
    return [(one, one) for one in range(head)] + [(a + head, b + head) for a, b in middle] + ends


def _match_middle(rows: Sequence[Hashable], wanted: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return the same for lists that differ at both ends: the longest common subsequence."""
    longest = [[0] * (len(wanted) + 1) for _ in range(len(rows) + 1)]
    for a in reversed(range(len(rows))):
        for b in reversed(range(len(wanted))):
            same = rows[a] == wanted[b]
            longest[a][b] = longest[a + 1][b + 1] + 1 if same else max(longest[a + 1][b], longest[a][b + 1])
    found: list[tuple[int, int]] = []
    a = b = 0
    while a < len(rows) and b < len(wanted):
        if rows[a] == wanted[b]:
            found.append((a, b))
            a, b = a + 1, b + 1
        elif longest[a + 1][b] >= longest[a][b + 1]:
            a += 1
        else:
            b += 1
    return found
