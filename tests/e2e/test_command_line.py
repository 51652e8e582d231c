"""The program as a user runs it: exit statuses, output on the right stream, clear errors, no traceback."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.cli import Ended, stackyard

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


@pytest.mark.parametrize("nouns", [(), ("tools",)])
def test_no_verb_shows_a_human_the_help_and_is_a_wrong_usage(nouns: tuple[str, ...]) -> None:
    ended = stackyard(*nouns)
    assert ended.status == 64
    assert f"Usage: {' '.join(('stackyard', *nouns))}" in ended.stdout
    ended = stackyard(*nouns, "--json")
    assert ended.status == 64
    assert "needs a command: " in ended.document["error"]["detail"]


def test_json_and_events_exclude_each_other() -> None:
    ended = stackyard("--json", "--events", "tools", "list")
    assert ended.status == 64
    assert ended.events[-1]["result"]["error"]["code"] == "E-USAGE"


def test_options_after_a_double_dash_are_arguments() -> None:
    ended = stackyard("completion", "--", "--json")
    assert ended.status == 64
    assert "E-USAGE" in ended.stderr
    assert ended.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        "--json tools list",
        "tools --json list",
        "tools list --json",
        "-v --no-color tools list --json",
        "--json -- tools list",
        "-vv tools -v list --json",
    ],
)
def test_a_common_option_means_the_same_in_every_place(arguments: str) -> None:
    assert "tools" in stackyard(*arguments.split()).document


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("",), "`stackyard` has no command ``."),
        (("tools", ""), "`stackyard tools` has no command ``."),
        (("tools", "install", ""), "'' is not one of 'tofu', 'opa', 'talosctl', 'sops', 'task'"),
        (("tools", "install", "tofu", "--version", ""), "'' is not a version of OpenTofu"),
        (("--chdir", "", "--version"), "--chdir needs the name of a folder"),
        (("--chdir",), "'--chdir' requires an argument"),
        (("--json=yes",), "'--json' does not take a value"),
        (("-x",), "No such option '-x'"),
        (("tools", "list", "more"), "unexpected extra argument (more)"),
        (("tools", "install"), "Missing argument"),
    ],
)
def test_a_command_line_that_makes_no_sense_says_what_is_wrong_with_it(
    arguments: tuple[str, ...], words: str
) -> None:
    ended = stackyard(*arguments)
    assert ended.status == 64
    assert words in ended.stderr
    assert ended.stdout == ""


@pytest.mark.parametrize("before", ["", "--", "tools install "])
def test_a_word_of_any_length_is_quoted_in_part(before: str) -> None:
    ended = stackyard(*f"{before}{'x' * 100_000}".split())
    assert ended.status == 64
    assert len(ended.stderr) < 2000


def test_chdir_works_in_another_folder_and_refuses_a_missing_one(tmp_path: Path) -> None:
    assert stackyard("--chdir", str(tmp_path), "--version").status == 0
    ended = stackyard("--chdir", str(tmp_path / "missing"), "tools", "list", "--json")
    assert ended.status == 65
    assert ended.document["error"]["code"] == "E-FILE"
    assert ended.document["error"]["where"]["file"] == str(tmp_path / "missing")


def test_chdir_to_a_file_is_refused_like_a_missing_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = stackyard("--chdir", str(tmp_path / "file"), "--version")
    assert ended.status == 65
    assert "Not a directory" in ended.stderr


def test_each_chdir_is_relative_to_the_one_before(tmp_path: Path) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    tofu = tmp_path / "a" / "b" / "c" / "tofu"
    tofu.write_text("#!/bin/sh\nexit 3\n")
    tofu.chmod(0o755)
    words = ("--chdir", "a", "--chdir", "b", "tools", "--chdir", "c", "list", "--json")
    document = stackyard(*words, cwd=tmp_path, env={"STACKYARD_TOFU": "./tofu"}).document
    assert document["tools"][0]["path"] == str(tofu)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every folder")
def test_a_folder_without_permission_is_a_clear_error(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o000)
    ended = stackyard("--chdir", str(closed), "--version")
    assert ended.status == 65
    assert "Permission denied" in ended.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every folder")
def test_a_home_that_may_not_be_entered_is_no_obstacle_to_what_only_looks(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o000)
    ended = stackyard("tools", "list", "--json", env={"XDG_CACHE_HOME": str(closed / "cache")})
    assert "tools" in ended.document


def test_a_folder_that_is_gone_is_no_obstacle_to_what_does_not_need_one(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    program = Path(sys.executable).with_name("stackyard")
    done = subprocess.run(
        ["sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", program, "tools", "list"],
        cwd=gone,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("tool ")


@pytest.mark.parametrize("folder", [None, "", "relative", "/dev/null", "/proc"])
def test_an_odd_home_is_no_obstacle_to_what_only_looks(
    folder: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, "relative")
    if folder is None:
        monkeypatch.delenv("HOME")
    else:
        monkeypatch.setenv("HOME", folder)
    assert "tools" in stackyard("tools", "list", "--json").document


@pytest.mark.parametrize("cache", ["/dev/null", "/proc/nowhere"])
def test_a_cache_that_cannot_be_written_is_one_clear_error(cache: str) -> None:
    ended = stackyard("tools", "install", "tofu", "--json", env={"XDG_CACHE_HOME": cache})
    assert ended.status == 65
    assert ended.document["error"]["code"] == "E-FILE"
    assert ended.document["error"]["where"]["file"].startswith(cache)


def test_colours_appear_only_on_a_terminal() -> None:
    assert "\x1b[" not in stackyard("tolls").stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_script_of_a_shell(shell: str) -> None:
    ended = stackyard("completion", shell)
    assert ended.status == 0
    assert "_STACKYARD_COMPLETE" in ended.stdout


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("stackyard to", "plain,tools"),
        ("stackyard tools ", "plain,install"),
        ("stackyard tools list --ev", "plain,--events"),
        ("stackyard tools install ", "plain,tofu"),
        ("stackyard --chdir fold", "dir,fold"),
        ("stackyard --chdir /no/such/folder to", "plain,tools"),
    ],
)
def test_a_shell_that_asks_gets_verbs_options_and_folders(line: str, answer: str) -> None:
    asked = {
        "_STACKYARD_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }
    done = subprocess.run(
        [Path(sys.executable).with_name("stackyard")],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert answer in done.stdout.splitlines()
    assert done.stderr == ""


def cpu_s(*arguments: str) -> float:
    """Return the least time of the processor that a run of Python takes, of some."""
    times = []
    for _ in range(7):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], capture_output=True, timeout=60, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


@pytest.mark.parametrize("word", ["--version", "--help"])
def test_the_start_takes_under_150_ms_of_the_processor(word: str) -> None:
    # Where the command-line library alone takes most of that, the machine is to blame and not what we load.
    allowed = max(0.150, 2 * cpu_s("-c", "import click"))
    assert cpu_s("-m", "stackyard", word) < allowed


@pytest.mark.parametrize("word", ["--version", "--help"])
def test_the_start_loads_none_of_the_heavy_libraries(word: str) -> None:
    code = (
        "import sys; from stackyard.cli.main import main; main([sys.argv[1]]);"
        "heavy = {'rich', 'asyncio', 'aiohttp', 'cryptography', 'asyncssh', 'ssl', 'stackyard.base.events'};"
        "heavy &= set(sys.modules);"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, word], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


# Presses Ctrl-C at the moment when the command line is being loaded.
EARLY = """
import os, signal, sys
class Presses:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Presses())
from stackyard.__main__ import run
run()
"""


def test_an_interrupt_while_it_starts_is_told_like_any_other() -> None:
    done = subprocess.run(
        [sys.executable, "-c", EARLY, "tools", "list", "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 130
    assert Ended(done.returncode, done.stdout, done.stderr).document["error"]["code"] == "E-INTERRUPTED"
    assert done.stderr == ""
