"""What a user names behind the options that permit something."""

from __future__ import annotations

from stackyard.cli.runs.target import allowances, list_recreated_guests
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
