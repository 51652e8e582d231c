"""Hashes of passwords, against those of glibc."""

from __future__ import annotations

import pytest

from pvelab.world.access.sha256_crypt import hash_password, is_hashed, verify_password

# Made with crypt(3) of glibc 2.36.
KNOWN = {
    ("secret", "saltstri"): "$5$saltstri$pAwiIi4X98aWRH4NmLlUXCVL.abBb3/G4BU8hixC9D5",
    ("", "abc"): "$5$abc$bBHLwRRW2Li0XKaX13kz/g2fkDil4Jx46aNvd.48MS8",
    ("x" * 40, "ABCDEFGHIJKLMNOP"): "$5$ABCDEFGHIJKLMNOP$nbsaoQAnqB3kWX6wlKiyqoaeMI83qxfgmTQC/4.Rt34",
}


@pytest.mark.parametrize(("given", "expected"), KNOWN.items())
def test_hashes_are_those_of_glibc(given: tuple[str, str], expected: str) -> None:
    assert hash_password(*given) == expected


def test_a_password_fits_its_own_hash_and_no_other() -> None:
    first, second = hash_password("secret"), hash_password("secret")
    assert first != second
    assert verify_password("secret", first)
    assert not verify_password("Secret", first)
    assert not verify_password("secret", "secret")


@pytest.mark.parametrize(
    ("text", "hashed"), [("secret", False), ("$ecret", False), ("$5$abc$def", True), ("$6$abc$def", True)]
)
def test_what_is_hashed_already_is_seen_by_its_shape(text: str, hashed: bool) -> None:
    assert is_hashed(text) == hashed
