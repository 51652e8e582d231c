"""Targets: found by kind and name, each with a state of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackyard.base.errors import UsageError
from stackyard.path.target import Resolved, Source, Target, find_target


@dataclass
class Some:
    """A source with names and nothing behind them."""

    kind: str
    known: tuple[str, ...]

    def names(self) -> Sequence[str]:
        return self.known

    def is_current(self) -> bool:
        return True

    def resolve(self, name: str, host: str | None) -> Resolved:
        raise AssertionError(f"{name} on {host} is not to be resolved here")

    def resolve_state(self, name: str, host: str | None) -> Resolved:
        raise AssertionError(f"{name} on {host} is not to be resolved here")


SOURCES: dict[str, Source] = {
    "env": Some("env", ("dev", "prod")),
    "manifest": Some("manifest", ("n1", "prod")),
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("env:dev", ("env", "dev")), ("dev", ("env", "dev")), ("n1", ("manifest", "n1"))],
)
def test_a_target_is_found_by_kind_and_name_or_by_a_name_that_is_the_only_one(
    text: str, expected: tuple[str, str]
) -> None:
    source, name = find_target(text, SOURCES)
    assert (source.kind, name) == expected


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("prod", "say `env:prod` or `manifest:prod`"),
        ("dve", "Did you mean `dev`?"),
        ("env:dve", "Did you mean `dev`?"),
        ("cluster:home", "there is `env:`, `manifest:`"),
        ("env:zzz", "There is `env:dev`, `env:prod`."),
        ("", "There is no target"),
    ],
)
def test_a_target_that_is_not_there_is_refused_with_what_is(text: str, part: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_target(text, SOURCES)
    assert part in caught.value.detail


def test_nothing_to_choose_from_points_at_the_folder() -> None:
    with pytest.raises(UsageError, match="right folder"):
        find_target("dev", {"env": Some("env", ())})


PARTS = st.text(min_size=1, max_size=12)


@given(PARTS, PARTS, PARTS, PARTS)
def test_no_two_targets_share_a_state(name: str, node: str, other_name: str, other_node: str) -> None:
    one = Target(kind="env", name=name, node=node)
    other = Target(kind="env", name=other_name, node=other_node)
    assert (one.state_name == other.state_name) is (one == other)
    assert one.state_name.count("/") == 2


def test_plain_names_are_their_own_state_names() -> None:
    assert Target(kind="env", name="dev", node="pve-1").state_name == "env/dev/pve-1"
