"""The files for containers, services and CI: they can be read, and name only what is there."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from stackyard.cli.root import root

ROOT = Path(__file__).parents[2]
CONTAINER = ROOT / "packaging" / "container" / "Containerfile"
UNIT = ROOT / "packaging" / "systemd" / "stackyard-state.service"
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
SPEC, JOBS = yaml.safe_load_all((ROOT / "templates" / "plan.yml").read_text())
(JOB,) = JOBS.values()


def commands_of(text: str) -> list[list[str]]:
    """Return the words of each command of stackyard in a script."""
    found = re.findall(r"(?:^|; |then )stackyard ([^;|>\n]+)", text, re.MULTILINE)
    return [shlex.split(line) for line in found]


def require_command(words: list[str]) -> None:
    """Fail where there is no such verb, or it does not know an option."""
    command: click.Command = root
    while isinstance(command, click.Group):
        context = click.Context(command)
        inner = command.get_command(context, words[0])
        if inner is None:
            break
        command, words = inner, words[1:]
    known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
    used = {word for word in words if word.startswith("--")}
    assert command is not root, words
    assert used <= known | {"--json"}, (command.name, used - known)


def scripts() -> list[str]:
    steps = [step["run"] for step in ACTION["runs"]["steps"]]
    container = json.loads(re.findall(r"^CMD (\[.*\])$", CONTAINER.read_text(), re.MULTILINE)[0])
    service = re.findall(r"^ExecStart=\S+/(stackyard .*)$", UNIT.read_text(), re.MULTILINE)
    return [*steps, *JOB["script"], f"stackyard {shlex.join(container)}", *service]


def test_every_command_of_stackyard_in_them_exists() -> None:
    found = [words for script in scripts() for words in commands_of(script)]
    assert len(found) >= 12
    for words in found:
        require_command(words)


def test_an_action_uses_each_input_and_none_of_them_is_part_of_a_script() -> None:
    text = (ROOT / "action.yml").read_text()
    for name in ACTION["inputs"]:
        assert re.search(rf"\binputs\.{name}\b", text), name
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"], step["name"]
        assert step["shell"] == "bash"
        variables = set(re.findall(r"\$\{?([A-Z][A-Z_]+)", step["run"])) - {"GITHUB_PATH", "GITHUB_OUTPUT"}
        assert variables <= step.get("env", {}).keys(), step["name"]


def test_a_component_uses_each_input_and_none_of_them_is_part_of_a_script() -> None:
    for name in SPEC["spec"]["inputs"]:
        assert f"$[[ inputs.{name} ]]" in json.dumps(JOB | {"name": list(JOBS)}), name
    assert all("$[[" not in line for line in JOB["script"])


@pytest.mark.parametrize("what", [[step["run"] for step in ACTION["runs"]["steps"]], JOB["script"]])
def test_a_shell_can_read_the_scripts(what: list[str]) -> None:
    for script in what:
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_the_container_runs_as_a_user_without_rights_from_pinned_images() -> None:
    text = CONTAINER.read_text()
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert len(bases) == 2
    assert all(re.search(r":\d+\.\d+\.\d+-", base) for base in bases)
    last = text.rpartition("\nFROM ")[2]
    assert re.search(r"^USER (?!0)\d+:\d+$", last, re.MULTILINE)
    assert "HEALTHCHECK" in last
    for source in re.findall(r"^COPY (?!--from)(\S+)", text, re.MULTILINE):
        assert source == "dist/" or (ROOT / source).is_file(), source


def test_systemd_reads_the_unit_and_finds_it_hardened(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/usr/local/bin/stackyard", "/bin/true"))
    checked = subprocess.run([analyze, "verify", unit], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
    for line in (
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "StateDirectory=stackyard",
        "DynamicUser=yes",
    ):
        assert f"\n{line}\n" in UNIT.read_text()


def test_the_healthcheck_sees_whether_the_service_answers(tmp_path: Path) -> None:
    check = [sys.executable, str(CONTAINER.parent / "healthcheck.py")]
    command = [
        sys.executable,
        "-m",
        "stackyard",
        "state",
        "serve",
        "--data",
        str(tmp_path),
        "--port",
        "0",
        "--json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as service:
        assert service.stdout is not None
        ready: dict[str, Any] = json.loads(service.stdout.readline())
        address = f"{ready['url']}/health"
        assert subprocess.run([*check, address], check=False).returncode == 0
        assert subprocess.run([*check, f"{ready['url']}/nothing"], check=False).returncode == 1
        service.terminate()
    assert subprocess.run([*check, address], check=False).returncode == 1
