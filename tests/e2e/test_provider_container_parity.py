"""Containers: what one of the two providers made or changed, the other leaves alone; both ways.

STACKYARD_TEST_BPG names the binary of the real bpg/proxmox; without it these tests are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.engine import real_engine
from tests.support.lab import ROOMY
from tests.support.provider import Stack, driven, require_bpg
from tests.support.provider_container import (
    CHANGES,
    CLONES,
    CREATED,
    REPLACED,
    TEMPLATE,
    plant_templates,
    stack_of,
)
from tests.unit.desired.test_desired import FULL

from stackyard import lab
from stackyard.desired import Desired
from stackyard.engine.version import Engine, Flavour
from stackyard.render import render

pytestmark = [pytest.mark.bpg, pytest.mark.tofu, pytest.mark.timeout(600)]


@pytest.fixture
def tofu() -> Engine:
    return real_engine(Flavour.TOFU)


@pytest.fixture
def running() -> Iterator[lab.Running]:
    require_bpg()
    with lab.running(seed=ROOMY, nodes=("pve1", "pve2"), ssh_port=0) as it:
        plant_templates(it)
        yield it


async def _unchanged_by_both(stack: Stack, *, bpg_first: bool) -> None:
    await stack.unchanged(bpg=not bpg_first)
    # What the other one refreshed must still please the first.
    await stack.run("apply", "-refresh-only", "-auto-approve", "-input=false", bpg=not bpg_first)
    await stack.unchanged(bpg=bpg_first)


@pytest.mark.parametrize("family", CREATED)
@pytest.mark.parametrize("first", ["built-in", "bpg"])
def test_what_one_provider_makes_the_other_leaves_alone(
    tofu: Engine, running: lab.Running, tmp_path: Path, first: str, family: str
) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(stack_of(CREATED[family]))
        await stack.init()
        bpg_first = first == "bpg"
        await stack.apply(bpg=bpg_first)
        await _unchanged_by_both(stack, bpg_first=bpg_first)
        await stack.destroy(bpg=not bpg_first)
        assert running.on_loop(lambda: dict(running.world.guests.all())) == {}

    driven(tofu, running, tmp_path, scenario, PROXMOX_VE_SSH_PASSWORD=running.password)


@pytest.mark.parametrize("second", ["built-in", "bpg"])
@pytest.mark.parametrize("first", ["built-in", "bpg"])
def test_what_one_provider_changes_the_other_leaves_alone(
    tofu: Engine, running: lab.Running, tmp_path: Path, first: str, second: str
) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(stack_of({name: case.before for name, case in CHANGES.items()}))
        await stack.init()
        await stack.apply(bpg=first == "bpg")
        stack.write(stack_of({name: case.after for name, case in CHANGES.items()}))
        said = await stack.apply(bpg=second == "bpg")
        assert f"0 added, {len(CHANGES)} changed, 0 destroyed" in said
        await _unchanged_by_both(stack, bpg_first=second == "bpg")

    driven(tofu, running, tmp_path, scenario, PROXMOX_VE_SSH_PASSWORD=running.password)


@pytest.mark.parametrize("first", ["built-in", "bpg"])
def test_what_one_provider_clones_the_other_leaves_alone(
    tofu: Engine, running: lab.Running, tmp_path: Path, first: str
) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(stack_of(CLONES))
        await stack.init()
        await stack.apply(bpg=first == "bpg")
        await _unchanged_by_both(stack, bpg_first=first == "bpg")

    driven(tofu, running, tmp_path, scenario)


def test_both_providers_replace_the_same(tofu: Engine, running: lab.Running, tmp_path: Path) -> None:
    # bpg means to replace a container whose disk is to be smaller, and fails in the apply.
    cases = {name: case for name, case in REPLACED.items() if name != "smaller"}

    async def scenario(stack: Stack) -> None:
        stack.write(stack_of({name: case.before for name, case in cases.items()}))
        await stack.init()
        await stack.apply(bpg=True)
        stack.write(stack_of({name: case.after for name, case in cases.items()}))
        for bpg in (False, True):
            said = await stack.plan(status=2, bpg=bpg)
            assert said.count("must be replaced") == len(cases)

    driven(tofu, running, tmp_path, scenario)


@pytest.mark.parametrize("first", ["built-in", "bpg"])
def test_a_rendered_container_is_the_same_for_both(
    tofu: Engine, running: lab.Running, tmp_path: Path, first: str
) -> None:
    plain = {**FULL["containers"][0], "template": TEMPLATE, "depends_on": []}
    more = {
        **plain,
        "key": "web",
        "name": "web",
        "vm_id": 300,
        "tags": ["b", "a"],
        "startup": {"order": 2},
        "memory": {"dedicated_mib": 700},
        "environment": [("A", "1")],
        "nics": [{"ipv4": "10.7.0.2/24", "gateway4": "10.7.0.1", "vlan": 4}],
    }
    rendered = render(Desired.model_validate({"containers": [plain, more]}))

    async def scenario(stack: Stack) -> None:
        for name, data in rendered.files.items():
            (stack.folder / name).write_bytes(data)
        await stack.init()
        await stack.apply(bpg=first == "bpg")
        await _unchanged_by_both(stack, bpg_first=first == "bpg")

    driven(tofu, running, tmp_path, scenario)
