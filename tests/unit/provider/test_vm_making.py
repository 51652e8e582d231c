"""Making VMs: from images, as clones, many at once, and again after a run that was killed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.provider_bench import Bench, Failed, bench

from pvelab.faults.latency import Work as LabWork
from stackyard import lab
from stackyard.clients.objects import ABSENT, MemoryObjects, StoreError, open_objects
from stackyard.clients.objects.open_store import DATABASE
from stackyard.provider.journal import Journal, subject_of
from stackyard.provider.values import UNKNOWN

VM = "proxmox_virtual_environment_vm"
GIB = 2**30

Scenario = Callable[[Bench, lab.Running], Awaitable[None]]


def run(scenario: Scenario, journal: Path | None = None, **options: Any) -> None:
    async def whole() -> None:
        async with lab.start(nodes=("pve1", "pve2"), **options) as running, bench(running, journal) as it:
            await scenario(it, running)

    asyncio.run(whole())


def add_image(running: lab.Running, volume: str, content: str) -> None:
    with running.world.store.transaction():
        running.world.volumes.add(
            volume, "pve1", 600 * 2**20, content=content, format="qcow2", virtual_size=3 * GIB
        )


def guests(running: lab.Running) -> dict[str, Any]:
    return dict(running.world.guests.all())


@pytest.mark.parametrize(
    ("attribute", "volume"),
    [
        ("import_from", "local:import/a.qcow2"),
        ("file_id", "local:import/a.qcow2"),
        ("file_id", "local:iso/a.img"),
    ],
)
def test_a_disk_begins_with_an_image_and_has_the_size_that_is_asked_for(attribute: str, volume: str) -> None:
    async def scenario(it: Bench, running: lab.Running) -> None:
        add_image(running, volume, volume.partition(":")[2].partition("/")[0])
        config: dict[str, Any] = {
            "node_name": "pve1",
            "vm_id": 100,
            "disk": [{"interface": "scsi0", "size": 10, attribute: volume, "discard": "on"}],
        }
        state = await it.apply(VM, **config)
        assert state["disk"][0]["size"] == 10
        drive = guests(running)["100"]["config"]["scsi0"]
        assert "size=10G" in drive
        assert "discard=on" in drive
        assert not [key for key in guests(running)["100"]["config"] if key.startswith("unused")]
        assert await it.is_settled(VM, **config)
        added = {**config, "disk": [*config["disk"], {**config["disk"][0], "interface": "scsi1"}]}
        await it.apply(VM, **added)
        assert "size=10G" in guests(running)["100"]["config"]["scsi1"]
        assert await it.is_settled(VM, **added)

    run(scenario, ssh_port=0 if "iso" in volume else None)


def test_a_disk_smaller_than_its_image_is_refused_by_name() -> None:
    async def scenario(it: Bench, running: lab.Running) -> None:
        add_image(running, "local:import/a.qcow2", "import")
        disk = {"interface": "scsi0", "size": 2, "import_from": "local:import/a.qcow2"}
        with pytest.raises(Failed, match=r"Disk scsi0 has 2 GiB, and its image \S+ has 3\.0 GiB"):
            await it.apply(VM, node_name="pve1", vm_id=100, disk=[disk])

    run(scenario)


async def make_template(it: Bench, vm_id: int = 900) -> None:
    await it.apply(
        VM,
        node_name="pve1",
        vm_id=vm_id,
        started=False,
        template=True,
        disk=[{"interface": "scsi0", "size": 1}],
    )
    await it.session.journal.confirm_all()
    it.states.clear()


def test_clones_to_one_storage_go_one_after_the_other() -> None:
    async def scenario(it: Bench, running: lab.Running) -> None:
        await make_template(it)
        at_once: list[int] = []

        async def watch() -> None:
            while True:
                making = [
                    guest for guest in guests(running).values() if guest["config"].get("lock") == "clone"
                ]
                at_once.append(len(making))
                await asyncio.sleep(0.01)

        watching = asyncio.create_task(watch())
        known = it.known(VM)
        plans = [
            it.plan(VM, node_name="pve1", started=False, name=f"c{number}", clone=[{"vm_id": 900}]).state
            for number in range(5)
        ]
        results = await asyncio.gather(*(it.operations.apply(known, VM, None, planned) for planned in plans))
        watching.cancel()
        assert [one.problems for one in results] == [[]] * 5
        assert len({one.state["vm_id"] for one in results if one.state}) == 5
        assert max(at_once) == 1

    run(scenario, latency_s={LabWork.CLONE: 0.1})


def test_vms_without_a_number_get_each_their_own_although_others_take_some() -> None:
    async def scenario(it: Bench, running: lab.Running) -> None:
        known = it.known(VM)

        async def other() -> None:
            for vm_id in (101, 103, 105):
                await it.session.client.post("/nodes/pve2/qemu", {"vmid": vm_id})

        plans = [
            it.plan(VM, node_name="pve1", started=False, name=f"n{number}").state for number in range(12)
        ]
        made = asyncio.gather(*(it.operations.apply(known, VM, None, planned) for planned in plans))
        _, results = await asyncio.gather(other(), made)
        assert [one.problems for one in results] == [[]] * 12
        numbers = {one.state["vm_id"] for one in results if one.state}
        assert len(numbers) == 12
        assert not numbers & {101, 103, 105}
        assert len(guests(running)) == 15

    run(scenario)


KILLED: dict[str, dict[str, Any]] = {
    "made": {"node_name": "pve1", "name": "web", "disk": [{"interface": "scsi0", "size": 2}]},
    "numbered": {"node_name": "pve1", "vm_id": 321},
    "nameless": {"node_name": "pve1", "description": "only one like this"},
    "cloned": {"node_name": "pve2", "name": "copy", "clone": [{"vm_id": 900, "node_name": "pve1"}]},
}


@pytest.mark.parametrize("config", KILLED.values(), ids=KILLED)
def test_what_a_killed_run_was_making_is_taken_over(config: dict[str, Any], tmp_path: Path) -> None:
    async def scenario(it: Bench, running: lab.Running) -> None:
        await make_template(it)
        begun = asyncio.create_task(it.apply(VM, **config))
        # Killed while Proxmox is at work: nothing of it can be told to anybody.
        while len(guests(running)) < 2:
            await asyncio.sleep(0.01)
        begun.cancel()
        async with bench(running, tmp_path) as other:
            state = await other.apply(VM, **config)
            assert len(guests(running)) == 2
            assert str(state["vm_id"]) in guests(running)
            assert await other.is_settled(VM, **config)
            assert other.session.journal.entries == ()
            assert "stackyard" not in str(guests(running)[str(state["vm_id"])]["config"].get("description"))

    run(scenario, tmp_path, latency_s={LabWork.CREATE: 0.4, LabWork.CLONE: 0.4, LabWork.MIGRATE: 0.2})


def test_a_made_vm_that_never_came_into_the_state_is_taken_over(tmp_path: Path) -> None:
    async def scenario(it: Bench, running: lab.Running) -> None:
        config = {"node_name": "pve1", "name": "web"}
        first = await it.apply(VM, **config)
        # The engine was killed before it stored the state; the configuration has changed since.
        async with bench(running, tmp_path) as other:
            second = await other.apply(VM, **config, cpu=[{"cores": 2}], tags=["x"])
            assert second["vm_id"] == first["vm_id"]
            assert guests(running)[str(first["vm_id"])]["config"]["cores"] == 2
            assert len(guests(running)) == 1

    run(scenario, tmp_path)


def test_a_vm_of_somebody_else_is_never_taken_over(tmp_path: Path) -> None:
    async def scenario(it: Bench, running: lab.Running) -> None:
        journal = Journal(open_objects(tmp_path), "test")
        planned = it.plan(VM, node_name="pve1", vm_id=400).state
        assert planned is not None
        await journal.begin(subject_of(VM, planned), node="pve1", vm_id=400)
        await it.session.client.post("/nodes/pve1/qemu", {"vmid": 400, "name": "of-another"})
        async with bench(running, tmp_path) as other:
            with pytest.raises(Failed, match="The vm id 400 is taken: VM of-another on pve1 has it"):
                await other.apply(VM, node_name="pve1", vm_id=400)
        assert guests(running)["400"]["config"]["name"] == "of-another"

    run(scenario, tmp_path)


def test_two_alike_in_one_run_are_two(tmp_path: Path) -> None:
    async def scenario(it: Bench, running: lab.Running) -> None:
        known = it.known(VM)
        planned = it.plan(VM, node_name="pve1", name="same", started=False).state
        for _ in range(2):
            assert (await it.operations.apply(known, VM, None, planned)).problems == []
        assert len(guests(running)) == 2

    run(scenario, tmp_path)


def test_an_entry_goes_when_the_state_is_stored(tmp_path: Path) -> None:
    async def scenario(it: Bench, running: lab.Running) -> None:
        await it.apply(VM, node_name="pve1", name="web", started=False)
        assert len(it.session.journal.entries) == 1
        assert len(Journal(open_objects(tmp_path), "test").entries) == 1
        await it.session.journal.confirm_all()
        assert not list(it.session.journal.entries)
        assert not Journal(open_objects(tmp_path), "test").entries

    run(scenario, tmp_path)


def test_addresses_come_from_the_agent() -> None:
    async def scenario(it: Bench, running: lab.Running) -> None:
        state = await it.apply(
            VM,
            node_name="pve1",
            agent=[{"enabled": True, "timeout": "30s"}],
            network_device=[{"bridge": "vmbr0"}],
            initialization=[{"ip_config": [{"ipv4": [{"address": "10.9.8.7/24"}]}]}],
        )
        assert ["10.9.8.7"] in state["ipv4_addresses"]
        assert "lo" in state["network_interface_names"]
        assert it.last.problems == []

    run(scenario)


def test_an_agent_that_never_answers_is_a_warning() -> None:
    async def scenario(it: Bench, running: lab.Running) -> None:
        running.add_fault("agent-silent")
        await it.apply(VM, node_name="pve1", agent=[{"enabled": True, "timeout": "1s"}])
        assert [one.is_error for one in it.last.problems] == [False]
        assert "agent" in it.last.problems[0].summary

    run(scenario)


def test_an_interrupted_wait_for_the_agent_leaves_a_whole_vm() -> None:
    async def scenario(it: Bench, running: lab.Running) -> None:
        running.add_fault("agent-silent")
        config = {"node_name": "pve1", "agent": [{"enabled": True, "timeout": "5m"}]}
        making = asyncio.create_task(it.apply(VM, **config))
        # It waits once it has asked the agent and was not answered.
        while not any("/agent/" in entry.path for entry in running.world.journal.entries()):
            await asyncio.sleep(0.01)
        it.session.stop()
        await making
        it.session.stopping.clear()
        assert not it.tainted
        assert await it.is_settled(VM, **config)

    run(scenario)


def test_an_entry_is_found_by_what_its_user_says() -> None:
    named = {"name": "web", "vm_id": UNKNOWN, "memory": 1}
    assert subject_of(VM, named) == subject_of(VM, {**named, "memory": 2})
    assert subject_of(VM, {"name": "a", "vm_id": 7}).key == subject_of(VM, {"name": "b", "vm_id": 7}).key
    plain = {"name": "", "vm_id": UNKNOWN, "memory": 1}
    assert subject_of(VM, plain) == subject_of(VM, dict(plain))
    assert subject_of(VM, plain) != subject_of(VM, {**plain, "memory": 2})


def test_a_guest_that_is_locked_for_a_while_is_waited_for() -> None:
    async def scenario(it: Bench, running: lab.Running) -> None:
        base = {"node_name": "pve1", "vm_id": 100, "started": False}
        await it.apply(VM, **base)
        name = running.add_fault("lock", vmid=100, lock="backup")
        changing = asyncio.create_task(it.apply(VM, **base, description="later"))
        await asyncio.sleep(0.3)
        assert not changing.done()
        running.remove_fault(name)
        assert (await changing)["description"] == "later"

    run(scenario)


async def test_a_journal_ignores_what_it_did_not_write() -> None:
    objects = MemoryObjects()
    objects.put("journal/note", b"{}", expect=ABSENT)
    objects.put("journal/torn", b'{"token": "x', expect=ABSENT)
    subject = subject_of(VM, {"name": "web"})

    await Journal(objects, "one").begin(subject, node="pve1", vm_id=100)
    again = Journal(objects, "one")
    assert [entry.vm_id for entry in again.entries] == [100]
    # Nobody takes what belongs to another state, or what is taken already.
    assert Journal(objects, "two").take(subject) is None
    assert again.take(subject) is not None
    assert again.take(subject) is None


def test_a_journal_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / DATABASE).write_bytes(b"no database at all" * 1000)
    with pytest.raises(StoreError):
        Journal(open_objects(tmp_path, create=False))


@pytest.mark.parametrize("given", ["200", "pve1/", "/200", "pve1/x"])
def test_an_import_needs_node_and_number(given: str) -> None:
    async def scenario(it: Bench, running: lab.Running) -> None:
        result = it.operations.identify(it.known(VM), VM, given)
        assert "NODE/NUMBER" in result.problems[0].detail

    run(scenario)
