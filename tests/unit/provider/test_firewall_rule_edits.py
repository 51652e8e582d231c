"""The steps from one list of firewall rules to another: they end, and keep in force what stays."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from stackyard.provider.resources.firewall.rule_edits import Change, Move, Prepend, Step, next_step
from stackyard.provider.resources.firewall.rules import FirewallRule

Rules = list[FirewallRule]


def rule(port: int, *, enabled: bool = True, comment: str = "") -> FirewallRule:
    texts = {"proto": "tcp", "dport": str(port), **({"comment": comment} if comment else {})}
    return FirewallRule(type="in", action="ACCEPT", enabled=enabled, texts=texts)


def perform(rows: Rules, step: Step) -> Rules:
    """Return a list after a step, as Proxmox does it."""
    if isinstance(step, Prepend):
        made = [dataclasses.replace(one, enabled=one.enabled and step.switched_on) for one in step.rules]
        return [*made, *rows]
    if isinstance(step, Change):
        return [step.rule if at == step.position else row for at, row in enumerate(rows)]
    if isinstance(step, Move):
        moved: Rules = []
        for at, row in enumerate(rows):
            moved += [rows[step.position]] if at == step.before else []
            moved += [row] if at != step.position else []
        return moved if step.before < len(rows) else [*moved, rows[step.position]]
    return [row for at, row in enumerate(rows) if at != step.position]


def steps(rows: Rules, wanted: Rules) -> list[Rules]:
    """Return the list after each step."""
    seen = [rows]
    while step := next_step(seen[-1], wanted):
        seen.append(perform(seen[-1], step))
        assert len(seen) <= 3 * (len(rows) + len(wanted)) + 1
    return seen


def keys(rows: Rules) -> list[object]:
    return [row.key for row in rows]


some = st.builds(rule, st.integers(1, 6), enabled=st.booleans(), comment=st.sampled_from(["", "a", "b"]))
unlike = st.lists(some, max_size=6, unique_by=lambda one: one.conditions)


@given(st.lists(some, max_size=7), st.lists(some, max_size=7))
def test_the_steps_end_with_the_rules_that_are_wanted(rows: Rules, wanted: Rules) -> None:
    assert keys(steps(rows, wanted)[-1]) == keys(wanted)


@given(unlike, unlike)
def test_a_rule_that_was_in_force_and_stays_is_in_force_all_the_time(rows: Rules, wanted: Rules) -> None:
    stays = {row.conditions for row in rows if row.enabled} & {
        one.conditions for one in wanted if one.enabled
    }
    for seen in steps(rows, wanted):
        assert stays <= {row.conditions for row in seen if row.enabled}


@given(unlike, unlike)
def test_a_new_rule_is_never_in_force_before_one_that_it_belongs_behind(rows: Rules, wanted: Rules) -> None:
    place = {one.conditions: index for index, one in enumerate(wanted)}
    old = {row.conditions for row in rows}
    for seen in steps(rows, wanted):
        in_force = [row.conditions for row in seen if row.enabled and row.conditions in place]
        if any(one not in old for one in in_force):
            assert [place[one] for one in in_force] == sorted(place[one] for one in in_force)


def test_an_empty_list_is_filled_at_once_and_a_rule_in_between_takes_three_steps() -> None:
    assert len(steps([], [rule(1), rule(2), rule(3)])) == 2
    made = [keys(seen) for seen in steps([rule(1), rule(3)], [rule(1), rule(2), rule(3)])]
    off = rule(2, enabled=False)
    assert made == [
        keys([rule(1), rule(3)]),
        keys([off, rule(1), rule(3)]),
        keys([rule(1), off, rule(3)]),
        keys([rule(1), rule(2), rule(3)]),
    ]


def test_another_order_is_one_move_and_another_comment_one_change() -> None:
    assert len(steps([rule(1), rule(2), rule(3)], [rule(3), rule(1), rule(2)])) == 2
    assert len(steps([rule(1), rule(2)], [rule(1), rule(2, comment="new")])) == 2
    assert len(steps([rule(1), rule(2)], [rule(1), rule(9)])) == 2
