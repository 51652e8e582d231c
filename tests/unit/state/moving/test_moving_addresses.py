"""Which place a user means."""

from __future__ import annotations

import pytest

from stackyard.base.errors import UsageError
from stackyard.state.moving import AddressKind, BackendAddress, parse_address


@pytest.mark.parametrize(
    ("text", "kind", "rest"),
    [
        ("state:prod/network", AddressKind.STORE, "prod/network"),
        ("./terraform.tfstate", AddressKind.FILE, "./terraform.tfstate"),
        ("terraform.tfstate", AddressKind.FILE, "terraform.tfstate"),
        ("file:odd", AddressKind.FILE, "odd"),
        ("a/b", AddressKind.FILE, "a/b"),
        ("https://host/states/a", AddressKind.HTTP, "https://host/states/a"),
        ("http://127.0.0.1:1/a", AddressKind.HTTP, "http://127.0.0.1:1/a"),
        ("s3://bucket/key?endpoint=http://h", AddressKind.S3, "s3://bucket/key?endpoint=http://h"),
    ],
)
def test_an_address_says_its_kind(text: str, kind: AddressKind, rest: str) -> None:
    assert parse_address(text) == BackendAddress(kind=kind, text=rest)


@pytest.mark.parametrize("text", ["prod", "", "ftp://host/x", "file:", "gs://bucket/key"])
def test_what_could_be_anything_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="state:NAME"):
        parse_address(text)


@pytest.mark.parametrize(
    ("text", "is_many"),
    [("state:", True), ("state:prod/", True), ("state:prod", False), ("./a/", False)],
)
def test_a_prefix_means_many_states(text: str, is_many: bool) -> None:
    assert parse_address(text).is_many is is_many
