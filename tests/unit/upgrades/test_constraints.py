from __future__ import annotations

import contextlib
import subprocess
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.engine import real_engine

from stackyard.base.documents.constraints import ConstraintError, parse_constraint
from stackyard.base.documents.versions import is_major_step
from stackyard.engine.version import Flavour, Version
from stackyard.sources.stacks.lock_file import describe_constraints
from stackyard.upgrades.versions import find_newer, newest, parse_versions

PUBLISHED = (
    "0.8.0 0.8.3 0.9.1 1.0.0 1.0.5 1.2.0 1.2.7 1.3.0-beta1 1.3.0-beta.2 1.10.0 2.0.0 2.1.0-rc1".split()
)
VALID = (
    "1.2",
    "1",
    "~> 1",
    "~>1.0",
    "~> 1.0.0",
    ">1.2",
    "<= 1.2",
    "= 1.3.0-beta1",
    "~> 1.3.0-beta1",
    ">= 1.3.0-beta1, < 1.4",
    "=1.0.0",
    " ~> 1.0 , != 1.10.0",
    "~> 0.8",
    "~> 0.8.0",
    "!= 2.0.0",
    "> 1.2.7",
    "~> 1.2.0, ~> 1.0",
    "01.0.0",
    ">= 1.0.0-alpha",
    "< 1.0.0, >= 0.8.1",
    "~> 3.0",
    ">= 1.0, ~> 1.0, != 1.0.0, > 0.9.1, < 2, <= 2.0, ~> 1.0, ~> 1.0.0",
    "!= 1.0.0, >= 1.0.0",
    "= 1.2.0, >= 1.2.0, <= 1.2.0, ~> 1.2.0, ~> 1.2",
    "!= 1.2.0, > 1.2.0, >= 1.2.0, ~> 1.2.0, ~> 1.2",
    "!= 1.2.0, < 1.2.0, <= 1.2.0",
    "~> 1.0, != 1.3.0-beta1, >= 1.0.0-alpha",
)
INVALID = ("1.*", "v1.0.0", "", " ", ">= 1.0 < 2.0", "=> 1.0", "1.0.0.0", "1.0.0,", ">v1.0", "1.0.x", "^1.0")

numbers = st.integers(0, 30)
versions = st.builds(Version, numbers, numbers, numbers)
operators = st.sampled_from(["", "=", "!=", ">", ">=", "<", "<=", "~>"])
gaps = st.sampled_from(["", " ", "  "])


@st.composite
def constraint_texts(draw: st.DrawFn) -> str:
    terms = []
    for _ in range(draw(st.integers(1, 4))):
        width = draw(st.integers(1, 3))
        version = ".".join(str(draw(numbers)) for _ in range(width))
        terms.append(f"{draw(gaps)}{draw(operators)}{draw(gaps)}{version}{draw(gaps)}")
    return ",".join(terms)


def test_the_newest_allowed_version_is_the_one_that_opentofu_selects(tmp_path: Path) -> None:
    engine = real_engine(Flavour.TOFU)
    lines = []
    for number, text in enumerate(VALID):
        folder = tmp_path / "mirror/versions.test/acme" / f"p{number}"
        folder.mkdir(parents=True)
        for version in PUBLISHED:
            archive = folder / f"terraform-provider-p{number}_{version}_linux_amd64.zip"
            with zipfile.ZipFile(archive, "w") as packed:
                packed.writestr(f"terraform-provider-p{number}", version)
        lines.append(f'p{number} = {{ source = "versions.test/acme/p{number}", version = "{text}" }}')
    root = tmp_path / "root"
    root.mkdir()
    available = parse_versions(PUBLISHED)
    expected = {number: parse_constraint(text).newest(available) for number, text in enumerate(VALID)}
    kept = [line for number, line in enumerate(lines) if expected[number] is not None]
    assert len(lines) - len(kept) == 3
    for name, rows in (("root", kept), ("none", [one for one in lines if one not in kept])):
        (tmp_path / name).mkdir(exist_ok=True)
        body = "\n".join(rows)
        (tmp_path / name / "main.tf").write_text(f"terraform {{\nrequired_providers {{\n{body}\n}}\n}}\n")
    selected = init(engine.path, root, tmp_path)
    assert selected.returncode == 0, selected.stdout
    lock = (root / ".terraform.lock.hcl").read_text()
    for number, allowed in expected.items():
        if allowed is not None:
            block = lock.partition(f'"versions.test/acme/p{number}"')[2]
            assert block.partition('version     = "')[2].partition('"')[0] == str(allowed), VALID[number]
            described = describe_constraints([parse_constraint(VALID[number])])
            assert block.partition('constraints = "')[2].partition('"')[0] == described
    refused = init(engine.path, tmp_path / "none", tmp_path)
    assert refused.returncode != 0
    assert " ".join(refused.stdout.split()).count("no available releases match") == 3


