"""A storage whose server does not answer: it is there, but inactive, and nothing can be done with it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.lab import LabClient, Refused
from tests.support.lab_qemu import Q, done, failed, make, with_lab

NAS = {"storage": "nas", "type": "nfs", "server": "10.31.0.5", "export": "/srv", "content": "images,iso"}


async def take_away(api: LabClient, **fields: Any) -> Any:
    """Keep nodes from a storage; return the answer."""
    return await api.raw("POST", "/faults", base="/_lab", json={"kind": "storage-offline", **fields})


@pytest.mark.parametrize("server", ["192.0.2.7", "203.0.113.9", "2001:db8::5", "nas.invalid"])
async def test_a_storage_on_a_server_that_does_not_answer_is_not_added(server: str) -> None:
    async with with_lab() as api:
        with pytest.raises(Refused, match="500 create storage failed: storage 'nas' is not online"):
            await api.post("/storage", **{**NAS, "server": server})
        assert "nas" not in {row["storage"] for row in await api.get("/storage")}
        await api.post("/storage", **{**NAS, "server": server, "nodes": "pve2"})
        rows = {row["storage"]: row for row in await api.get("/nodes/pve2/storage")}
        assert (rows["nas"]["enabled"], rows["nas"]["active"], rows["nas"]["total"]) == (1, 0, 0)


async def test_nothing_can_be_done_with_a_storage_that_is_not_online() -> None:
    async with with_lab() as api:
        await api.post("/storage", **NAS)
        await make(api, 100, scsi0="nas:1")
        await make(api, 101)
        assert (await take_away(api, name="gone", storage="nas")).status == 200
        status = await api.get("/nodes/pve1/storage/nas/status")
        assert (status["enabled"], status["active"], status["total"], status["avail"]) == (1, 0, 0, 0)
        row = next(row for row in await api.get("/cluster/resources") if row["id"] == "storage/pve1/nas")
        assert (row["status"], row.get("maxdisk")) == ("unknown", None)
        text = "storage 'nas' is not online"
        assert await failed(api, await api.post(f"{Q}/100/status/start")) == text
        upid = await api.post(Q, vmid=102, scsi0="nas:1")
        assert await failed(api, upid) == f"unable to create VM 102 - {text}"
        for call in (
            api.get("/nodes/pve1/storage/nas/content"),
            api.put(f"{Q}/101/config", scsi0="nas:1"),
        ):
            with pytest.raises(Refused, match=f"500 {text}"):
                await call
        assert (await api.raw("DELETE", "/faults/gone", base="/_lab")).status == 200
        await done(api, await api.post(f"{Q}/100/status/start"))


async def test_one_node_can_be_kept_from_a_storage_that_the_others_reach() -> None:
    async with with_lab() as api:
        await api.post("/storage", **NAS)
        assert (await take_away(api, storage="nas", node="pve2")).status == 200
        active = [(await api.get(f"/nodes/{node}/storage/nas/status"))["active"] for node in ("pve1", "pve2")]
        assert active == [1, 0]


@pytest.mark.parametrize(
    ("storage", "text"),
    [
        ("none", "there is no storage 'none'"),
        ("local", "'local' is on no server: only cifs, iscsi, nfs storages can be offline"),
    ],
)
async def test_a_storage_without_a_server_is_never_offline(storage: str, text: str) -> None:
    async with with_lab() as api:
        reply = await take_away(api, storage=storage)
        assert (reply.status, reply.json) == (400, {"error": text})
