"""High availability: guests are kept as asked, moved on order, and recovered from dead nodes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.lab import LabClient, Refused, lab_client
from tests.support.lab_ha import kinds, make_vm, run, service, where

from stackyard import lab


def test_a_new_resource_is_started_and_shown_as_such() -> None:
    async def test(api: LabClient) -> None:
        await make_vm(api, 100)
        assert "hastate" not in (await api.get("/cluster/resources", type="vm"))[0]
        await api.post("/cluster/ha/resources", sid="vm:100", comment="web")
        assert await where(api, 100) == ("pve1", "running")
        shown = await api.get("/cluster/ha/resources/100")
        assert {key: shown[key] for key in ("sid", "type", "comment")} == {
            "sid": "vm:100",
            "type": "vm",
            "comment": "web",
        }
        assert not {"max_restart", "max_relocate", "failback", "state"} & set(shown)
        status = await api.get("/nodes/pve1/qemu/100/status/current")
        assert status["ha"] == {"managed": 1, "state": "started"}
        assert (await api.get("/cluster/resources", type="vm"))[0]["hastate"] == "started"
        row = await service(api, "vm:100")
        assert (row["state"], row["node"], row["request_state"]) == ("started", "pve1", "started")
        assert row["max_restart"] == 1
        await api.delete("/cluster/ha/resources/vm:100")
        assert await where(api, 100) == ("pve1", "running")
        assert (await api.get("/nodes/pve1/qemu/100/status/current"))["ha"] == {"managed": 0}

    run(test)


@pytest.mark.parametrize(
    ("state", "shown", "status"),
    [
        ("stopped", "stopped", "stopped"),
        ("disabled", "disabled", "stopped"),
        ("ignored", "ignored", "running"),
        ("enabled", "started", "running"),
    ],
)
def test_a_guest_is_brought_to_the_wanted_state(state: str, shown: str, status: str) -> None:
    async def test(api: LabClient) -> None:
        await make_vm(api, 100)
        await api.post("/cluster/ha/resources", sid="100")
        await api.put("/cluster/ha/resources/vm:100", state=state)
        assert (await service(api, "vm:100"))["state"] == shown
        assert (await where(api, 100))[1] == status
        await api.put("/cluster/ha/resources/vm:100", state="started")
        assert (await service(api, "vm:100"))["state"] == "started"
        assert (await where(api, 100))[1] == "running"

    run(test)


def test_calls_on_a_managed_vm_go_through_ha() -> None:
    async def test(api: LabClient) -> None:
        await make_vm(api, 100)
        await api.post("/cluster/ha/resources", sid="vm:100", state="stopped")
        upid = await api.post("/nodes/pve1/qemu/100/status/start")
        assert upid.split(":")[5] == "hastart"
        assert await api.log(upid) == ["Requesting HA start for VM 100", "TASK OK"]
        assert await where(api, 100) == ("pve1", "running")
        assert (await api.get("/cluster/ha/resources/100"))["state"] == "started"
        upid = await api.post("/nodes/pve1/qemu/100/migrate", target="pve2", online=1)
        assert upid.split(":")[5] == "hamigrate"
        assert await where(api, 100) == ("pve2", "running")
        with pytest.raises(Refused, match="Not applicable for HA resources"):
            await api.post("/nodes/pve2/qemu/100/status/stop", overrule__shutdown=1)
        with pytest.raises(Refused, match="500 Cannot suspend HA managed VM to disk"):
            await api.post("/nodes/pve2/qemu/100/status/suspend", todisk=1)
        upid = await api.post("/nodes/pve2/qemu/100/status/shutdown")
        assert upid.split(":")[5] == "hastop"
        assert await where(api, 100) == ("pve2", "stopped")
        assert (await api.get("/cluster/ha/resources/100"))["state"] == "stopped"
        assert await kinds(api) == [
            *("qmcreate", "hastart", "qmstart", "hamigrate", "qmigrate", "hastop", "qmshutdown"),
        ]

    run(test)


def test_calls_on_a_managed_container_go_through_ha() -> None:
    async def test(api: LabClient) -> None:
        await api.post("/nodes/pve1/storage/local/download-url", **TEMPLATE)
        created = await api.post(
            "/nodes/pve1/lxc", vmid=200, ostemplate="local:vztmpl/d.tar.zst", rootfs="local-lvm:1", memory=64
        )
        assert await api.done(created) == "OK"
        await api.post("/cluster/ha/resources", sid="ct:200")
        assert await where(api, 200) == ("pve1", "running")
        upid = await api.post("/nodes/pve1/lxc/200/migrate", target="pve3", restart=1)
        assert upid.split(":")[5] == "hamigrate"
        assert await where(api, 200) == ("pve3", "running")
        upid = await api.post("/nodes/pve3/lxc/200/status/stop")
        assert upid.split(":")[5] == "hastop"
        assert await where(api, 200) == ("pve3", "stopped")
        upid = await api.post("/nodes/pve3/lxc/200/status/start")
        assert upid.split(":")[5] == "hastart"
        assert (await api.get("/nodes/pve3/lxc/200/status/current"))["ha"]["state"] == "started"
        assert "vzshutdown" in await kinds(api)

    run(test)


TEMPLATE = {"content": "vztmpl", "filename": "d.tar.zst", "url": "http://images.example/d.tar.zst"}


def test_an_order_to_migrate_keeps_a_vm_running_and_one_to_relocate_restarts_it() -> None:
    async def test(api: LabClient) -> None:
        await make_vm(api, 100, disk="local-lvm:1")
        await api.post("/cluster/ha/resources", sid="vm:100")
        answer = await api.post("/cluster/ha/resources/vm:100/migrate", node="pve2")
        assert answer == {"sid": "vm:100", "requested-node": "pve2"}
        assert await where(api, 100) == ("pve2", "running")
        before = await kinds(api)
        await api.post("/cluster/ha/resources/100/relocate", node="pve3")
        assert await where(api, 100) == ("pve3", "running")
        assert (await kinds(api))[len(before) :] == ["qmshutdown", "qmigrate", "qmstart"]
        # A node that does not exist is the manager's to find out.
        await api.post("/cluster/ha/resources/100/migrate", node="pve9")
        assert await where(api, 100) == ("pve3", "running")

    run(test)


def test_a_guest_that_stops_by_itself_is_started_again() -> None:
    async def test(api: LabClient) -> None:
        await make_vm(api, 100)
        await api.post("/cluster/ha/resources", sid="vm:100")
        with api.world.store.transaction():
            guest = api.world.guests.get(100)
            assert guest is not None
            api.world.guests.update(guest, status="stopped", started=None, run={})
        await api.get("/version")
        assert await where(api, 100) == ("pve1", "running")

    run(test)


def test_guests_of_a_dead_node_are_recovered_elsewhere() -> None:
    async def test(api: LabClient) -> None:
        for vmid in (100, 101, 102, 103):
            await make_vm(api, vmid)
        await api.post("/cluster/ha/resources", sid="vm:100")
        await api.post("/cluster/ha/resources", sid="vm:101")
        await api.post("/cluster/ha/resources", sid="vm:102", state="stopped")
        guest = api.world.guests.get(100)
        assert guest is not None
        with api.world.store.transaction():
            api.world.guests.update(guest, config={**guest["config"], "lock": "backup"})
        fault = api.running.add_fault("node-down", node="pve1")
        await api.get("/version")
        # The load is spread: each of the two that run is on a node of its own.
        assert {await where(api, 100), await where(api, 101)} == {("pve2", "running"), ("pve3", "running")}
        node, state = await where(api, 102)
        assert node != "pve1"
        assert state == "stopped"
        assert await where(api, 103) == ("pve1", "unknown")
        nodes = (await api.get("/cluster/ha/status/manager_status"))["manager_status"]["node_status"]
        assert nodes == {"pve1": "unknown", "pve2": "online", "pve3": "online"}
        api.running.remove_fault(fault)
        await api.get("/version")
        assert (await where(api, 100))[0] != "pve1"
        nodes = (await api.get("/cluster/ha/status/manager_status"))["manager_status"]["node_status"]
        assert nodes["pve1"] == "online"

    run(test)


def test_a_guest_whose_disk_stayed_on_the_dead_node_ends_in_error_until_it_is_disabled() -> None:
    async def test(api: LabClient) -> None:
        await make_vm(api, 100, disk="local-lvm:1")
        await api.post("/cluster/ha/resources", sid="vm:100")
        api.running.add_fault("node-down", node="pve1")
        await api.get("/version")
        assert (await service(api, "vm:100"))["state"] == "error"
        with pytest.raises(Refused, match="500 service 'vm:100' in error state, must be disabled and fixed"):
            await api.put("/cluster/ha/resources/vm:100", state="started")
        with pytest.raises(Refused, match="in error state"):
            await api.post("/cluster/ha/resources/vm:100/migrate", node="pve2")
        await api.put("/cluster/ha/resources/vm:100", state="disabled")
        assert (await service(api, "vm:100"))["state"] == "disabled"

    run(test)


def test_a_start_that_fails_is_tried_again_and_then_elsewhere() -> None:
    async def test(api: LabClient) -> None:
        await make_vm(api, 100)
        api.running.add_fault("task", text="no luck", task="qmstart", node="pve1")
        await api.post("/cluster/ha/resources", sid="vm:100", max_restart=2, max_relocate=1)
        assert await where(api, 100) == ("pve2", "running")
        tasks = [
            (task["node"], task["status"])
            for task in reversed(await api.get("/cluster/tasks"))
            if task["type"] == "qmstart"
        ]
        assert tasks == [*[("pve1", "no luck")] * 3, ("pve2", "OK")]

    run(test)


def test_a_migration_that_fails_is_not_tried_again_at_once() -> None:
    async def test(api: LabClient) -> None:
        await make_vm(api, 100)
        await api.post("/cluster/ha/resources", sid="vm:100")
        fault = api.running.add_fault("task", text="no luck", task="qmigrate")
        await api.post("/cluster/ha/rules", rule="r1", type="node-affinity", resources="vm:100", nodes="pve2")
        assert (await kinds(api)).count("qmigrate") == 1
        assert await where(api, 100) == ("pve1", "running")
        api.running.remove_fault(fault)
        await api.pass_time(11)
        await api.get("/version")
        assert await where(api, 100) == ("pve2", "running")

    run(test)


def test_disarmed_ha_leaves_guests_alone_until_it_is_armed_again() -> None:
    async def test(api: LabClient) -> None:
        await make_vm(api, 100)
        await api.post("/cluster/ha/resources", sid="vm:100")
        await api.post("/cluster/ha/status/disarm-ha", resource__mode="ignore")
        rows = await api.get("/cluster/ha/status/current")
        fencing = next(row for row in rows if row["id"] == "fencing")
        assert (fencing["armed-state"], fencing["resource_mode"]) == ("disarmed", "ignore")
        assert (await service(api, "vm:100"))["state"] == "ignore"
        upid = await api.post("/nodes/pve1/qemu/100/status/stop")
        assert upid.split(":")[5] == "qmstop"
        assert await where(api, 100) == ("pve1", "stopped")
        await api.post("/cluster/ha/status/arm-ha")
        assert await where(api, 100) == ("pve1", "running")
        await api.post("/cluster/ha/status/disarm-ha", resource__mode="freeze")
        assert (await service(api, "vm:100"))["crm_state"] == "freeze"
        await api.put("/cluster/ha/resources/100", state="stopped")
        assert await where(api, 100) == ("pve1", "running")
        await api.post("/cluster/ha/status/arm-ha")
        assert await where(api, 100) == ("pve1", "stopped")

    run(test)


@pytest.mark.parametrize(
    ("policy", "command", "node"),
    [
        ("", "reboot", "pve3"),
        ("", "shutdown", "pve1"),
        ("shutdown_policy=failover", "shutdown", "pve1"),
        ("shutdown_policy=migrate", "shutdown", "pve1"),
    ],
)
def test_a_node_that_is_switched_off_gives_its_guests_away(policy: str, command: str, node: str) -> None:
    async def test(api: LabClient) -> None:
        if policy:
            await api.put("/cluster/options", ha=policy)
        await make_vm(api, 100, "pve3")
        await api.post("/cluster/ha/resources", sid="vm:100")
        await api.post("/nodes/pve3/status", command=command)
        await api.get("/version")
        assert await where(api, 100) == (node, "running")

    run(test)


def test_without_quorum_nothing_is_done() -> None:
    async def test(api: LabClient) -> None:
        await make_vm(api, 100)
        await api.post("/cluster/ha/resources", sid="vm:100")
        api.running.add_fault("quorum-lost")
        with pytest.raises(Refused, match="cluster not ready - no quorum"):
            await api.post("/cluster/ha/resources", sid="vm:100")
        rows = await api.get("/cluster/ha/status/current")
        assert rows[0]["quorate"] == 0

    run(test)


def test_at_real_speed_the_manager_takes_its_time() -> None:
    async def test(api: LabClient) -> None:
        await make_vm(api, 100)
        api.world.latency.overrides_s = {lab.Work.HA: 5.0, lab.Work.FENCE: 60.0}
        await api.post("/cluster/ha/resources", sid="vm:100")
        assert (await service(api, "vm:100"))["state"] == "queued"
        await api.pass_time(6)
        assert (await where(api, 100))[1] == "running"
        await api.pass_time(6)
        api.running.add_fault("node-down", node="pve1")
        await api.pass_time(30)
        assert (await service(api, "vm:100"))["node"] == "pve1"
        await api.pass_time(60)
        assert (await where(api, 100))[0] != "pve1"

    run(test)


def test_a_killed_lab_goes_on_where_it_was(tmp_path: Path) -> None:
    async def begin(api: LabClient) -> None:
        await make_vm(api, 100)
        await api.post("/cluster/ha/resources", sid="vm:100")
        api.world.latency.overrides_s = {lab.Work.MIGRATE: 600.0}
        await api.post("/cluster/ha/resources/vm:100/migrate", node="pve2")
        assert (await service(api, "vm:100"))["state"] == "migrate"

    async def go_on() -> None:
        async with lab_client(data=tmp_path) as api:
            await api.get("/version")
            assert (await service(api, "vm:100"))["state"] in ("migrate", "started")
            assert (await where(api, 100))[1] == "running"

    run(begin, data=tmp_path)
    asyncio.run(go_on())


def test_a_guest_that_cannot_be_stopped_is_not_told_again_at_once() -> None:
    async def test(api: LabClient) -> None:
        await make_vm(api, 100)
        await api.post("/cluster/ha/resources", sid="vm:100", state="stopped")
        with api.world.store.transaction():
            guest = api.world.guests.require("qemu", "pve1", 100)
            config = {**guest["config"], "lock": "backup"}
            api.world.guests.update(guest, config=config, status="running", started=0.0, run={"pid": 1})
        await api.get("/version")
        assert (await kinds(api)).count("qmshutdown") == 1
        with api.world.store.transaction():
            guest = api.world.guests.require("qemu", "pve1", 100)
            config = {key: value for key, value in guest["config"].items() if key != "lock"}
            api.world.guests.update(guest, config=config)
        await api.pass_time(11)
        assert await where(api, 100) == ("pve1", "stopped")

    run(test)


def test_a_lab_that_was_killed_while_a_node_went_down_manages_it_again(tmp_path: Path) -> None:
    async def begin(api: LabClient) -> None:
        await make_vm(api, 100)
        await api.post("/cluster/ha/resources", sid="vm:100", state="stopped")
        node = api.world.cluster.nodes()["pve1"]
        with api.world.store.transaction():
            api.world.store.put("nodes", "pve1", {**node, "ha_mode": "shutdown"})

    async def go_on() -> None:
        async with lab_client(data=tmp_path) as api:
            await api.put("/cluster/ha/resources/vm:100", state="started")
            assert await where(api, 100) == ("pve1", "running")

    run(begin, data=tmp_path)
    asyncio.run(go_on())


def test_a_new_vm_can_be_given_to_ha_at_once() -> None:
    async def test(api: LabClient) -> None:
        upid = await api.post("/nodes/pve1/qemu", vmid=100, start=1, ha__managed=1)
        assert "Add as HA resource" in await api.log(upid)
        assert await where(api, 100) == ("pve1", "running")
        assert (await api.get("/cluster/ha/resources/100"))["state"] == "started"
        with pytest.raises(Refused, match="used in HA resources and purge parameter not set"):
            await api.delete("/nodes/pve1/qemu/100")
        await api.post("/nodes/pve1/qemu/100/status/stop")
        upid = await api.delete("/nodes/pve1/qemu/100", purge=1)
        assert "NOTE: removed VM 100 from HA resource configuration." in await api.log(upid)
        assert await api.get("/cluster/ha/resources") == []

    run(test)
