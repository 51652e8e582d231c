"""Containers and files as proxmoxer sees them, and many clients at the same time."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import proxmoxer.tools
from tests.support.lab import Refused, proxmoxer_client
from tests.support.lab_lxc import L, make, plant_template, used, with_lab

from pvelab import Work
from stackyard import lab

GIB = 2**30


def finish(api: Any, upid: str) -> None:
    found = proxmoxer.tools.Tasks.blocking_status(api, upid, timeout=60, polling_interval=0.01)
    assert found["exitstatus"] == "OK", found


def test_proxmoxer_takes_a_container_from_a_template_to_its_end(tmp_path: Path) -> None:
    template = tmp_path / "alpine-3.22-default_20250617_amd64.tar.xz"
    template.write_bytes(b"not really packed" * 100)
    with lab.running(nodes=("pve1", "pve2")) as running:
        api = proxmoxer_client(running)
        node = api.nodes("pve1")
        with template.open("rb") as stream:
            finish(api, node.storage("local").upload.post(content="vztmpl", filename=stream))
        volid = f"local:vztmpl/{template.name}"
        assert node.storage("local").content(volid).get()["size"] == 1700
        finish(
            api,
            node.lxc.post(
                vmid=100, ostemplate=volid, rootfs="local-lvm:1", net0="name=eth0,bridge=vmbr0,ip=dhcp"
            ),
        )
        finish(api, node.lxc(100).status.start.post())
        addresses = {one["name"]: one.get("inet") for one in node.lxc(100).interfaces.get()}
        assert addresses["eth0"].startswith("10.31.")
        node.lxc(100).config.put(memory=1024, delete=["swap", "net1"])
        assert node.lxc(100).config.get()["memory"] == 1024
        finish(api, node.lxc(100).snapshot.post(snapname="one"))
        finish(api, node.lxc(100).status.stop.post())
        finish(api, node.lxc(100).clone.post(newid=101, full=1))
        finish(api, node.lxc(101).migrate.post(target="pve2"))
        finish(api, api.nodes("pve2").lxc(101).delete())
        finish(api, node.lxc(100).delete(purge=1))
        finish(api, node.storage("local").content(volid).delete())
        assert node.lxc.get() == api.nodes("pve2").lxc.get() == node.storage("local").content.get() == []


async def test_many_clients_at_once_lose_nothing_and_the_accounts_add_up() -> None:
    async with with_lab(latency_s={Work.ALLOCATE: 0.001, Work.CREATE: 0.002, Work.DELETE: 0.001}) as api:
        plant_template(api)
        await make(api, 100)
        await api.post(f"{L}/100/template")

        async def client(number: int) -> None:
            vmid, chance = 200 + number, random.Random(number)
            upid = await api.post(f"{L}/100/clone", newid=vmid, full=0) if number % 3 == 0 else None
            if upid is None:
                await make(api, vmid, mp0="local:1,mp=/data")
            else:
                await api.world.tasks.wait(upid)
            for _ in range(4):
                change: dict[str, Any] = chance.choice(
                    [
                        {"memory": 600 + number},
                        {"mp1": "local-lvm:1,mp=/more"},
                        {"delete": "mp1"},
                        {"onboot": 1},
                    ]
                )
                await api.put(f"{L}/{vmid}/config", **change)
            if number % 2:
                await api.world.tasks.wait(await api.delete(f"{L}/{vmid}", purge=1))

        async def persistent(number: int) -> None:
            while True:
                try:
                    return await client(number)
                except Refused as refused:
                    # One clone at a time locks the template; whoever comes meanwhile tries again.
                    if refused.reason != "CT is locked (disk)":
                        raise

        await asyncio.gather(*(persistent(number) for number in range(30)))
        guests = {row["vmid"]: row for row in await api.get(L)}
        assert set(guests) == {100, *(200 + number for number in range(0, 30, 2))}
        for storage in ("local", "local-lvm"):
            rows = await api.get(f"/nodes/pve1/storage/{storage}/content")
            linked = sum(row["size"] for row in rows if "parent" in row)
            assert await used(api, storage) == sum(row["size"] for row in rows) - linked
            owners = {row["vmid"] for row in rows if "vmid" in row}
            assert owners <= set(guests)
        assert not any("lock" in row for row in guests.values())
