"""The examples work: the commands of each README are run in a copy of its folder, against a lab."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.cli import stackyard
from tests.support.engine import real_engine
from tests.support.lab_inside import need_sandbox
from tests.support.pages import ROOT, Reader
from tests.support.recipes import AWS, RECIPES, mirror

from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(600)]

EXAMPLES = ROOT / "examples"
# What the last apply of each has made, and what is left when everything was destroyed.
APPLIED = {
    "homelab": ("Applied: 8 created", "8 destroyed"),
    "hypervisors": (
        "Applied: 17 created, 2 changed",
        "Applied: 6 created",
        "user ben@pve",
        "Applied: 0 created, 2 changed",
    ),
    "deployment": ("Applied: 5 created", "5 destroyed"),
    "nested": ("create of shop on lab: done", "destroy of shop on lab: done"),
    "stacks": (
        "stack:onprem/proxmox_server_A_gpu     applied  4 created",
        "stack:onprem/proxmox_server_B_no_gpu  applied  3 created",
        '`resources["inference"].vm_config.cpu_core` is not in the type of the variable.',
        "4 destroyed",
        "3 destroyed",
    ),
    "layers": (
        "stack:03-legacy/pihole       applied  2 created",
        "stack:02-platforms/storage   applied  1 created",
    ),
    "cluster": ("Applied: 8 created", "0 created, 1 changed", "8 destroyed"),
    "ci": ("Applied: 3 created", "3 destroyed"),
}


# The folder of a stack of the example, and the recipe that its code is.
STACKS = {
    "onprem/proxmox_server_A_gpu": "proxmox",
    "onprem/proxmox_server_B_no_gpu": "proxmox",
    "cloud/aws_global": "aws",
}


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    yield Reader(
        folder=tmp_path,
        programs=tmp_path / "bin",
        env={"STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path)},
    )
    stackyard("lab", "down", "--all")


def test_every_folder_is_in_the_index_and_is_tested() -> None:
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
    assert folders == set(APPLIED)
    index = (EXAMPLES / "README.md").read_text()
    assert [name for name in folders if f"]({name}/README.md)" not in index] == []


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not on PATH")
@pytest.mark.parametrize("name", APPLIED)
def test_an_example_is_applied_has_nothing_left_to_do_and_is_destroyed(name: str, reader: Reader) -> None:
    if name == "nested":
        need_sandbox()
    if name == "stacks" and shutil.which("curl") is None:
        pytest.skip("curl is not on PATH")
    reader.folder = reader.folder / name
    shutil.copytree(EXAMPLES / name, reader.folder)
    printed = "".join(text for _, text in reader.follow(f"examples/{name}/README.md"))
    assert [words for words in (*APPLIED[name], "Nothing to change") if words not in printed] == []


def _read_folder(folder: Path, pattern: str = "*") -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob(pattern) if path.is_file()
    }


def test_the_modules_and_the_code_of_the_stacks_are_those_of_the_recipes() -> None:
    modules = EXAMPLES / "stacks/tofu/modules"
    for folder in modules.iterdir():
        assert _read_folder(folder) == _read_folder(RECIPES / "modules" / folder.name), folder.name
    for name, recipe in STACKS.items():
        code = _read_folder(EXAMPLES / "stacks/tofu/stacks" / name, "*.tf")
        del code["backend.tf"]
        assert code == _read_folder(RECIPES / "stacks" / recipe, "*.tf"), name


def test_the_stack_for_aws_is_valid_for_its_provider(tmp_path: Path) -> None:
    settings = mirror(tmp_path, AWS)
    shutil.copytree(EXAMPLES / "stacks/tofu", tmp_path / "tofu")
    folder = tmp_path / "tofu/stacks/cloud/aws_global"
    for words in (("init", "-backend=false", "-input=false"), ("validate",)):
        ended = subprocess.run(
            [real_engine(Flavour.TOFU).path, *words, "-no-color"],
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TF_CLI_CONFIG_FILE": str(settings)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("name", ["github-workflow.yml", "gitlab-ci.yml"])
def test_a_job_of_the_example_runs_the_script(name: str) -> None:
    document = yaml.safe_load((EXAMPLES / "ci" / name).read_text())
    job = document["jobs"]["check"] if "jobs" in document else document["lab"]
    lines = job.get("script") or [step["run"] for step in job["steps"] if "run" in step]
    assert lines[-1] == "./check.sh"
    assert any(
        "stackyard tools install tofu" in str(line) for line in (*job.get("before_script", ()), *lines)
    )
