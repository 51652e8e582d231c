"""Every line that `--events` prints follows the published schema, whatever the command and its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from scripts.generate_docs import all_commands
from tests.support.cli import PROGRAM, Ended, stackyard
from tests.support.programs import HANGS, LONG_S, engine_script, write_program
from tests.support.releases import ReleaseServer, zipped

SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "events.schema.json"
VALIDATOR = jsonschema_rs.validator_for(json.loads(SCHEMA.read_text()), validate_formats=True)
COMMANDS = [tuple(path.split()[1:]) for path, _, _ in all_commands()]
PASSING_ON = {
    ("infra", verb)
    for verb in "init plan apply apply-auto destroy output state-list validate fmt fmt-check".split()
}
VERSION = "1.12.6"


@pytest.fixture
def releases() -> Iterator[ReleaseServer]:
    with ReleaseServer() as server:
        yield server


def check(ended: Ended) -> list[dict[str, Any]]:
    """Validate each line by itself, then that together they are one run; return them."""
    lines = ended.events
    for line in lines:
        VALIDATOR.validate(line)
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert lines[0]["type"] == "run.started"
    assert [line["type"] for line in lines].index("run.finished") == len(lines) - 1
    assert lines[-1]["exit_status"] == ended.status
    assert ended.stderr == ""
    return lines


def result(ended: Ended) -> Any:
    return check(ended)[-1]["result"]


def named(command: tuple[str, ...]) -> str:
    return " ".join(("stackyard", *command))


@pytest.mark.parametrize("command", COMMANDS, ids=named)
def test_the_help_of_every_command(command: tuple[str, ...]) -> None:
    lines = check(stackyard(*command, "--help", "--events"))
    assert lines[0]["command"] == named(command)
    assert f"Usage: {named(command)}" in lines[-1]["result"]["help"]


@pytest.mark.parametrize("command", COMMANDS, ids=named)
def test_a_wrong_usage_of_every_command(command: tuple[str, ...]) -> None:
    error = result(
        stackyard("--events", *command, "--no-such-option", b"\xff".decode(errors="surrogateescape"))
    )
    # Verbs that pass options on to the engine know none that is wrong.
    expected = "E-CLUSTER-NOT-FOUND" if command in PASSING_ON else "E-USAGE"
    assert error["error"]["code"] == expected


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ("--version", 0),
        ("completion bash", 0),
        ("completion fish", 0),
        ("completion zsh", 0),
        ("tools list", 0),
        ("tolls", 64),
        ("--json tools list", 64),
        ("completion tcsh", 64),
        ("tools install tofu --version 0.1", 64),
        ("--chdir /no/such/folder tools list", 65),
        ("lab status", 69),
    ],
)
def test_a_run_of_a_command(arguments: str, status: int) -> None:
    ended = stackyard("--events", *arguments.split())
    assert ended.status == status
    assert ("error" in result(ended)) == (status != 0)


def test_a_run_without_a_verb() -> None:
    ended = stackyard("--events")
    assert ended.status == 64
    assert result(ended)["error"]["code"] == "E-USAGE"


def test_a_survey_that_waits_for_a_slow_program(tmp_path: Path) -> None:
    tofu = write_program(tmp_path / "tofu", f"/bin/sleep 2; {engine_script(VERSION)}")
    lines = check(stackyard("--events", "tools", "list", env={"STACKYARD_TOFU": str(tofu)}))
    assert "tofu" in [line["waiting_for"] for line in lines if line["type"] == "step.waiting"]


def test_an_installation_from_a_release(releases: ReleaseServer) -> None:
    releases.publish(VERSION)
    ended = stackyard("tools", "install", "tofu", "--events", env={"STACKYARD_RELEASES_URL": releases.url})
    lines = check(ended)
    assert ended.status == 0
    assert {line["type"] for line in lines} >= {
        "step.started",
        "step.waiting",
        "step.progressed",
        "step.finished",
    }
    assert lines[-1]["result"]["way"] == "the release archive"


def test_an_installation_that_no_way_leads_to(releases: ReleaseServer, tmp_path: Path) -> None:
    releases.publish(VERSION, zipped({"tofu": b"#!/bin/sh\nprintf '\\033[31m\\377garbage'\n"}))
    nothing = {"PATH": str(tmp_path), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    env = {"STACKYARD_RELEASES_URL": releases.url, **nothing}
    ended = stackyard("tools", "install", "tofu", "--events", env=env)
    lines = check(ended)
    assert lines[-1]["result"]["error"]["code"] == "E-TOOL-INSTALL"
    assert [line["level"] for line in lines if line["type"] == "log"] == ["warning", "warning"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted(number: signal.Signals, tmp_path: Path) -> None:
    tofu = write_program(tmp_path / "tofu", HANGS)
    with subprocess.Popen(
        [*PROGRAM, "--events", "tools", "list"],
        env={**os.environ, "STACKYARD_TOFU": str(tofu)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        early = ""
        while "step.waiting" not in early:
            early += child.stdout.readline()
        child.send_signal(number)
        stdout, stderr = child.communicate(timeout=LONG_S)
    error = result(Ended(child.returncode, early + stdout, stderr))["error"]
    assert (error["code"], error["exit_status"]) == ("E-INTERRUPTED", 130)
    assert number.name in error["detail"]


def test_a_defect_of_ours() -> None:
    code = (
        "import sys; from stackyard.cli import main, root; from stackyard.cli.result import Result\n"
        "@root.root.command('broken')\n"
        "def broken(): return Result(document={'what': object()})\n"
        "sys.exit(main.main(['broken', '--events']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=LONG_S, check=False
    )
    assert result(Ended(done.returncode, done.stdout, done.stderr))["error"]["code"] == "E-INTERNAL"
