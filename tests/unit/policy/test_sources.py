"""Versions and constraints mean what OpenTofu takes them for."""

from __future__ import annotations

import pytest

from stackyard.base.documents.constraints import read_constraint, satisfies
from stackyard.base.documents.versions import Version, major_line
from stackyard.policy.sources import SourceKind, classify


@pytest.mark.parametrize(
    ("version", "constraint", "fits"),
    [
        ("3.6.2", "~> 3.6", True),
        ("3.7.0", "~> 3.6", True),
        ("4.0.0", "~> 3.6", False),
        ("3.5.9", "~> 3.6", False),
        ("3.6.9", "~> 3.6.2", True),
        ("3.7.0", "~> 3.6.2", False),
        ("2.9.0", "~> 2", True),
        ("3.0.0", "~> 2", False),
        ("1.2.3", "1.2.3", True),
        ("1.2.3", "= 1.2.4", False),
        ("1.2.3", ">= 1.0, < 2.0, != 1.2.3", False),
        ("1.2.4", ">= 1.0, < 2.0, != 1.2.3", True),
        ("2.0.0-beta1", ">= 1.0", False),
        ("2.0.0-beta1", "2.0.0-beta1", True),
        ("nothing", ">= 1.0", False),
        ("1.0.0", "newest", False),
    ],
)
def test_a_version_fits_a_constraint(version: str, constraint: str, fits: bool) -> None:
    assert satisfies(version, constraint) is fits


def test_a_constraint_that_is_none_is_not_read() -> None:
    assert read_constraint("") is None
    assert read_constraint("1.2.3.4") is None
    assert read_constraint("~> 1.2, ") is None


def test_before_version_one_the_minor_version_is_the_major_one() -> None:
    lines = [major_line(Version.parse(text)) for text in ("0.66.0", "0.66.1", "0.70.0", "1.0.0", "2.1.0")]
    assert lines[0] == lines[1] < lines[2] < lines[3] < lines[4]


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("./x", SourceKind.LOCAL),
        ("..", SourceKind.LOCAL),
        ("/x", SourceKind.LOCAL),
        ("hashicorp/consul/aws", SourceKind.REGISTRY),
        ("app.example.org/org/vpc/aws", SourceKind.REGISTRY),
        ("localhost:8443/org/vpc/aws", SourceKind.REGISTRY),
        ("hashicorp/consul/aws//modules/x", SourceKind.REGISTRY),
        ("github.com/hashicorp/example", SourceKind.GIT),
        ("bitbucket.org/hashicorp/consul/aws", SourceKind.GIT),
        ("git@github.com:hashicorp/example.git", SourceKind.GIT),
        ("hg::http://example.org/vpc.hg", SourceKind.GIT),
        ("https://example.org/vpc.tar.gz//x?checksum=1", SourceKind.ARCHIVE),
        ("https://example.org/vpc?archive=zip", SourceKind.ARCHIVE),
        ("https://example.org/vpc", SourceKind.HTTP),
        ("s3::https://s3-eu-west-1.amazonaws.com/bucket/vpc.zip", SourceKind.BUCKET),
        ("bucket.s3.amazonaws.com/vpc", SourceKind.BUCKET),
        ("gcs::https://www.googleapis.com/storage/v1/modules/foo.zip", SourceKind.BUCKET),
        ("modules/x", SourceKind.OTHER),
        ("", SourceKind.OTHER),
        ("example.org/org/vpc", SourceKind.OTHER),
    ],
)
def test_a_source_is_told_apart(source: str, kind: SourceKind) -> None:
    assert classify(source) is kind
