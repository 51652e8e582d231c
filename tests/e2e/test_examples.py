"""The examples work: the commands of each README are run in a copy of its folder, against a lab."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.cli import stackyard
from tests.support.engine import real_engine
from tests.support.lab_inside import need_sandbox
from tests.support.pages import ROOT, Reader

from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(600)]

EXAMPLES = ROOT / "examples"
# What the last apply of each has made, and what is left when everything was destroyed.
APPLIED = {
    "homelab": ("Applied: 8 created", "8 destroyed"),
    "deployment": ("Applied: 5 created", "5 destroyed"),
    "nested": ("create of shop on lab: done", "destroy of shop on lab: done"),
    "stacks": (
        "stack:onprem/proxmox_server_A_gpu     applied  4 created",
        "stack:onprem/proxmox_server_B_no_gpu  applied  3 created",
        '`resources["inference"].vm_config.cpu_core` is not in the type of the variable.',
        "4 destroyed",
        "3 destroyed",
    ),
    "layers": ("stack:03-legacy/pihole       applied  2 created", "4 destroyed"),
    "ci": ("Applied: 3 created", "3 destroyed"),
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
    reader.folder = reader.folder / name
    shutil.copytree(EXAMPLES / name, reader.folder)
    printed = "".join(text for _, text in reader.follow(f"examples/{name}/README.md"))
    assert [words for words in (*APPLIED[name], "Nothing to change") if words not in printed] == []


@pytest.mark.parametrize("name", ["github-workflow.yml", "gitlab-ci.yml"])
def test_a_job_of_the_example_runs_the_script(name: str) -> None:
    document = yaml.safe_load((EXAMPLES / "ci" / name).read_text())
    job = document["jobs"]["check"] if "jobs" in document else document["lab"]
    lines = job.get("script") or [step["run"] for step in job["steps"] if "run" in step]
    assert lines[-1] == "./check.sh"
    assert any(
        "stackyard tools install tofu" in str(line) for line in (*job.get("before_script", ()), *lines)
    )
