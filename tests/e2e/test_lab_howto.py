"""The pages about the lab are true: what they show is run, and every route, kind and field is described."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.cli import stackyard
from tests.support.forking import write_forked_program
from tests.support.pages import blocks_of

from pvelab import control as controls
from pvelab.faults.kinds import KINDS
from pvelab.seeds import Seed
from pvelab.server.control import ControlRoute
from pvelab.server.routing import members

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = (DOCS / "reference" / "lab-control.md").read_text()
CI = (DOCS / "howto" / "lab-in-ci.md").read_text()

# The pages show the usual ports; tests that run beside each other take any.
WRAPPER = """#!/bin/sh
if [ "$1 $2" = "lab up" ]; then
    case "$*" in *--port*) ;; *) set -- "$@" --port 0 ;; esac
fi
exec {program} "$@"
"""


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


SHELL = [
    block.script
    for page in ("lab.md", "lab-in-ci.md", "lab-nested.md")
    for block in blocks_of(f"docs/howto/{page}")
]


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Give an environment in which `stackyard` takes any port, and leave no lab behind."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = write_forked_program(tmp_path / "forked" / "stackyard")
    (folder / "stackyard").write_text(WRAPPER.format(program=program))
    (folder / "stackyard").chmod(0o755)
    yield {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    stackyard("lab", "down", "--all")


def run(argv: list[str], env: dict[str, str], cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        **options,
    )


@pytest.mark.skipif(
    not all(map(shutil.which, ("bash", "ssh", "ssh-keygen", "curl"))), reason="needs bash, ssh and curl"
)
@pytest.mark.parametrize("script", SHELL, ids=lambda script: script.splitlines()[0][:40])
def test_the_commands_of_a_page_work(script: str, programs: dict[str, str], tmp_path: Path) -> None:
    done = run(["bash", "-euc", script], programs, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not on PATH")
def test_a_copy_is_made_and_rehearsed_on_as_the_page_says(programs: dict[str, str], tmp_path: Path) -> None:
    script = "".join(block.script for block in blocks_of("docs/howto/rehearse-a-copy.md"))
    real = json.loads(
        stackyard("lab", "up", "--json", "--name", "real", "--port", "0", "--seed", "homelab").stdout
    )
    env = {
        "PVE_URL": real["url"],
        "PVE_FINGERPRINT": real["fingerprint"],
        "PROXMOX_VE_API_TOKEN": real["api_token"],
    }
    done = run(["bash", "-euc", script], {**programs, **env}, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert real["api_token"] not in done.stdout
    seed = yaml.safe_load((tmp_path / "seed.yaml").read_text())
    assert [guest["vmid"] for guest in seed["guests"]][:2] == [100, 101]


def test_the_python_of_the_page_passes_as_a_test(tmp_path: Path, programs: dict[str, str]) -> None:
    [example] = blocks(CI, "python")
    (tmp_path / "test_example.py").write_text(example)
    [settings] = blocks(CI, "ini")
    (tmp_path / "pytest.ini").write_text(settings)
    # Where stackyard is installed, pytest finds the plugin by itself.
    plugins = [
        *("-p", "no:randomly"),
        *(() if _is_installed() else ("-p", "stackyard.testing")),
        *("-W", "ignore::urllib3.exceptions.InsecureRequestWarning"),
    ]
    done = run([sys.executable, "-m", "pytest", "-q", *plugins, "test_example.py"], programs, tmp_path)
    assert "2 passed" in done.stdout, done.stdout


def _is_installed() -> bool:
    return any(point.value == "stackyard.testing" for point in metadata.entry_points(group="pytest11"))


def test_the_jobs_of_the_page_are_jobs() -> None:
    _, github, gitlab = (yaml.safe_load(block) for block in blocks(CI, "yaml"))
    assert [step["run"].split()[0] for step in github["jobs"]["test"]["steps"] if "run" in step] == [
        "pip",
        "pytest",
    ]
    assert gitlab["stages"] == ["test"]
    for name in ("unit", "apply"):
        assert all(isinstance(line, str) for line in gitlab[name]["script"])
        assert not {"image", "services"} & set(gitlab[name])


def steps() -> dict[str, str]:
    workflow = blocks(CI, "yaml")[0]
    return {
        step.get("name", ""): step["run"]
        for step in yaml.safe_load(workflow)["jobs"]["lab"]["steps"]
        if "run" in step
    }


@pytest.mark.bpg
@pytest.mark.terraform
@pytest.mark.skipif(
    not os.environ.get("STACKYARD_TEST_BPG"), reason="STACKYARD_TEST_BPG names no bpg/proxmox provider"
)
@pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not on PATH")
@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not on PATH")
def test_the_job_of_the_page_applies_with_the_real_provider(tmp_path: Path, programs: dict[str, str]) -> None:
    [code] = blocks(CI, "hcl")
    (tmp_path / "main.tf").write_text(code)
    provider = Path(os.environ["STACKYARD_TEST_BPG"]).resolve().parent
    overrides = (
        f'provider_installation {{\n dev_overrides {{ "bpg/proxmox" = "{provider}" }}\n direct {{}}\n}}\n'
    )
    (tmp_path / "cli.tfrc").write_text(overrides)
    settings = {"GITHUB_ENV": str(tmp_path / "env"), "TF_CLI_CONFIG_FILE": str(tmp_path / "cli.tfrc")}
    env = {**programs, **settings, "CHECKPOINT_DISABLE": "1"}
    for name, script in steps().items():
        if name == "Install stackyard":
            continue
        written = tmp_path / "env"
        if written.exists():
            env |= dict(line.split("=", 1) for line in written.read_text().splitlines())
        # With an override there is nothing to initialise.
        done = run(
            ["bash", "-euc", script.replace("tofu init\n", "").replace("tofu ", "terraform ")], env, tmp_path
        )
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"


# --- The reference


@pytest.mark.parametrize(
    "route", members(controls, ControlRoute), ids=lambda route: f"{route.verb} {'/'.join(route.parts)}"
)
def test_every_control_route_is_described(route: ControlRoute) -> None:
    assert f"| `{route.verb} /_lab/{'/'.join(route.parts)}` |" in REFERENCE


def test_every_route_that_is_described_exists() -> None:
    described = set(re.findall(r"^\| `(\w+) /_lab/([^`]*)`", REFERENCE, re.MULTILINE))
    assert described == {(route.verb, "/".join(route.parts)) for route in members(controls, ControlRoute)}


@pytest.mark.parametrize("name", KINDS)
def test_every_field_of_a_fault_is_described(name: str) -> None:
    [row] = re.findall(rf"^\| `{name}` \|.*$", REFERENCE, re.MULTILINE)
    described = set(re.findall(r"\*\*`([\w-]+)`\*\*", row.rpartition("|")[0].rpartition("|")[2]))
    assert described == {key for key, field in KINDS[name].fields.items() if field.required}
    assert [key for key in KINDS[name].fields if f"`{key}`" not in row] == []


def test_every_field_of_a_seed_is_described() -> None:
    described = set(re.findall(r"^\| `(\w+)` \|", REFERENCE.partition("## Seeds")[2], re.MULTILINE))
    # What a node is made of stands beside its name in `nodes`.
    assert described == set(Seed.__dataclass_fields__) - {"name", "machines"}
