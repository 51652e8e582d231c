"""What a user names behind the options that permit something."""

from __future__ import annotations

import sys

import pytest

from stackyard.cli.runs.plan_options import allowances, list_recreated_guests, repeat_with_permits
from stackyard.guard import Permit


def test_names_are_split_at_commas_and_addresses_are_kept_whole() -> None:
    address = 'module.web["a,b"].aws_instance.this[0]'
    named = allowances({"allow_destroy": (f"web, {address}", "db"), "allow_policy": ("owner,late",)})
    assert named.permits == {
        *(Permit(option="--allow-destroy", name=name) for name in ("web", address, "db")),
        *(Permit(option="--allow-policy", name=name) for name in ("owner", "late")),
    }
    assert not named.everything


def test_guests_to_recreate_are_split_at_commas() -> None:
    assert list_recreated_guests({"recreate": ("web, db", "", ",x")}) == {"web", "db", "x"}


def test_a_command_is_repeated_with_its_permits_before_what_goes_to_the_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["stackyard", "apply", "stack:a", "--", "-replace=x.y"])
    said = repeat_with_permits([Permit(option="--allow-destroy", name="x.y")])
    assert said is not None
    assert said.endswith("stackyard apply stack:a --allow-destroy x.y -- -replace=x.y")
