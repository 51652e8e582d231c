"""Steering a lab over /_lab/: reset, seeds, snapshots of everything, time, and the journal."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused, Reply, lab_client
from tests.support.lab_ssh import said, ssh_to

from pvelab.seeds import SeedError, load_seed, parse_seed, seed_names
from stackyard import lab


@contextlib.asynccontextmanager
async def with_lab(**options: Any) -> AsyncIterator[LabClient]:
    async with lab_client(**options) as api:
        yield api


async def steer(api: LabClient, method: str, path: str, **body: Any) -> Reply:
    return await api.raw(method, path, base="/_lab", json=body or None)


async def vmids(api: LabClient) -> list[int]:
    return sorted(row["vmid"] for row in await api.get("/cluster/resources", type="vm"))


# --- Seeds


@pytest.mark.parametrize("name", seed_names())
@pytest.mark.parametrize("nodes", [None, ("only",), ("a", "b", "c", "d")])
async def test_a_shipped_seed_fills_a_lab_of_any_nodes(name: str, nodes: tuple[str, ...] | None) -> None:
    async with with_lab(seed=load_seed(name), nodes=nodes, speed=lab.Speed.REAL) as api:
        status = (await steer(api, "GET", "/status")).json
        assert (
            status["guests"]
            == {"stock": 0, "empty": 0, "minimal": 2, "small": 2, "demo": 5, "homelab": 11, "big": 10_000}[
                name
            ]
        )
        assert status["tasks"] == status["calls"] == 0
        assert tuple(row["node"] for row in await api.get("/nodes")) == (nodes or load_seed(name).nodes)
        failed = [task for task in await api.get("/cluster/tasks") if task["status"] != "OK"]
        assert failed == []


async def test_a_seed_says_who_may_log_in() -> None:
    seed = {"nodes": ["pve"], "password": "my-password", "token": "0000-1111"}

    async with with_lab(seed=parse_seed(seed)) as api:
        assert api.running.api_token == "root@pam!lab=0000-1111"
        assert api.running.nodes == ("pve",)
        assert await (await api.with_password("root@pam", "my-password")).get("/version")


@pytest.mark.parametrize(
    ("seed", "text"),
    [
        (
            {"calls": [{"path": "/pools", "parameters": {"poolid": "!"}}]},
            "POST /pools, refused: Parameter ver",
        ),
        (
            {"calls": [{"path": "/nodes/{node1}/qemu/5/status/start"}]},
            "refused: Parameter verification failed",
        ),
        ({"files": [{"volume": "local:iso/x.txt", "size": 1}]}, "the file local:iso/x.txt, refused: "),
        ({"files": [{"volume": "nowhere:iso/x.iso", "size": 1}]}, "storage 'nowhere' does not exist"),
    ],
)
def test_a_seed_that_the_lab_refuses_stops_the_start_and_leaves_nothing(
    seed: dict[str, Any], text: str, tmp_path: Path
) -> None:
    async def start(**options: Any) -> list[int]:
        async with lab_client(data=tmp_path, **options) as api:
            return await vmids(api)

    first = {"path": "/nodes/{node1}/qemu", "parameters": {"vmid": 100}}
    broken = {**seed, "calls": [first, *seed.get("calls", [])]}
    with pytest.raises(SeedError) as caught:
        asyncio.run(start(seed=parse_seed(broken)))
    assert text in caught.value.detail
    assert asyncio.run(start()) == []


async def test_a_lab_that_was_killed_while_it_was_filled_begins_anew(tmp_path: Path) -> None:
    async with lab_client(data=tmp_path, seed=load_seed("small")) as api:
        await api.done(await api.delete("/nodes/pve1/qemu/9000"))
        with api.world.store.transaction():
            api.world.store.put("lab", "seeding", {"seed": "small"})
    async with lab_client(data=tmp_path, seed=load_seed("small")) as api:
        assert await vmids(api) == [100, 9000]
        await api.done(await api.delete("/nodes/pve1/qemu/9000"))
    async with lab_client(data=tmp_path, seed=load_seed("small")) as api:
        assert await vmids(api) == [100]


def test_everything_that_is_wrong_with_a_seed_is_found_at_once() -> None:
    wrong = {
        "nodes": ["a b", "x", "x"],
        "token": "under_score",
        "password": 7,
        "calls": [{"method": "GET", "path": "/x"}, "text"],
        "files": [{"volume": "no colon"}],
        "system_users": [{"name": "root"}],
        "more": 1,
    }
    with pytest.raises(SeedError) as caught:
        parse_seed(wrong)
    assert len(caught.value.diagnostics) == 9


def test_a_seed_is_found_by_name_or_in_a_file(tmp_path: Path) -> None:
    assert {"empty", "small", "demo"} <= set(seed_names())
    with pytest.raises(
        SeedError, match="There is no seed 'large'; there are big, demo, empty, homelab, minimal, small"
    ):
        load_seed("large")
    (tmp_path / "mine.json").write_text('{"nodes": ["one"]}')
    assert load_seed(str(tmp_path / "mine.json")).nodes == ("one",)
    (tmp_path / "bad.json").write_text('{"nodes": \n [}')
    with pytest.raises(SeedError) as caught:
        load_seed(str(tmp_path / "bad.json"))
    assert caught.value.where is not None
    assert caught.value.where.line == 2


# --- Reset


async def test_a_reset_makes_the_lab_new_and_keeps_who_has_logged_in() -> None:
    async with with_lab(seed=load_seed("small"), ssh_port=0) as api:
        ticket = await api.with_password("root@pam", api.running.password)
        fingerprint = (await api.get("/cluster/status"))[0]
        await api.done(await api.post("/nodes/pve1/qemu", vmid=500, scsi0="local-lvm:4"))
        await api.post("/access/users", userid="alice@pve", password="secret-1")
        async with ssh_to(api) as ssh:
            await said(ssh, "echo x > /var/lib/vz/snippets/x")
        reply = await steer(api, "POST", "/reset")
        assert (reply.json["guests"], reply.json["running"]) == (2, 1)
        assert await vmids(api) == [100, 9000]
        assert [user["userid"] for user in await api.get("/access/users")] == ["root@pam"]
        assert (await ticket.get("/version"))["version"]
        assert (await api.get("/cluster/status"))[0] == fingerprint
        listed = await api.get("/nodes/pve1/storage/local/content", content="snippets")
        assert [file["volid"] for file in listed] == ["local:snippets/user-data.yaml"]
        calls = (await steer(api, "GET", "/journal")).json["calls"]
        assert "/nodes/pve1/qemu" not in {call["path"] for call in calls}


async def test_a_reset_interrupts_tasks_and_waits_for_nothing() -> None:
    async with with_lab(latency_s={lab.Work.CREATE: 1000.0, lab.Work.ALLOCATE: 1000.0}) as api:
        api.world.clock.hold()
        upid = await api.post("/nodes/pve1/qemu", vmid=100, scsi0="local-lvm:4")
        assert api.world.tasks.is_running(upid)
        await steer(api, "POST", "/reset")
        assert not api.world.tasks.is_running(upid)
        assert await vmids(api) == []
        assert (await api.get("/nodes/pve1/storage/local-lvm/status"))["used"] == 0


async def test_a_reset_takes_another_seed_by_name_or_as_an_object() -> None:
    async with with_lab() as api:
        assert (await steer(api, "POST", "/reset", seed="demo")).json["guests"] == 5
        call = {"path": "/nodes/{node1}/qemu", "parameters": {"vmid": 777}}
        assert (await steer(api, "POST", "/reset", seed={"calls": [call]})).json["guests"] == 1
        assert await vmids(api) == [777]
        refused = await steer(api, "POST", "/reset", seed={"calls": [call, call]})
        assert refused.status == 400
        assert "VM 777 already exists" in refused.json["error"]
        assert await vmids(api) == []
        for wrong in ("nothing", {"x": 1}, "../../etc/passwd.json"):
            assert (await steer(api, "POST", "/reset", seed=wrong)).status == 400


# --- Snapshots


@pytest.mark.parametrize("kept", [True, False])
async def test_a_snapshot_brings_back_everything_with_the_bytes_of_files(kept: bool, tmp_path: Path) -> None:
    options: dict[str, Any] = {"data": tmp_path} if kept else {}
    async with lab_client(ssh_port=0, **options) as api, ssh_to(api) as ssh:
        await api.done(await api.post("/nodes/pve1/qemu", vmid=100, scsi0="local-lvm:4", name="first"))
        await said(ssh, "echo before > /var/lib/vz/snippets/x")
        digest = (await api.get("/nodes/pve1/qemu/100/config"))["digest"]
        assert (await steer(api, "POST", "/snapshots/one")).json == {"saved": "one"}
        await api.done(await api.delete("/nodes/pve1/qemu/100"))
        await api.done(await api.post("/nodes/pve1/qemu", vmid=200))
        await said(ssh, "echo after > /var/lib/vz/snippets/x; rm /var/lib/vz/snippets/x")
        await steer(api, "POST", "/reset")
        if kept:
            await steer(api, "POST", "/snapshots/two")
    if not kept:
        return
    async with lab_client(ssh_port=0, **options) as api, ssh_to(api) as ssh:
        names = [saved["name"] for saved in (await steer(api, "GET", "/snapshots")).json["snapshots"]]
        assert names == ["one", "two"]
        assert (await steer(api, "POST", "/snapshots/one/restore")).json == {"restored": "one"}
        assert await vmids(api) == [100]
        assert (await api.get("/nodes/pve1/qemu/100/config"))["digest"] == digest
        assert (await said(ssh, "cat /var/lib/vz/snippets/x"))[1] == "before\n"
        assert (await api.get("/nodes/pve1/storage/local-lvm/status"))["used"] == 4 * 2**30
        assert (await steer(api, "DELETE", "/snapshots/two")).json == {"removed": ["two"]}
        assert (await steer(api, "POST", "/snapshots/two/restore")).status == 404


async def test_a_restore_works_at_once_in_a_lab_in_memory() -> None:
    async with with_lab(ssh_port=0) as api:
        async with ssh_to(api) as ssh:
            await said(ssh, "echo before > /var/lib/vz/snippets/x")
            await steer(api, "POST", "/snapshots/one")
            await said(ssh, "rm /var/lib/vz/snippets/x")
            await api.done(await api.post("/nodes/pve1/qemu", vmid=100))
            await steer(api, "POST", "/snapshots/one/restore")
            assert await vmids(api) == []
            assert (await said(ssh, "cat /var/lib/vz/snippets/x"))[1] == "before\n"
        await api.done(await api.post("/nodes/pve1/qemu", vmid=100))


@pytest.mark.parametrize("name", ["..%2Fup", "a%20b", "-", "x" * 100])
async def test_a_name_that_is_none_saves_nothing(name: str, tmp_path: Path) -> None:
    async def test(api: LabClient) -> None:
        assert (await steer(api, "POST", f"/snapshots/{name}")).status in (400, 404)
        assert (await steer(api, "GET", "/snapshots")).json == {"snapshots": []}

    async with with_lab(data=tmp_path / "data") as api:
        await test(api)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


# --- Time


async def test_time_passes_at_once_and_a_ticket_expires() -> None:
    async with with_lab() as api:
        ticket = await api.with_password("root@pam", api.running.password)
        before = (await steer(api, "GET", "/clock")).json["time"]
        after = (await steer(api, "POST", "/clock", advance=7201)).json
        assert after["time"] - before > 7200
        with pytest.raises(Refused, match="401"):
            await ticket.get("/version")


async def test_the_pace_of_work_is_changed_while_the_lab_runs() -> None:
    async with with_lab() as api:
        await steer(api, "POST", "/clock", held=True, speed="real", latency="create=100")
        upid = await api.post("/nodes/pve1/qemu", vmid=100)
        assert (await api.get(f"/nodes/pve1/tasks/{upid}/status"))["status"] == "running"
        shown = (await steer(api, "GET", "/clock")).json
        assert (shown["held"], shown["speed"], shown["latency"]["create"]) == (True, "real", 100)
        assert shown["waiting"] >= 1
        await api.pass_time(101)
        assert await api.done(upid) == "OK"
        shown = (await steer(api, "POST", "/clock", held=False, speed="instant", latency="")).json
        assert (shown["held"], shown["latency"]["create"]) == (False, 0)
        assert await api.done(await api.post("/nodes/pve1/qemu", vmid=101)) == "OK"


@pytest.mark.parametrize(
    "told", [{"advance": -1}, {"advance": "x"}, {"speed": "warp"}, {"latency": "x=1"}, {"other": 1}, {}]
)
async def test_the_clock_refuses_what_it_does_not_understand(told: dict[str, Any]) -> None:
    async with with_lab() as api:
        assert (await steer(api, "POST", "/clock", **told)).status == 400


# --- Journal


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["GET /version", "POST /pools", "POST /pools", "GET /nodes/x/qemu"]),
        ("?method=post", ["POST /pools", "POST /pools"]),
        ("?path=/nodes/*", ["GET /nodes/x/qemu"]),
        ("?status=5xx", ["POST /pools", "GET /nodes/x/qemu"]),
        ("?status=200", ["GET /version", "POST /pools"]),
        ("?parameter=poolid%3Da", ["POST /pools", "POST /pools"]),
        ("?parameter=comment", ["POST /pools"]),
        ("?parameter=poolid%3Db", []),
        ("?user=root@pam!*", ["GET /version", "POST /pools", "POST /pools", "GET /nodes/x/qemu"]),
        ("?user=alice*", []),
        ("?limit=1", ["GET /nodes/x/qemu"]),
        ("?after=3", ["GET /nodes/x/qemu"]),
        ("?method=GET&status=2xx&limit=5", ["GET /version"]),
    ],
)
async def test_the_journal_is_filtered(query: str, found: list[str]) -> None:
    async with with_lab() as api:
        await api.get("/version")
        await api.post("/pools", poolid="a", comment="first")
        for path, call in (("/pools", api.post), ("/nodes/x/qemu", api.get)):
            with pytest.raises(Refused):
                await call(path, **({"poolid": "a"} if path == "/pools" else {}))
        reply = await api.raw("GET", f"/journal{query}", base="/_lab")
        assert [f"{call['method']} {call['path']}" for call in reply.json["calls"]] == found
        assert reply.json["count"] == 4


async def test_the_journal_refuses_a_filter_that_it_does_not_have_and_can_be_cleared() -> None:
    async with with_lab() as api:
        await api.get("/version")
        assert (await api.raw("GET", "/journal?methd=GET", base="/_lab")).status == 400
        assert (await api.raw("GET", "/journal?after=x", base="/_lab")).status == 400
        await steer(api, "DELETE", "/journal")
        assert (await steer(api, "GET", "/journal")).json["calls"] == []
