"""Whatever goes wrong once at any call that makes a container: the next apply ends well, with exactly one."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from tests.support.lab_consistency import problems_in
from tests.support.provider_bench import Failed, bench
from tests.support.provider_container import TEMPLATE, plant_templates_here

from stackyard import lab

CONTAINER = "proxmox_virtual_environment_container"
MADE: dict[str, Any] = {
    "node_name": "pve1",
    "vm_id": 200,
    "description": "made with care",
    "disk": [{"datastore_id": "local-lvm", "size": 1}],
    "mount_point": [{"volume": "local-lvm", "size": "1G", "path": "/data"}],
    "initialization": [{"hostname": "made", "ip_config": [{"ipv4": [{"address": "dhcp"}]}]}],
    "network_interface": [{"name": "eth0"}],
    "operating_system": [{"template_file_id": TEMPLATE, "type": "debian"}],
}
UNNUMBERED = {name: value for name, value in MADE.items() if name != "vm_id"}
CLONED: dict[str, Any] = {
    "node_name": "pve1",
    "clone": [{"vm_id": 900}],
    "disk": [{"datastore_id": "local-lvm", "size": 3}],
    "initialization": [{"hostname": "copy"}],
    "memory": [{"dedicated": 700}],
}
FAULTS: list[dict[str, Any]] = [
    {"kind": "drop", "when": "before"},
    {"kind": "drop", "when": "after"},
    {"kind": "answer", "when": "before", "status": 500, "reason": "got bored"},
    {"kind": "answer", "when": "after", "status": 500, "reason": "got bored"},
    {"kind": "answer", "when": "after", "status": 596, "reason": "Broken pipe"},
    {"kind": "answer", "when": "before", "status": 500, "reason": "can't lock file 'x' - got timeout"},
    {"kind": "answer", "when": "before", "status": 500, "reason": "CT is locked (backup)"},
]
MOST_CALLS = 60
LATE = [(task, step) for task in ("vzcreate", "vzstart", "vzclone", "resize") for step in (0, 1)]


def names(fault: dict[str, Any]) -> str:
    return "-".join(map(str, fault.values()))[:40]


# After the work by a lost connection, and before it by an answer; the others are
# much like these, and for the long runs.
OFTEN = [FAULTS[1], FAULTS[2]]
SWEPT = [
    pytest.param(fault, id=names(fault), marks=() if fault in OFTEN else pytest.mark.soak) for fault in FAULTS
]


async def have_source(running: lab.Running) -> None:
    """Have a template to make containers from, and a container to clone."""
    plant_templates_here(running)
    async with bench(running) as it:
        await it.apply(CONTAINER, **{**MADE, "vm_id": 900, "started": False, "mount_point": []})


async def settle(running: lab.Running, journal: Path, fault: dict[str, Any], config: dict[str, Any]) -> int:
    """Make a container with a fault, then again in another process; return how often it struck."""
    before = set(running.world.guests.all())
    async with bench(running, journal) as it:
        name = running.add_fault(**fault)
        with contextlib.suppress(Failed):
            await it.apply(CONTAINER, **config)
        _, _, strikes = running.world.faults.rules()[name]
        running.remove_fault(name)
        states, tainted = it.states, it.tainted
    async with bench(running, journal) as it:
        it.states, it.tainted = states, tainted
        await it.apply(CONTAINER, **config)
        assert await it.is_settled(CONTAINER, **config)
        assert len(set(running.world.guests.all()) - before) == 1
        assert it.session.journal.entries == ()
        await it.remove(CONTAINER)
    assert set(running.world.guests.all()) == before
    assert problems_in(running.world) == []
    return int(strikes)


@pytest.mark.parametrize("fault", SWEPT)
@pytest.mark.parametrize("config", [MADE, CLONED], ids=["made", "cloned"])
async def test_the_next_apply_ends_well_with_one_container(
    config: dict[str, Any], fault: dict[str, Any], tmp_path: Path
) -> None:
    async with lab.start(nodes=("pve1", "pve2")) as running:
        await have_source(running)
        for nth in range(1, MOST_CALLS):
            if not await settle(running, tmp_path, fault | {"nth": nth}, config):
                break
        assert 5 < nth < MOST_CALLS


@pytest.mark.parametrize(("task", "step"), LATE)
async def test_a_task_that_fails_late_leaves_one_container_in_the_end(
    task: str, step: int, tmp_path: Path
) -> None:
    fault = {"kind": "task", "task": task, "step": step, "text": "no luck", "times": 1}

    async with lab.start(nodes=("pve1", "pve2")) as running:
        await have_source(running)
        assert await settle(running, tmp_path, fault, CLONED if task in ("vzclone", "resize") else MADE) == 1


@pytest.mark.parametrize("fault", [*SWEPT[:4], pytest.param(None, id="none")])
@pytest.mark.parametrize("config", [UNNUMBERED, CLONED], ids=["made", "cloned"])
async def test_what_a_killed_run_made_is_taken_over(
    config: dict[str, Any], fault: dict[str, Any] | None, tmp_path: Path
) -> None:
    """A run that is killed loses its state, wherever it was; the journal is left."""

    async def killed(running: lab.Running, nth: int) -> int:
        before = set(running.world.guests.all())
        async with bench(running, tmp_path) as it:
            name = running.add_fault(**(fault or {"kind": "delay", "seconds": 0}), nth=nth)
            with contextlib.suppress(Failed):
                await it.apply(CONTAINER, **config)
            _, _, strikes = running.world.faults.rules()[name]
            running.remove_fault(name)
        made = set(running.world.guests.all()) - before
        async with bench(running, tmp_path) as it:
            await it.apply(CONTAINER, **config)
            assert made <= set(running.world.guests.all())
            assert len(set(running.world.guests.all()) - before) == 1
            assert await it.is_settled(CONTAINER, **config)
            await it.remove(CONTAINER)
        assert problems_in(running.world) == []
        return int(strikes) if fault else 0

    async with lab.start(nodes=("pve1", "pve2")) as running:
        await have_source(running)
        for nth in range(1, MOST_CALLS):
            if not await killed(running, nth):
                break
        assert nth < MOST_CALLS


CHANGED: dict[str, Any] = {
    **MADE,
    "description": "changed with care",
    "memory": [{"dedicated": 800}],
    "disk": [{"datastore_id": "local-lvm", "size": 2, "mount_options": ["noatime"]}],
    "network_interface": [{"name": "eth0"}, {"name": "eth1"}],
}


@pytest.mark.parametrize("fault", SWEPT)
@pytest.mark.parametrize("started", [True, False], ids=["running", "stopped"])
async def test_a_change_that_was_broken_off_is_finished(
    fault: dict[str, Any], tmp_path: Path, *, started: bool
) -> None:
    config = {**CHANGED, "started": started}

    async with lab.start(nodes=("pve1", "pve2")) as running:
        await have_source(running)
        for nth in range(1, MOST_CALLS):
            async with bench(running, tmp_path) as it:
                await it.apply(CONTAINER, **MADE)
                name = running.add_fault(**fault, nth=nth)
                with contextlib.suppress(Failed):
                    await it.apply(CONTAINER, **config)
                _, _, strikes = running.world.faults.rules()[name]
                running.remove_fault(name)
                await it.apply(CONTAINER, **config)
                assert await it.is_settled(CONTAINER, **config)
                await it.remove(CONTAINER)
            if not strikes:
                break
        assert 5 < nth < MOST_CALLS


@pytest.mark.parametrize("fault", SWEPT)
async def test_a_removal_that_was_broken_off_is_finished(fault: dict[str, Any], tmp_path: Path) -> None:
    async with lab.start(nodes=("pve1", "pve2")) as running:
        await have_source(running)
        for nth in range(1, MOST_CALLS):
            async with bench(running, tmp_path) as it:
                await it.apply(CONTAINER, **MADE)
                name = running.add_fault(**fault, nth=nth)
                with contextlib.suppress(Failed):
                    await it.remove(CONTAINER)
                _, _, strikes = running.world.faults.rules()[name]
                running.remove_fault(name)
                if CONTAINER in it.states:
                    await it.remove(CONTAINER)
            assert set(running.world.guests.all()) == {"900"}
            if not strikes:
                break
        assert 3 < nth < MOST_CALLS


async def test_processes_that_make_containers_at_once_never_share_a_number() -> None:
    async def make(running: lab.Running, name: str) -> int:
        async with bench(running) as it:
            config = {**UNNUMBERED, "initialization": [{"hostname": name}]}
            return int((await it.apply(CONTAINER, **config))["vm_id"])

    async with lab.start(nodes=("pve1", "pve2")) as running:
        plant_templates_here(running)
        made = await asyncio.gather(*(make(running, f"ct{i}") for i in range(8)))
        assert sorted(made) == list(range(100, 108))


async def test_a_clone_of_what_does_not_exist_leaves_nothing(tmp_path: Path) -> None:
    async with lab.start(nodes=("pve1", "pve2")) as running, bench(running, tmp_path) as it:
        with pytest.raises(Failed, match="E-PROXMOX-MISSING"):
            await it.apply(CONTAINER, **CLONED)
        assert it.states == {}
        assert running.world.guests.all() == {}


async def test_a_password_is_in_no_error(tmp_path: Path) -> None:
    account = {"password": "canary-of-the-test", "keys": ["not a key"]}
    config = {**MADE, "initialization": [{"hostname": "made", "user_account": [account]}]}

    async with lab.start(nodes=("pve1",)) as running, bench(running, tmp_path) as it:
        plant_templates_here(running)
        with pytest.raises(Failed) as caught:
            await it.apply(CONTAINER, **config)
        assert "canary" not in str(caught.value)
        assert it.states == {}
    assert b"canary" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
