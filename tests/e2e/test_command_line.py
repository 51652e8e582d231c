"""The program as a user runs it: exit statuses, output on the right stream, clear errors, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.cli import stackyard

import stackyard as package

ROOT = Path(__file__).parents[2]


def test_version_is_one_line() -> None:
    ended = stackyard("--version")
    assert (ended.status, ended.stdout, ended.stderr) == (0, f"stackyard {package.__version__}\n", "")


def test_help_lists_every_noun_on_standard_output() -> None:
    ended = stackyard("--help")
    assert ended.status == 0
    assert "tools" in ended.stdout
    assert ended.stderr == ""


@pytest.mark.parametrize("arguments", [("--version",), ("--help",), ("tools", "--help")])
def test_json_is_exactly_one_object(arguments: tuple[str, ...]) -> None:
    assert stackyard(*arguments, "--json").document
    assert stackyard("--json", *arguments).document


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("tolls",), "Did you mean `tools`?"),
        (("tools", "lst"), "Did you mean `list`?"),
        (("tools", "list", "--jsno"), "Did you mean '--json'?"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_word_that_was_meant(
    arguments: tuple[str, ...], meant: str
) -> None:
    ended = stackyard(*arguments)
    assert ended.status == 64
    assert meant in ended.stderr
    assert ended.stdout == ""


def test_a_usage_error_is_one_object_under_json() -> None:
    ended = stackyard("tools", "lst", "--json")
    assert ended.status == 64
    assert ended.stderr == ""
    error = ended.document["error"]
    assert (error["code"], error["exit_status"]) == ("E-USAGE", 64)


def test_no_verb_shows_the_help_and_is_a_wrong_usage() -> None:
    ended = stackyard()
    assert ended.status == 64
    assert "Usage: stackyard" in ended.stdout


def test_json_and_events_exclude_each_other() -> None:
    ended = stackyard("--json", "--events", "tools", "list")
    assert ended.status == 64
    assert ended.events[-1]["result"]["error"]["code"] == "E-USAGE"


def test_options_after_a_double_dash_are_arguments() -> None:
    ended = stackyard("completion", "--", "--json")
    assert ended.status == 64
    assert "E-USAGE" in ended.stderr


def test_chdir_works_in_another_folder_and_refuses_a_missing_one(tmp_path: Path) -> None:
    assert stackyard("--chdir", str(tmp_path), "--version").status == 0
    ended = stackyard("--chdir", str(tmp_path / "missing"), "tools", "list", "--json")
    assert ended.status == 65
    assert ended.document["error"]["code"] == "E-FILE"
    assert ended.document["error"]["where"]["file"] == str(tmp_path / "missing")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every folder")
def test_a_folder_without_permission_is_a_clear_error(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o000)
    ended = stackyard("--chdir", str(closed), "--version")
    assert ended.status == 65
    assert "Permission denied" in ended.stderr


def test_colours_appear_only_on_a_terminal() -> None:
    assert "\x1b[" not in stackyard("tolls").stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_script_of_a_shell(shell: str) -> None:
    ended = stackyard("completion", shell)
    assert ended.status == 0
    assert "_STACKYARD_COMPLETE" in ended.stdout


def test_a_shell_that_asks_gets_verbs_and_options() -> None:
    asked = {"_STACKYARD_COMPLETE": "bash_complete", "COMP_WORDS": "stackyard to", "COMP_CWORD": "1"}
    done = subprocess.run(
        ["stackyard"],
        executable=str(Path(sys.executable).with_name("stackyard")),
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "plain,tools" in done.stdout


@pytest.mark.parametrize("word", ["--version", "--help"])
def test_the_start_loads_none_of_the_heavy_libraries(word: str) -> None:
    code = (
        "import sys; from stackyard.cli.main import main; main([sys.argv[1]]);"
        "heavy = {'rich', 'asyncio', 'aiohttp', 'cryptography', 'asyncssh', 'ssl'} & set(sys.modules);"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, word], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
