from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.support.programs import HANGS, LONG_S, engine_script, managed_copy, write_program

from stackyard.base import events
from stackyard.engine.tools.catalogue import CATALOGUE, Tool, VersionOutput
from stackyard.engine.tools.probe import Health
from stackyard.engine.tools.survey import FoundTool, survey


def look(timeout_s: float = LONG_S, configured: Path | None = None) -> dict[str, FoundTool]:
    return {found.name: found for found in asyncio.run(survey(configured, timeout_s=timeout_s))}


def test_with_an_empty_path_every_program_is_missing_and_says_where_it_was_looked_for(
    path_folder: Path,
) -> None:
    found = look()
    assert {tool.health for tool in found.values()} == {Health.MISSING}
    assert "packer on PATH" in found["packer"].reason
    assert "managed copy" in found["tofu"].reason


def test_a_program_on_path_is_found_with_its_version_and_place(path_folder: Path) -> None:
    git = write_program(path_folder / "git", "echo git version 2.39.5")
    tool = look()["git"]
    assert (tool.health, tool.version, tool.path, tool.where_found) == (Health.OK, "2.39.5", git, "PATH")
    assert tool.reason == ""


def test_a_program_that_is_too_old_is_reported_with_both_versions(path_folder: Path) -> None:
    write_program(path_folder / "git", "echo git version 2.17.1")
    tool = look()["git"]
    assert tool.health is Health.TOO_OLD
    assert "2.17.1" in tool.reason
    assert "2.30.0" in tool.reason


@pytest.mark.parametrize("name", ["tofu", "git"])
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo no licence here >&2; exit 3", "no licence here"),
        ("echo '<html>'", "<html>"),
        ("exit 0", "nothing"),
        ("kill -9 $$", "SIGKILL"),
    ],
)
def test_a_program_that_fails_or_babbles_is_broken_with_the_reason(
    name: str, script: str, reason: str, path_folder: Path
) -> None:
    write_program(path_folder / name, script)
    write_program(path_folder / "ssh", "echo OpenSSH_9.2p1 >&2")
    found = look()
    assert found[name].health is Health.BROKEN
    assert reason in found[name].reason
    assert found["ssh"].health is Health.OK


def test_a_program_that_hangs_is_broken_and_the_others_are_not(path_folder: Path) -> None:
    write_program(path_folder / "tofu", HANGS)
    write_program(path_folder / "git", f"trap '' INT TERM; {HANGS}")
    found = look(timeout_s=0.3)
    assert {found["tofu"].health, found["git"].health} == {Health.BROKEN}
    assert "did not end within 0.3 s" in found["tofu"].reason


def test_a_file_that_is_no_program_is_broken(path_folder: Path) -> None:
    program = path_folder / "terraform"
    program.write_bytes(b"\x7fELF not really")
    program.chmod(0o755)
    assert look()["terraform"].health is Health.BROKEN


def test_the_programs_are_asked_at_the_same_time(path_folder: Path, tmp_path: Path) -> None:
    # Each of the two goes on only when the other one has come as far: one after the other they would hang.
    there, back = tmp_path / "there", tmp_path / "back"
    os.mkfifo(there)
    os.mkfifo(back)
    write_program(path_folder / "git", f"echo x > {there}; read y < {back}; echo git version 2.39.5")
    write_program(path_folder / "sops", f"read y < {there}; echo x > {back}; echo sops 3.9.0")
    found = look()
    assert (found["git"].health, found["sops"].health) == (Health.OK, Health.OK)


def test_a_managed_copy_counts_when_the_one_on_path_is_broken(path_folder: Path, cache: Path) -> None:
    write_program(path_folder / "tofu", "exit 1")
    managed = managed_copy(cache, "1.12.6")
    tool = look()["tofu"]
    assert (tool.health, tool.path, tool.where_found) == (Health.OK, managed, "managed copy")