def init(program: Path, folder: Path, place: Path) -> subprocess.CompletedProcess[str]:
    settings = place / "tofurc"
    settings.write_text(
        f'provider_installation {{\n filesystem_mirror {{\n path = "{place}/mirror"\n }}\n}}\n'
    )
    return subprocess.run(
        [program, "init", "-no-color"],
        cwd=folder,
        env={"TF_CLI_CONFIG_FILE": str(settings), "CHECKPOINT_DISABLE": "1", "HOME": str(place)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.parametrize("text", INVALID)
def test_a_text_that_opentofu_refuses_is_no_constraint(text: str) -> None:
    with pytest.raises(ConstraintError):
        parse_constraint(text)


@settings(max_examples=50)
@given(st.text(max_size=60))
def test_any_text_is_a_constraint_or_an_error(text: str) -> None:
    with contextlib.suppress(ConstraintError):
        assert parse_constraint(text).text == text


@settings(max_examples=50)
@given(constraint_texts(), st.lists(versions, max_size=10))
def test_what_is_allowed_fits_every_term_alone(text: str, available: list[Version]) -> None:
    constraint = parse_constraint(text)
    for version in available:
        alone = all(parse_constraint(part).allows(version) for part in text.split(","))
        assert constraint.allows(version) == alone


@settings(max_examples=50)
@given(constraint_texts(), versions)
def test_a_raised_constraint_allows_the_version_and_keeps_every_other_character(
    text: str, version: Version
) -> None:
    constraint = parse_constraint(text)
    raised = constraint.raise_to(version)
    if raised is None:
        return
    again = parse_constraint(raised)
    assert again.allows(version)
    assert [one.operator for one in again.terms] == [one.operator for one in constraint.terms]
    assert [one.width for one in again.terms if one.operator != "="] == [
        one.width for one in constraint.terms if one.operator != "="
    ]
    assert all(new.version >= old.version for old, new in zip(constraint.terms, again.terms, strict=True))
    assert again.raise_to(version) == raised


@pytest.mark.parametrize(
    ("text", "version", "raised"),
    [
        ("~> 1.2", "1.9.3", "~> 1.9"),
        ("~>  1.2.0", "1.9.3", "~>  1.9.3"),
        ("~> 1", "1.9.3", "~> 1"),
        ("1.2.3", "1.9.3", "1.9.3"),
        ("= 1.2", "1.9.3", "= 1.9.3"),
        ("~> 1.2, != 1.4.0", "1.9.3", "~> 1.9, != 1.4.0"),
        ("~> 1.2, < 1.5", "1.9.3", None),
        (">= 1.2", "1.9.3", ">= 1.2"),
        ("~> 2.0", "1.9.3", None),
        ("~> 5.1", "6.0.2", "~> 6.0"),
    ],
)
def test_raising_keeps_the_form(text: str, version: str, raised: str | None) -> None:
    assert parse_constraint(text).raise_to(Version.parse(version)) == raised


def test_before_1_0_a_minor_step_is_a_major_one() -> None:
    found = find_newer(Version.parse("0.8.0"), parse_versions(PUBLISHED))
    assert (str(found.patch), found.minor, str(found.major)) == ("0.8.3", None, "2.0.0")
    assert is_major_step(Version.parse("0.8.0"), Version.parse("0.9.0"))
    assert not is_major_step(Version.parse("1.8.0"), Version.parse("1.9.0"))


def test_prereleases_count_only_for_a_prerelease() -> None:
    available = parse_versions(PUBLISHED)
    assert str(find_newer(Version.parse("1.2.0"), available).minor) == "1.10.0"
    assert (
        str(find_newer(Version.parse("1.3.0-beta.1"), parse_versions(["1.3.0-beta.2"])).patch)
        == "1.3.0-beta.2"
    )
    assert find_newer(Version.parse("2.0.0"), available).minor is None
    assert str(newest(available)) == "2.0.0"


def test_hostile_version_lists_are_data() -> None:
    assert parse_versions(["1.0.0", None, 3, {"a": 1}, "latest", "1.0.0\x1b[2J", "9" * 99, "v1.0.0"]) == (
        Version(1, 0, 0),
    )
