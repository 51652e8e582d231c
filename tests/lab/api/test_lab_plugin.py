"""The pytest plugin, in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

# Each runs a pytest of its own, some with workers: up to four processes that load everything.
pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[3]


def run_pytest(folder: Path, *arguments: str, **files: str) -> subprocess.CompletedProcess[str]:
    """Run pytest with the plugin on files of its own."""
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    # As an installed stackyard declares it, whether this one was installed before it had a plugin or after.
    declared = folder / "installed" / "stackyard_as_installed-0.dist-info"
    declared.mkdir(parents=True)
    (declared / "METADATA").write_text("Metadata-Version: 2.1\nName: stackyard-as-installed\nVersion: 0\n")
    (declared / "entry_points.txt").write_text("[pytest11]\nstackyard = stackyard.testing\n")
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{declared.parent}"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    # Where a lab hangs, the stacks tell.
    return subprocess.run(
        [*command, "-o", "faulthandler_timeout=90", *arguments],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=270,
        check=False,
    )


SHARED = """
import json, ssl, urllib.request
seen = []

def call(lab, method, path):
    request = urllib.request.Request(f"{lab.url}/api2/json{path}", method=method)
    request.add_header("Authorization", f"PVEAPIToken={lab.api_token}")
    context = ssl._create_unverified_context()
    return json.load(urllib.request.urlopen(request, context=context))["data"]

def test_one_makes_a_pool(lab):
    seen.append((lab.url, lab.api_token))
    call(lab, "POST", "/pools?poolid=mine")
    lab.add_fault("node-down", node="pve2")
    assert [pool["poolid"] for pool in call(lab, "GET", "/pools")] == ["mine"]

def test_two_finds_nothing_of_it(lab):
    seen.append((lab.url, lab.api_token))
    assert call(lab, "GET", "/pools") == []
    assert call(lab, "GET", "/nodes/pve2/qemu") == []
    assert len(set(seen)) == 1

def test_three_has_a_lab_of_its_own(own_lab, lab, lab_environment):
    assert own_lab.url != lab.url
    assert own_lab.nodes == lab.nodes == ("pve1", "pve2")
    assert lab_environment["PROXMOX_VE_ENDPOINT"] == f"{lab.url}/"
"""


def test_one_lab_serves_a_whole_run_and_is_new_for_each_test(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, test_it__py=SHARED, pytest__ini="[pytest]\nlab_nodes = pve1 pve2\n")
    assert "3 passed" in done.stdout, done.stdout


def test_a_conftest_says_how_labs_are_started(tmp_path: Path) -> None:
    conftest = """
import pytest
from pvelab import load_seed

@pytest.fixture(scope="session")
def lab_options():
    return {"seed": load_seed("minimal"), "ssh_port": 0}
"""
    test = "def test_it(lab):\n    assert lab.ssh_ports\n    assert len(lab.world.guests.all()) == 2\n"
    done = run_pytest(tmp_path, conftest__py=conftest, test_it__py=test)
    assert "1 passed" in done.stdout, done.stdout


def test_a_seed_file_is_found_beside_the_ini_file(tmp_path: Path) -> None:
    done = run_pytest(
        tmp_path,
        seed__yaml="nodes: [a, b, c]\n",
        pytest__ini="[pytest]\nlab_seed = ./seed.yaml\n",
        test_it__py="def test_it(lab):\n    assert lab.nodes == ('a', 'b', 'c')\n",
    )
    assert "1 passed" in done.stdout, done.stdout


def test_the_plugin_costs_nothing_where_no_lab_is_asked_for(tmp_path: Path) -> None:
    test = """
import sys

def test_it():
    assert "stackyard.testing" in sys.modules
    heavy = ("pvelab.world", "pvelab.runtime", "aiohttp", "asyncssh", "orjson", "yaml", "cryptography")
    assert [name for name in heavy if name in sys.modules] == []
"""
    done = run_pytest(tmp_path, test_it__py=test)
    assert "1 passed" in done.stdout, done.stdout


def test_the_plugin_is_found_by_pytest_where_stackyard_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"stackyard": "stackyard.testing"}


@pytest.mark.soak
@pytest.mark.parametrize("workers", ["2"])
def test_workers_of_xdist_have_a_lab_each(tmp_path: Path, workers: str) -> None:
    test = """
import pytest

@pytest.mark.parametrize("n", range(6))
def test_it(lab, n):
    assert lab.world.guests.all() == {}
    lab.on_loop(lambda: None)
"""
    done = run_pytest(tmp_path, "-n", workers, test_it__py=test)
    assert "6 passed" in done.stdout, done.stdout