def test_a_configured_engine_is_reported_even_when_it_is_worse(path_folder: Path, tmp_path: Path) -> None:
    write_program(path_folder / "tofu", engine_script("1.12.6"))
    configured = write_program(tmp_path / "old-tofu", engine_script("1.6.0"))
    tool = look(configured=configured)["tofu"]
    assert (tool.health, tool.path, tool.where_found) == (Health.TOO_OLD, configured, "configured")


@pytest.mark.parametrize(
    "odd",
    [
        "nowhere",
        "/nowhere/tofu",
        "~nobody-of-this-name/tofu",
        "x" * 5000,
        "/x" * 3000,
        " ",
        "a\nb",
        b"/\xff".decode(errors="surrogateescape"),
    ],
    ids=lambda odd: odd[:12],
)
def test_an_odd_value_for_the_engine_is_a_missing_engine_that_is_named_and_hides_no_other_program(
    odd: str, path_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(path_folder / "tofu", engine_script("1.12.6"))
    write_program(path_folder / "git", "echo git version 2.39.5")
    monkeypatch.setenv("STACKYARD_TOFU", odd)
    found = look()
    assert (found["tofu"].health, found["tofu"].where_found) == (Health.MISSING, "configured")
    assert found["tofu"].reason == f"There is no program at STACKYARD_TOFU={odd}."
    assert found["git"].health is Health.OK


@pytest.mark.parametrize(
    "script",
    [
        """echo '{"terraform_version": 5}'""",
        """echo '{"terraform_version": ["1.12.6"]}'""",
        """echo '["terraform_version"]'""",
        "echo null",
        f"""echo '{{"terraform_version": "1.12.0-{"9" * 5000}"}}'""",
        f"""echo '{{"terraform_version": "{"9" * 5000}.0.0"}}'""",
        "i=0; while [ $i -lt 20000 ]; do printf '[[[[['; i=$((i+1)); done",
        "printf '\\0\\0\\377\\033[2J'",
        "/usr/bin/head -c 50000000 /dev/zero",
        "/usr/bin/head -c 50000000 /dev/zero >&2; exit 1",
    ],
)
def test_whatever_an_engine_answers_it_is_broken_with_a_short_reason(script: str, path_folder: Path) -> None:
    write_program(path_folder / "tofu", script)
    tool = look()["tofu"]
    assert tool.health is Health.BROKEN
    assert 0 < len(tool.reason) < 1000


@pytest.mark.parametrize("make", ["folder", "no permission to run", "empty"])
def test_a_configured_engine_that_is_no_program_is_broken(make: str, tmp_path: Path) -> None:
    path = tmp_path / "tofu"
    if make == "folder":
        path.mkdir()
    else:
        path.touch(0o644 if make == "no permission to run" else 0o755)
    assert look(configured=path)["tofu"].health is Health.BROKEN


def test_a_program_that_takes_its_time_is_named_while_it_does(path_folder: Path) -> None:
    write_program(path_folder / "git", "/bin/sleep 2; echo git version 2.39.5")
    seen: list[events.Event] = []
    (git, *_) = [found for found in asyncio.run(survey(emit=seen.append)) if found.name == "git"]
    assert git.health is Health.OK
    assert events.StepWaiting(step="tools.survey", waiting_for="git") in seen
    assert isinstance(seen[-1], events.StepFinished)
    assert seen[-1].outcome is events.Outcome.DONE


def test_a_defect_in_one_look_ends_the_others_and_is_passed_on(path_folder: Path) -> None:
    """The hanging program is ended: were it left, the end of the event loop would wait for ever."""
    write_program(path_folder / "git", HANGS)

    async def fail(path: Path, timeout_s: float) -> VersionOutput:
        raise ZeroDivisionError

    hangs = next(tool for tool in CATALOGUE if tool.name == "git")
    broken = Tool(name="broken", programs=("git",), ask=fail, needed_for="nothing")
    with pytest.raises(ZeroDivisionError):
        asyncio.run(survey(timeout_s=LONG_S, tools=(hangs, broken)))
