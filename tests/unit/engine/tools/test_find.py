from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.support.programs import HANGS, LONG_S, engine_script, managed_copy, write_program

from stackyard.engine.tools.find import EngineMissingError, FoundEngine, find_engine
from stackyard.engine.tools.locations import FoundBy
from stackyard.engine.tools.probe import Health
from stackyard.engine.version import EngineBrokenError, EngineTooOldError, Flavour, Version

TOFU = engine_script("1.12.6")
TERRAFORM = engine_script("1.11.4", terraform=True)
OLD = engine_script("1.6.2")
OLD_TERRAFORM = engine_script("1.5.7", terraform=True)


def find(configured: Path | None = None, timeout_s: float = LONG_S) -> FoundEngine:
    return asyncio.run(find_engine(configured, timeout_s=timeout_s))


def test_the_order_is_configured_then_path_then_managed_then_terraform(
    path_folder: Path, cache: Path, tmp_path: Path
) -> None:
    terraform = write_program(path_folder / "terraform", TERRAFORM)
    found = find()
    assert (found.engine.path, found.engine.flavour, found.where_found) == (
        terraform,
        Flavour.TERRAFORM,
        FoundBy.PATH,
    )
    managed = managed_copy(cache, "1.12.6")
    assert (find().engine.path, find().where_found) == (managed, FoundBy.MANAGED)
    tofu = write_program(path_folder / "tofu", TOFU)
    assert (find().engine.path, find().where_found) == (tofu, FoundBy.PATH)
    configured = write_program(tmp_path / "mine", TOFU)
    assert (find(configured).engine.path, find(configured).where_found) == (configured, FoundBy.CONFIGURED)


def test_the_engine_has_its_version_as_numbers(path_folder: Path) -> None:
    write_program(path_folder / "tofu", TOFU)
    assert find().engine.version == Version(1, 12, 6)


def test_the_variable_names_an_engine_and_the_argument_wins_over_it(
    path_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(path_folder / "tofu", TOFU)
    by_variable = write_program(tmp_path / "by-variable", TOFU)
    by_argument = write_program(tmp_path / "by-argument", TOFU)
    monkeypatch.setenv("STACKYARD_TOFU", str(by_variable))
    assert find().engine.path == by_variable
    assert find(by_argument).engine.path == by_argument


def test_a_bare_name_in_the_variable_is_looked_up_on_path(
    path_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(path_folder / "tofu", TOFU)
    terraform = write_program(path_folder / "terraform", TERRAFORM)
    monkeypatch.setenv("STACKYARD_TOFU", "terraform")
    assert find().engine.path == terraform


def test_a_relative_path_is_relative_to_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured = write_program(tmp_path / "mine", TOFU)
    monkeypatch.chdir(tmp_path)
    assert find(Path("./mine")).engine.path == configured


@pytest.mark.parametrize("script", [OLD, "exit 7", "echo garbage", "echo '[1]'"])
def test_a_bad_one_on_path_is_passed_over_with_its_reason(
    script: str, path_folder: Path, cache: Path
) -> None:
    bad = write_program(path_folder / "tofu", script)
    managed = managed_copy(cache, "1.12.6")
    found = find()
    assert found.engine.path == managed
    (passed,) = found.passed_over
    assert str(bad) in passed.label
    assert passed.reason
    assert passed.health in (Health.TOO_OLD, Health.BROKEN)


def test_one_that_hangs_is_passed_over(path_folder: Path) -> None:
    terraform = write_program(path_folder / "terraform", f"{TERRAFORM}\nexit 0")
    # As large as a real one, so that its answer is remembered and the short limit is for the other one alone.
    os.truncate(terraform, 40 * 1024 * 1024)
    assert find().engine.path == terraform
    write_program(path_folder / "tofu", HANGS)
    found = find(timeout_s=0.3)
    assert found.engine.path == terraform
    assert any("did not end within 0.3 s" in passed.reason for passed in found.passed_over)


def test_the_newest_managed_copy_that_works_is_taken(path_folder: Path, cache: Path) -> None:
    managed_copy(cache, "1.9.0")
    works = managed_copy(cache, "1.10.3")
    managed_copy(cache, "1.12.6", "exit 1")
    (cache / "tools" / "tofu" / "1.99.0").mkdir()
    assert find().engine.path == works


def test_when_there_is_none_the_error_lists_each_place_and_why(path_folder: Path, cache: Path) -> None:
    tofu = write_program(path_folder / "tofu", "echo out of order; exit 9")
    terraform = write_program(path_folder / "terraform", OLD_TERRAFORM)
    managed = managed_copy(cache, "1.12.6", "echo nonsense")
    with pytest.raises(EngineMissingError) as caught:
        find()
    detail = caught.value.detail
    for words in (str(tofu), "out of order", str(managed), "nonsense", str(terraform), "1.5.7", "1.11.0"):
        assert words in detail
    assert "stackyard tools install tofu" in caught.value.remedy


def test_with_nothing_at_all_the_three_places_are_named(path_folder: Path, cache: Path) -> None:
    with pytest.raises(EngineMissingError) as caught:
        find()
    lines = caught.value.detail.splitlines()[1:]
    assert [line.split(":")[0] for line in lines] == [
        "- tofu on PATH",
        f"- the managed copy below {cache / 'tools' / 'tofu'}",
        "- terraform on PATH",
    ]


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (OLD, EngineTooOldError),
        (OLD_TERRAFORM, EngineTooOldError),
        ("exit 1", EngineBrokenError),
        ("echo hello", EngineBrokenError),
    ],
)
def test_a_configured_one_that_is_bad_is_an_error_although_another_one_works(
    script: str, error: type[Exception], path_folder: Path, tmp_path: Path
) -> None:
    write_program(path_folder / "tofu", TOFU)
    configured = write_program(tmp_path / "mine", script)
    with pytest.raises(error, match=str(configured)):
        find(configured)


def test_a_configured_one_that_hangs_is_an_error(tmp_path: Path) -> None:
    configured = write_program(tmp_path / "mine", HANGS)
    with pytest.raises(EngineBrokenError, match="did not end within"):
        find(configured, timeout_s=0.3)


@pytest.mark.parametrize("name", ["/nowhere/tofu", "no-such-program"])
def test_a_configured_one_that_is_missing_is_an_error_that_names_the_variable(
    name: str, path_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(path_folder / "tofu", TOFU)
    monkeypatch.setenv("STACKYARD_TOFU", name)
    with pytest.raises(EngineMissingError, match=f"STACKYARD_TOFU={name}") as caught:
        find()
    assert "STACKYARD_TOFU" in caught.value.remedy


def test_the_users_engine_settings_do_not_reach_the_question(
    path_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_CLI_CONFIG_FILE", "/nowhere/tofurc")
    monkeypatch.setenv("TF_CLI_ARGS", "-no-such-option")
    script = f'[ "$TF_CLI_CONFIG_FILE$TF_CLI_ARGS" = /dev/null ] || exit 1\n{TOFU}'
    write_program(path_folder / "tofu", script)
    assert find().engine.version == Version(1, 12, 6)
