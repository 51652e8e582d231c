"""Whatever goes wrong once at any call that makes a VM: the next apply ends well, with exactly one VM."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.lab import ROOMY
from tests.support.lab_consistency import problems_in
from tests.support.provider_bench import Failed, bench

from stackyard import lab

VM = "proxmox_virtual_environment_vm"
MADE: dict[str, Any] = {
    "node_name": "pve1",
    "name": "web",
    "disk": [{"interface": "scsi0", "size": 2, "datastore_id": "local-lvm"}],
    "initialization": [{"datastore_id": "local-lvm"}],
}
CLONED: dict[str, Any] = {
    "node_name": "pve2",
    "name": "copy",
    "clone": [{"vm_id": 900, "node_name": "pve1"}],
    "disk": [{"interface": "scsi0", "size": 3, "datastore_id": "local-lvm"}],
    "cpu": [{"cores": 2}],
}
# The same with bpg's framework: everything in the configuration is managed, or only what it names.
NEW: dict[str, Any] = {
    "node_name": "pve1",
    "name": "web",
    "cpu": {"cores": 2},
    "cdrom": {"ide2": {}},
    "tags": ["a"],
}
COPY: dict[str, Any] = {
    "node_name": "pve2",
    "name": "copy",
    "clone": {"source_vm_id": 900, "source_node_name": "pve1"},
    "disk": {"scsi0": {"size_gb": 3}, "scsi1": {"datastore_id": "local-lvm", "size_gb": 1}},
    "network": {"net0": {"bridge": "vmbr0", "tag": 7}},
    "stop_on_destroy": True,
}
KINDS = {
    "made": (VM, MADE),
    "cloned": (VM, CLONED),
    "framework-made": ("proxmox_vm", NEW),
    "framework-cloned": ("proxmox_cloned_vm", COPY),
}
FAULTS: list[dict[str, Any]] = [
    {"kind": "drop", "when": "before"},
    {"kind": "drop", "when": "after"},
    {"kind": "answer", "when": "before", "status": 500, "reason": "got bored"},
    {"kind": "answer", "when": "after", "status": 500, "reason": "got bored"},
    {"kind": "answer", "when": "after", "status": 596, "reason": "Broken pipe"},
    {"kind": "answer", "when": "before", "status": 500, "reason": "can't lock file 'x' - got timeout"},
]
MOST_CALLS = 60
LATE = [("qmcreate", 0), ("qmcreate", 1), ("qmstart", 0), ("qmstart", 1), ("qmclone", 0), ("qmclone", 1)]


def names(fault: dict[str, Any]) -> str:
    return "-".join(map(str, fault.values()))[:40]


# After the work by a lost connection, and before it by an answer; the others are
# much like these, and for the long runs.
OFTEN = [FAULTS[1], FAULTS[2]]
SWEPT = [
    pytest.param(fault, id=names(fault), marks=() if fault in OFTEN else pytest.mark.soak) for fault in FAULTS
]


async def settle(running: lab.Running, journal: Path, fault: dict[str, Any], which: str) -> int:
    """Make a VM with a fault, then again in another process; return how often it struck."""
    kind, config = KINDS[which]
    before = set(running.world.guests.all())
    async with bench(running, journal) as it:
        name = running.add_fault(**fault)
        with contextlib.suppress(Failed):
            await it.apply(kind, **config)
        _, _, strikes = running.world.faults.rules()[name]
        running.remove_fault(name)
        states, tainted = it.states, it.tainted
    async with bench(running, journal) as it:
        it.states, it.tainted = states, tainted
        await it.apply(kind, **config)
        assert await it.is_settled(kind, **config)
        made = set(running.world.guests.all()) - before
        assert len(made) == 1
        assert it.session.journal.entries == ()
        await it.remove(kind)
    assert set(running.world.guests.all()) == before
    assert problems_in(running.world) == []
    return int(strikes)


@contextlib.asynccontextmanager
async def template(running: lab.Running) -> AsyncIterator[None]:
    """Have a template to clone."""
    async with bench(running) as it:
        await it.apply(
            VM,
            node_name="pve1",
            vm_id=900,
            started=False,
            template=True,
            disk=[{"interface": "scsi0", "size": 1, "datastore_id": "local-lvm"}],
            network_device=[{"bridge": "vmbr0"}],
        )
    yield


@pytest.mark.parametrize("fault", SWEPT)
@pytest.mark.parametrize("which", KINDS)
async def test_the_next_apply_ends_well_with_one_vm(
    which: str, fault: dict[str, Any], tmp_path: Path
) -> None:
    async with lab.start(seed=ROOMY, nodes=("pve1", "pve2")) as running, template(running):
        for nth in range(1, MOST_CALLS):
            if not await settle(running, tmp_path, fault | {"nth": nth}, which):
                break
        assert 5 < nth < MOST_CALLS


@pytest.mark.parametrize(("task", "step"), LATE)
async def test_a_task_that_fails_late_leaves_one_vm_in_the_end(task: str, step: int, tmp_path: Path) -> None:
    fault = {"kind": "task", "task": task, "step": step, "text": "no luck", "times": 1}

    async with lab.start(seed=ROOMY, nodes=("pve1", "pve2")) as running, template(running):
        assert await settle(running, tmp_path, fault, "cloned" if task == "qmclone" else "made") == 1


@pytest.mark.parametrize("which", KINDS)
async def test_while_nothing_can_be_read_nothing_is_forgotten(which: str, tmp_path: Path) -> None:
    """The call that makes it is answered, and then every read fails for the rest of the run."""
    fault = {
        "kind": "answer",
        "status": 500,
        "reason": "got bored",
        "method": "GET",
        "path": "/nodes/*/tasks/*",
    }

    async with lab.start(seed=ROOMY, nodes=("pve1", "pve2")) as running, template(running):
        assert await settle(running, tmp_path, fault, which) > 0


CHANGED: dict[str, Any] = {
    **MADE,
    "vm_id": 150,
    "cpu": [{"cores": 2}],
    "disk": [
        {"interface": "scsi0", "size": 3, "datastore_id": "local", "discard": "on"},
        {"interface": "scsi1", "size": 1, "datastore_id": "local-lvm"},
    ],
    "initialization": [{"datastore_id": "local-lvm", "user_account": [{"username": "ops"}]}],
    "network_device": [{"bridge": "vmbr0"}],
}


async def settle_change(running: lab.Running, journal: Path, fault: dict[str, Any], *, removing: bool) -> int:
    """Change or remove a VM with a fault, then again; return how often it struck."""
    async with bench(running, journal) as it:
        await it.apply(VM, **MADE, vm_id=150)
        name = running.add_fault(**fault)
        with contextlib.suppress(Failed):
            await (it.remove(VM) if removing else it.apply(VM, **CHANGED))
        _, _, strikes = running.world.faults.rules()[name]
        running.remove_fault(name)
        if removing:
            if await it.refresh(VM) is not None:
                await it.remove(VM)
        else:
            await it.apply(VM, **CHANGED)
            assert await it.is_settled(VM, **CHANGED)
            config = dict(running.world.guests.all()["150"]["config"])
            assert [key for key in config if key.startswith("unused")] == []
            await it.remove(VM)
    assert dict(running.world.guests.all()) == {}
    assert problems_in(running.world) == []
    return int(strikes)


@pytest.mark.parametrize("fault", SWEPT)
@pytest.mark.parametrize("removing", [False, True], ids=["changed", "removed"])
async def test_a_change_or_removal_that_failed_is_completed_by_the_next(
    removing: bool, fault: dict[str, Any], tmp_path: Path
) -> None:
    async with lab.start(seed=ROOMY, nodes=("pve1", "pve2")) as running:
        for nth in range(1, MOST_CALLS):
            if not await settle_change(running, tmp_path, fault | {"nth": nth}, removing=removing):
                break
        assert 3 < nth < MOST_CALLS


async def test_a_full_storage_is_named_and_repaired(tmp_path: Path) -> None:
    async with lab.start(seed=ROOMY, nodes=("pve1", "pve2")) as running, bench(running, tmp_path) as it:
        name = running.add_fault("storage-full", storage="local-lvm")
        with pytest.raises(Failed, match=r"local-lvm|space"):
            await it.apply(VM, **MADE)
        assert dict(running.world.guests.all()) == {}
        running.remove_fault(name)
        await it.apply(VM, **MADE)
        assert len(running.world.guests.all()) == 1
