from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.engine import scripted_engine

from stackyard.base import process
from stackyard.engine.version import (
    Engine,
    EngineBrokenError,
    EngineTooOldError,
    Flavour,
    Version,
    probe_version,
    require_supported,
)


def probe(tmp_path: Path, script: str, timeout_s: float = 60.0) -> tuple[Flavour, Version]:
    return asyncio.run(probe_version(scripted_engine(tmp_path, script).path, timeout_s))


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("1.12.6", Version(1, 12, 6)),
        ("v1.11.0", Version(1, 11, 0)),
        (" 1.12.0-rc1\n", Version(1, 12, 0, "rc1")),
        ("1.12.0-beta.2+build.7", Version(1, 12, 0, "beta.2")),
    ],
)
def test_a_version_is_read_from_its_text(text: str, version: Version) -> None:
    assert Version.parse(text) == version


@pytest.mark.parametrize("text", ["", "1.12", "latest", "1.12.6.1", "1.12.x", "-1.2.3", "1.2.3-"])
def test_text_that_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a version"):
        Version.parse(text)


def test_versions_sort_as_semantic_versions_do() -> None:
    ordered = [
        "1.9.9",
        "1.10.0-alpha",
        "1.10.0-rc.2",
        "1.10.0-rc.10",
        "1.10.0-rc.x",
        "1.10.0",
        "1.10.1",
        "2.0.0",
    ]
    assert sorted(map(Version.parse, reversed(ordered))) == list(map(Version.parse, ordered))
    assert str(Version.parse("v1.10.0-rc.2")) == "1.10.0-rc.2"


@pytest.mark.parametrize(
    ("flavour", "version", "is_supported"),
    [
        (Flavour.TOFU, "1.10.0", True),
        (Flavour.TOFU, "1.9.4", False),
        (Flavour.TOFU, "1.10.0-rc1", False),
        (Flavour.TERRAFORM, "1.11.0", True),
        (Flavour.TERRAFORM, "1.10.5", False),
    ],
)
def test_an_engine_that_is_too_old_is_refused_by_name(
    flavour: Flavour, version: str, is_supported: bool
) -> None:
    engine = Engine(path=Path("/opt/engine"), flavour=flavour, version=Version.parse(version))
    if is_supported:
        assert require_supported(engine) is engine
        return
    with pytest.raises(EngineTooOldError, match=f"{flavour.label} {version} .*/opt/engine"):
        require_supported(engine)


def test_the_two_engines_are_told_apart(tmp_path: Path) -> None:
    tofu = """echo '{"terraform_version": "1.10.1", "provider_selections": {}}'"""
    assert probe(tmp_path, tofu) == (Flavour.TOFU, Version(1, 10, 1))
    terraform = """echo '{"terraform_version": "1.11.4", "terraform_outdated": true}'"""
    assert probe(tmp_path, terraform) == (Flavour.TERRAFORM, Version(1, 11, 4))


@pytest.mark.parametrize(
    "script",
    [
        "echo 'cannot start' >&2; exit 3",
        "echo garbage",
        "true",
        """printf '{"terraform_version": "1.1'""",
        "echo '[]'",
        "echo '{}'",
        """echo '{"terraform_version": 7}'""",
        """echo '{"terraform_version": "newest"}'""",
        "kill -SEGV $$",
    ],
)
def test_an_engine_that_answers_nonsense_is_broken(tmp_path: Path, script: str) -> None:
    with pytest.raises(EngineBrokenError, match="version -json"):
        probe(tmp_path, script)


def test_an_engine_that_answers_without_end_is_broken(tmp_path: Path) -> None:
    with pytest.raises(EngineBrokenError, match="wrote more than 1 MiB to its standard output"):
        probe(tmp_path, "exec yes")


def test_an_engine_that_hangs_is_broken(tmp_path: Path) -> None:
    with pytest.raises(EngineBrokenError, match=r"did not end within 0\.2 s"):
        probe(tmp_path, "exec sleep 600", timeout_s=0.2)


def test_a_file_that_is_no_program_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "tofu"
    path.write_bytes(b"\x7fELF not really")
    path.chmod(0o755)
    with pytest.raises(EngineBrokenError, match="cannot be started"):
        asyncio.run(probe_version(path, 60.0))


def test_an_engine_that_is_not_there_is_missing(tmp_path: Path) -> None:
    with pytest.raises(process.ProgramMissingError):
        asyncio.run(probe_version(tmp_path / "tofu", 60.0))
