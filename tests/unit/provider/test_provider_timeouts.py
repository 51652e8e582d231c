"""The timeouts of resources: how they are read, and what happens when one runs out."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.lab import ROOMY
from tests.support.provider_bench import Bench, Failed, bench
from tests.support.provider_container import TEMPLATE, plant_templates_here
from tests.support.web import served

from pvelab.faults.latency import Work
from stackyard import lab
from stackyard.provider.durations import duration_s, is_duration
from stackyard.provider.time_limits import TimeLimitError, time_limit

VM, CONTAINER = "proxmox_virtual_environment_vm", "proxmox_virtual_environment_container"
NEW_VM, CLONED, DOWNLOAD = "proxmox_vm", "proxmox_cloned_vm", "proxmox_download_file"
SMALL: dict[str, Any] = {
    "node_name": "pve1",
    "vm_id": 300,
    "started": False,
    "disk": [{"datastore_id": "local-lvm", "size": 1}],
    "operating_system": [{"template_file_id": TEMPLATE, "type": "debian"}],
}


@contextlib.asynccontextmanager
async def run() -> AsyncIterator[tuple[Bench, lab.Running]]:
    """Give a bench whose lab has a VM to clone, 900."""
    async with lab.start(seed=ROOMY, nodes=("pve1", "pve2")) as running, bench(running) as it:
        plant_templates_here(running)
        disk = [{"interface": "scsi0", "size": 1, "datastore_id": "local-lvm"}]
        await it.apply(VM, node_name="pve1", vm_id=900, started=False, disk=disk)
        del it.states[VM]
        yield it, running


def slow(running: lab.Running, *work: Work, seconds: float = 5.0) -> None:
    running.world.latency.overrides_s = dict.fromkeys(work, seconds)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("1h30m", 5400), ("1.5m", 90), ("250ms", 0.25), ("0", 0), ("-1s", -1), ("2µs", 2e-6)],
)
def test_a_duration_is_read_as_go_reads_it(text: str, seconds: float) -> None:
    assert duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "5", "1 h", "1d", "m", "1m2", "10 s", "1h-5m"])
def test_a_text_that_is_no_duration_is_refused(text: str) -> None:
    assert is_duration(text) == "must be a duration such as 15m"


async def test_time_that_begins_again_is_not_over() -> None:
    async with time_limit(0.2, what="It", setting="timeouts.create") as restart:
        await asyncio.sleep(0.15)
        restart()
        await asyncio.sleep(0.1)


async def test_a_timeout_of_somebody_else_is_not_ours() -> None:
    with pytest.raises(TimeoutError):
        async with time_limit(5, what="It", setting="timeouts.create"), asyncio.timeout(0.01):
            await asyncio.sleep(1)
    with pytest.raises(TimeLimitError, match=r"It did not end within 0.01 s \(`timeouts.create`\)"):
        async with time_limit(0.01, what="It", setting="timeouts.create"):
            await asyncio.sleep(1)


CREATED = [
    pytest.param(
        NEW_VM,
        {"node_name": "pve1", "id": 300, "timeouts": {"create": "200ms"}},
        Work.CREATE,
        r"on VM 300 did not end within 0.2 s \(`timeouts.create`\)",
        id="vm2",
    ),
    pytest.param(
        CLONED,
        {"node_name": "pve1", "id": 300, "clone": {"source_vm_id": 900}, "timeouts": {"create": "0.2s"}},
        Work.CLONE,
        r"on VM 300 did not end within 0.2 s \(`timeouts.create`\)",
        id="cloned_vm",
    ),
    pytest.param(
        VM,
        {"node_name": "pve1", "vm_id": 300, "name": "web", "timeout_create": 1},
        Work.CREATE,
        r"creation of VM web did not end within 1 s \(`timeout_create`\)",
        id="vm",
    ),
    pytest.param(
        VM,
        {"node_name": "pve1", "vm_id": 300, "clone": [{"vm_id": 900}], "timeout_clone": 1},
        Work.CLONE,
        r"creation of VM 300 did not end within 1 s \(`timeout_clone`\)",
        id="vm-clone",
    ),
    pytest.param(
        CONTAINER,
        {**SMALL, "timeout_create": 1},
        Work.CREATE,
        r"creation of container 300 did not end within 1 s \(`timeout_create`\)",
        id="container",
    ),
]


@pytest.mark.parametrize(("kind", "config", "work", "message"), CREATED)
async def test_a_creation_that_takes_too_long_says_so_and_is_completed_by_the_next(
    kind: str, config: dict[str, Any], work: Work, message: str
) -> None:
    async with run() as (it, running):
        slow(running, work, seconds=2.0)
        with pytest.raises(Failed, match=f"E-PROVIDER-TIMEOUT.*{message}"):
            await it.apply(kind, **config)
        slow(running)
        it.session.journal.begin_run()
        patient = {key: value for key, value in config.items() if not key.startswith("timeout")}
        await it.apply(kind, **patient)
        assert await it.is_settled(kind, **patient)
        assert sorted(running.world.guests.all()) == ["300", "900"]


async def test_what_waits_for_other_clones_has_its_time_still() -> None:
    async with run() as (it, running), bench(running) as other:
        slow(running, Work.CLONE, seconds=0.7)
        other.session.clones = it.session.clones
        config = {"node_name": "pve1", "started": False, "clone": {"source_vm_id": 900}}
        limited = {**config, "timeouts": {"create": "1.2s"}}
        await asyncio.gather(it.apply(CLONED, id=301, **limited), other.apply(CLONED, id=302, **limited))
        assert {"301", "302"} <= running.world.guests.all().keys()


async def test_a_change_and_a_removal_that_take_too_long_say_so() -> None:
    async with run() as (it, running):
        config = {"node_name": "pve1", "id": 300, "stop_on_destroy": True}
        await it.apply(NEW_VM, **config)
        slow(running, Work.CONFIG, Work.MIGRATE, Work.DELETE)
        with pytest.raises(Failed, match=r"'update' on VM 300 .* \(`timeouts.update`\)"):
            await it.apply(NEW_VM, **{**config, "node_name": "pve2", "timeouts": {"update": "300ms"}})
        it.states[NEW_VM]["timeouts"] = {"delete": "300ms"}
        with pytest.raises(Failed, match=r"'delete' on VM 300 .* \(`timeouts.delete`\)"):
            await it.remove(NEW_VM)
        assert NEW_VM in it.states


async def test_a_change_of_a_container_that_takes_too_long_says_so() -> None:
    async with run() as (it, running):
        await it.apply(CONTAINER, **SMALL)
        slow(running, Work.START)
        with pytest.raises(Failed, match=r"change of container 300 .* 1 s \(`timeout_update`\)"):
            await it.apply(CONTAINER, **{**SMALL, "started": True, "timeout_update": 1})


async def test_a_download_that_takes_too_long_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.img").write_bytes(b"one")
    with served(tmp_path) as url:
        async with run() as (it, running):
            slow(running, Work.DOWNLOAD)
            config = {"node_name": "pve1", "datastore_id": "local", "content_type": "iso"}
            with pytest.raises(Failed, match=r"download to local on pve1 .* 1 s \(`upload_timeout`\)"):
                await it.apply(DOWNLOAD, **config, url=f"{url}/a.img", upload_timeout=1)


async def test_a_vm_that_its_manager_does_not_start_in_time_is_an_error() -> None:
    async with run() as (it, running):
        config = {"node_name": "pve1", "vm_id": 300, "timeout_start_vm": 1}
        await it.apply(VM, **config, started=False)
        await it.session.client.post("/cluster/ha/resources", {"sid": "vm:300", "state": "stopped"})
        slow(running, Work.HA, seconds=60.0)
        with pytest.raises(Failed, match=r"until VM 300 is running did not end .* \(`timeout_start_vm`\)"):
            await it.apply(VM, **config, started=True)
