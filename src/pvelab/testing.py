"""The pytest plugin: a lab as a fixture. pytest loads it by itself where stackyard is installed.

    def test_my_code_makes_a_vm(lab):
        make_vm(lab.url, lab.api_token)
        assert lab.world.guests.get(100)

Fixtures:

- `lab`: one lab for the whole run (one for each worker of pytest-xdist), made new before each test that asks
  for it.
- `own_lab`: a lab for this test alone.
- `lab_options`: how both are started, as keywords of `pvelab.Options`; override it in a conftest.py.
  The ini options `lab_seed`, `lab_nodes` and `lab_ssh` say the same without one.
- `lab_environment`: the variables that the bpg/proxmox provider and others read, for the lab of `lab`.

Nothing of the lab is imported before the first test that asks for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pvelab import Running

__all__ = ["lab", "lab_environment", "lab_options", "own_lab", "pytest_addoption"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options of an ini file."""
    parser.addini(
        "lab_seed", "what the labs of tests hold: a name or a file of JSON or YAML", default="empty"
    )
    parser.addini("lab_nodes", "the names of their nodes, in place of the seed's", type="args", default=[])
    parser.addini("lab_ssh", "whether they have an SSH side", type="bool", default=False)


@pytest.fixture(scope="session")
def lab_options(pytestconfig: pytest.Config) -> Mapping[str, Any]:
    """How the labs of this run are started; override it to start them otherwise."""
    from pvelab import load_seed  # lazy: tests that need no lab do not pay for one

    seed = str(pytestconfig.getini("lab_seed"))
    if "/" in seed or seed.endswith((".json", ".yaml", ".yml")):
        seed = str(pytestconfig.rootpath / seed)
    nodes = tuple(pytestconfig.getini("lab_nodes"))
    return {
        "seed": load_seed(seed),
        "nodes": nodes or None,
        "ssh_port": 0 if pytestconfig.getini("lab_ssh") else None,
    }


@pytest.fixture(scope="session")
def _shared_lab(lab_options: Mapping[str, Any]) -> Iterator[tuple[Running, list[str]]]:
    from pvelab import running  # lazy: as above

    with running(**lab_options) as started:
        yield started, []


@pytest.fixture
def lab(_shared_lab: tuple[Running, list[str]], request: pytest.FixtureRequest) -> Running:
    """The lab of the whole run, new for each test: its seed and nothing else."""
    started, used_by = _shared_lab
    if used_by:
        started.reset()
    used_by.append(request.node.nodeid)
    return started


@pytest.fixture
def own_lab(lab_options: Mapping[str, Any]) -> Iterator[Running]:
    """A lab for this test alone, started for it and stopped after it."""
    from pvelab import running  # lazy: as above

    with running(**lab_options) as started:
        yield started


@pytest.fixture
def lab_environment(lab: Running) -> dict[str, str]:
    """What the bpg/proxmox provider reads from its environment, for the lab of this test."""
    return {
        "PROXMOX_VE_ENDPOINT": f"{lab.url}/",
        "PROXMOX_VE_API_TOKEN": lab.api_token,
        "PROXMOX_VE_INSECURE": "true",
        "PROXMOX_VE_SSH_USERNAME": "root",
        "PROXMOX_VE_SSH_PASSWORD": lab.password,
    }
