"""Faults ordered over /_lab/: each kind really acts, is counted, and is undone when it is removed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.support.lab import LabClient, Refused, Reply, lab_client

from pvelab import PveError
from pvelab.faults.kinds import KINDS


@contextlib.asynccontextmanager
async def with_lab(**options: Any) -> AsyncIterator[LabClient]:
    async with lab_client(**options) as api:
        yield api


async def order(api: LabClient, kind: str, **fields: Any) -> str:
    """Add a fault and return its name."""
    reply = await api.raw("POST", "/faults", base="/_lab", json={"kind": kind, **fields})
    assert reply.status == 200, reply.body
    return str(reply.json["name"])


async def withdraw(api: LabClient, name: str) -> None:
    assert (await api.raw("DELETE", f"/faults/{name}", base="/_lab")).status == 200


async def steer(api: LabClient, method: str, path: str, **body: Any) -> Reply:
    return await api.raw(method, path, base="/_lab", json=body or None)


async def outcome(api: LabClient, path: str = "/version") -> str:
    try:
        await api.get(path)
    except Refused as refused:
        return str(refused)
    return "fine"


async def test_an_answer_strikes_the_nth_call_that_fits_and_is_counted() -> None:
    async with with_lab() as api:
        fault = {"method": "get", "path": "/ver*", "nth": 2, "status": 500, "reason": "got timeout"}
        name = await order(api, "answer", **fault)
        assert [await outcome(api) for _ in range(3)] == ["fine", "500 got timeout", "fine"]
        assert await outcome(api, "/nodes") == "fine"
        [listed] = (await steer(api, "GET", "/faults")).json["faults"]
        assert listed == {"name": name, "kind": "answer", **fault, "seen": 3, "struck": 1}


async def test_a_fault_that_is_spent_strikes_no_more() -> None:
    async with with_lab() as api:
        await order(api, "answer", path="/version", status=500, reason="x", times=2)
        assert [await outcome(api) for _ in range(4)] == ["500 x", "500 x", "fine", "fine"]


@pytest.mark.parametrize(("probability", "struck"), [(0, 0), (1, 20)])
async def test_a_probability_of_none_and_one_is_never_and_always(probability: float, struck: int) -> None:
    async with with_lab() as api:
        await order(api, "answer", path="/version", status=500, reason="x", probability=probability)
        assert [await outcome(api) for _ in range(20)].count("500 x") == struck


async def test_a_fault_of_one_node_spares_the_others() -> None:
    async with with_lab(nodes=("pve1", "pve2")) as api:
        await order(api, "answer", node="pve2", path="/nodes/*/qemu", status=500, reason="broken")
        assert await outcome(api, "/nodes/pve1/qemu") == "fine"
        assert await outcome(api, "/nodes/pve2/qemu") == "500 broken"


async def test_an_answer_before_the_caller_is_known_strikes_logins_too() -> None:
    async with with_lab() as api:
        await order(api, "answer", when="auth", status=401, reason="Authentication failed!")
        assert await outcome(api) == "401 Authentication failed!"


async def test_a_proxy_error_has_no_body() -> None:
    async with with_lab() as api:
        await order(api, "answer", path="/version", status=596, reason="Broken pipe")
        reply = await api.raw("GET", "/version")
        assert (reply.status, reply.reason, reply.body) == (596, "Broken pipe", b"")


async def test_a_delay_takes_lab_time_and_then_the_call_is_done() -> None:
    async with with_lab() as api:
        api.world.clock.hold()
        await order(api, "delay", path="/version", seconds=30)
        waiting = asyncio.ensure_future(outcome(api))
        while not api.world.clock.sleepers:
            await asyncio.sleep(0)
        await steer(api, "POST", "/clock", advance=29)
        assert not waiting.done()
        await steer(api, "POST", "/clock", advance=1)
        assert await waiting == "fine"


@pytest.mark.parametrize(("when", "made"), [("before", []), ("after", [100])])
async def test_a_drop_cuts_the_connection_before_or_after_the_work(when: str, made: list[int]) -> None:
    async with with_lab() as api:
        await order(api, "drop", method="POST", path="/nodes/*/qemu", when=when, times=1)
        with pytest.raises(aiohttp.ClientError):
            await api.post("/nodes/pve1/qemu", vmid=100)
        assert [guest["vmid"] for guest in await api.get("/nodes/pve1/qemu")] == made


async def test_a_task_fails_late_with_the_text_and_gives_back_what_it_took() -> None:
    async with with_lab() as api:
        await order(api, "task", task="qmcreate", text="storage went away", step=2, nth=2)
        disks = {"scsi0": "local-lvm:4", "scsi1": "local-lvm:4"}
        assert await api.done(await api.post("/nodes/pve1/qemu", vmid=100, **disks)) == "OK"
        failed = await api.done(await api.post("/nodes/pve1/qemu", vmid=101, **disks))
        assert failed == "unable to create VM 101 - storage went away"
        assert await api.done(await api.post("/nodes/pve1/qemu", vmid=102, **disks)) == "OK"
        assert [guest["vmid"] for guest in await api.get("/nodes/pve1/qemu")] == [100, 102]
        assert len(await api.get("/nodes/pve1/storage/local-lvm/content")) == 4


@pytest.mark.parametrize("step", [0, 99])
async def test_a_task_can_fail_when_all_of_its_work_is_done(step: int) -> None:
    async with with_lab() as api:
        await order(api, "task", id="100", text="cleanup failed", step=step)
        assert await api.done(await api.post("/nodes/pve1/qemu", vmid=100)) == "cleanup failed"
        assert (await api.get("/nodes/pve1/qemu/100/config"))["digest"]


async def test_a_lock_stays_until_the_fault_is_removed() -> None:
    async with with_lab() as api:
        await api.done(await api.post("/nodes/pve1/qemu", vmid=100))
        name = await order(api, "lock", vmid=100, lock="clone")
        with pytest.raises(Refused, match=r"500 VM is locked \(clone\)"):
            await api.put("/nodes/pve1/qemu/100/config", cores=2)
        assert (await api.get("/nodes/pve1/qemu/100/status/current"))["lock"] == "clone"
        await withdraw(api, name)
        await api.put("/nodes/pve1/qemu/100/config", cores=2)


async def test_a_full_storage_refuses_allocations_and_shows_it() -> None:
    async with with_lab(nodes=("pve1", "pve2")) as api:
        name = await order(api, "storage-full", storage="local-lvm", node="pve1")
        failed = await api.done(await api.post("/nodes/pve1/qemu", vmid=100, scsi0="local-lvm:1"))
        assert failed == (
            "unable to create VM 100 - lvcreate 'pve/vm-100-disk-0' error:   Cannot create new thin volume,"
            " free space in thin pool pve/data reached threshold."
        )
        status = await api.get("/nodes/pve1/storage/local-lvm/status")
        assert (status["avail"], status["used"]) == (0, status["total"])
        assert await api.done(await api.post("/nodes/pve2/qemu", vmid=101, scsi0="local-lvm:1")) == "OK"
        await withdraw(api, name)
        assert await api.done(await api.post("/nodes/pve1/qemu", vmid=100, scsi0="local-lvm:1")) == "OK"
        assert (await api.get("/nodes/pve1/storage/local-lvm/status"))["used"] == 2**30


async def test_a_silent_agent_never_answers() -> None:
    async with with_lab() as api:
        for vmid in (100, 101):
            await api.done(await api.post("/nodes/pve1/qemu", vmid=vmid, agent=1, net0="virtio,bridge=vmbr0"))
            await api.done(await api.post(f"/nodes/pve1/qemu/{vmid}/status/start"))
        name = await order(api, "agent-silent", vmid=100)
        with pytest.raises(Refused, match="500 QEMU guest agent is not running"):
            await api.get("/nodes/pve1/qemu/100/agent/network-get-interfaces")
        await api.get("/nodes/pve1/qemu/101/agent/network-get-interfaces")
        await withdraw(api, name)
        await api.post("/nodes/pve1/qemu/100/agent/ping")


async def test_a_node_goes_down_and_comes_back() -> None:
    async with with_lab(nodes=("pve1", "pve2", "pve3")) as api:
        name = await order(api, "node-down", node="pve2", reason="Connection refused")
        assert await outcome(api, "/nodes/pve2/qemu") == "595 Connection refused"
        resources = {row["id"]: row for row in await api.get("/cluster/resources")}
        assert resources["node/pve2"]["status"] == "offline"
        await withdraw(api, name)
        assert await outcome(api, "/nodes/pve2/qemu") == "fine"


async def test_lost_quorum_stops_changes_until_it_is_back() -> None:
    async with with_lab() as api:
        name = await order(api, "quorum-lost")
        with pytest.raises(Refused, match=r"500 cluster not ready - no quorum\?"):
            await api.post("/nodes/pve1/qemu", vmid=100)
        assert await outcome(api, "/nodes/pve1/qemu") == "fine"
        await withdraw(api, name)
        assert await api.done(await api.post("/nodes/pve1/qemu", vmid=100)) == "OK"


async def test_expired_tickets_are_refused_and_new_ones_and_tokens_work() -> None:
    async with with_lab() as api:
        old = await api.with_password("root@pam", api.running.password)
        await old.get("/version")
        await order(api, "tickets-expired")
        assert await outcome(old) == "401 Authentication failed!"
        assert await outcome(await api.with_password("root@pam", api.running.password)) == "fine"
        assert await outcome(api) == "fine"


async def test_faults_survive_a_kill_and_a_reset_clears_them(tmp_path: Path) -> None:
    async with lab_client(data=tmp_path, nodes=("pve1", "pve2", "pve3")) as api:
        await order(api, "answer", path="/version", status=500, reason="x")
        await order(api, "node-down", node="pve2")
    async with lab_client(data=tmp_path) as api:
        assert await outcome(api) == "500 x"
        assert await outcome(api, "/nodes/pve2/qemu") == "595 No route to host"
        await steer(api, "POST", "/reset")
        assert await outcome(api) == "fine"
        assert await outcome(api, "/nodes/pve2/qemu") == "fine"
        assert (await steer(api, "GET", "/faults")).json == {"faults": []}


async def test_all_faults_are_removed_at_once() -> None:
    async with with_lab() as api:
        await order(api, "answer", path="/version", status=500, reason="x", name="mine")
        await order(api, "quorum-lost")
        reply = await steer(api, "DELETE", "/faults")
        assert reply.json == {"removed": ["mine", "quorum-lost-1"]}
        assert await outcome(api) == "fine"
        assert (await steer(api, "GET", "/status")).json["quorate"] is True


@pytest.mark.parametrize(
    ("fault", "status", "text"),
    [
        ({}, 400, "'kind' must be one of answer, delay"),
        ({"kind": "nothing"}, 400, "'kind' must be one of"),
        ({"kind": "answer"}, 400, "'status' is needed: the HTTP status; 'reason' is needed"),
        ({"kind": "delay", "seconds": "long"}, 400, "'seconds' must be a number"),
        ({"kind": "delay", "seconds": -1}, 400, "'seconds' must not be less than 0"),
        ({"kind": "drop", "when": "never"}, 400, "'when' must be one of before, after"),
        ({"kind": "quorum-lost", "vmid": 1}, 400, "there is no field 'vmid'"),
        ({"kind": "lock", "vmid": 999}, 400, "there is no guest 999"),
        ({"kind": "node-down", "node": "x"}, 400, "there is no node 'x'"),
        ({"kind": "storage-full", "storage": "x"}, 400, "there is no storage 'x'"),
    ],
)
async def test_a_wrong_order_is_refused_with_everything_that_is_wrong(
    fault: dict[str, Any], status: int, text: str
) -> None:
    async with with_lab() as api:
        reply = await api.raw("POST", "/faults", base="/_lab", json=fault or {"x": 1})
        assert reply.status == status
        assert text in reply.json["error"]
        assert (await steer(api, "GET", "/faults")).json == {"faults": []}


async def test_a_name_is_given_once_and_a_missing_one_cannot_be_removed() -> None:
    async with with_lab() as api:
        await order(api, "quorum-lost", name="mine")
        again = await steer(api, "POST", "/faults", kind="quorum-lost", name="mine")
        assert (again.status, again.json["error"]) == (409, "there is a fault 'mine' already")
        missing = await steer(api, "DELETE", "/faults/other")
        assert (missing.status, missing.json["error"]) == (404, "there is no fault 'other'")


async def test_a_program_orders_faults_without_http() -> None:
    async with with_lab() as api:
        name = api.running.add_fault("answer", path="/version", status=500, reason="x")
        assert await outcome(api) == "500 x"
        other = await asyncio.to_thread(api.running.add_fault, "quorum-lost")
        await asyncio.to_thread(api.running.remove_fault, name)
        assert await outcome(api) == "fine"
        assert (await steer(api, "GET", "/status")).json["quorate"] is False
        api.running.remove_fault(other)
        with pytest.raises(PveError, match="'kind' must be one of"):
            api.running.add_fault("nothing")


async def test_every_kind_is_described() -> None:
    async with with_lab() as api:
        kinds = (await steer(api, "GET", "/faults/kinds")).json["kinds"]
        assert set(kinds) == set(KINDS)
        assert all(kind["help"].endswith(".") for kind in kinds.values())


async def test_only_root_steers_the_lab() -> None:
    async with with_lab() as api:
        await api.post("/access/users", userid="alice@pve", password="secret-1")
        await api.put("/access/acl", path="/", users="alice@pve", roles="Administrator")
        alice = await api.with_password("alice@pve", "secret-1")
        assert (await steer(alice, "POST", "/faults", kind="quorum-lost")).status == 403
        assert (await steer(api.with_headers({}), "POST", "/reset")).status == 401
        assert (await steer(api, "GET", "/nothing")).status == 404
