"""Lists of many VMs, their states, and the next free number."""

from __future__ import annotations

import pytest
from tests.support.lab import Refused
from tests.support.lab_qemu import Q, change, done, make, with_lab


async def test_the_list_of_a_node_follows_every_change() -> None:
    async with with_lab() as api:
        await make(api, name="one", memory=1024)
        for options in ({"name": "two"}, {"memory": 2048}, {"tags": "a;b"}, {"protection": 1}):
            before = await api.get(Q)
            await api.put(f"{Q}/100/config", **options)
            after = await api.get(Q)
            assert (after != before) == (options != {"protection": 1})
        await done(api, await api.post(f"{Q}/100/status/start"))
        (row,) = await api.get(Q)
        assert (row["status"], row["name"], row["maxmem"]) == ("running", "two", 2 * 2**30)
        api.world.clock.advance(60)
        assert (await api.get(Q))[0]["uptime"] >= 60
        (full,) = await api.get(Q, full=1)
        assert (full["qmpstatus"], full["balloon"]) == ("running", 2 * 2**30)
        assert "qmpstatus" not in row


async def test_the_state_of_a_vm_says_what_its_configuration_means() -> None:
    async with with_lab() as api:
        await make(api, agent="enabled=1", vga="qxl", serial0="socket", balloon=256, memory=512)
        current = await api.get(f"{Q}/100/status/current")
        assert (current["agent"], current["spice"], current["serial"]) == (1, 1, 1)
        assert (current["balloon_min"], current["shares"]) == (256 * 2**20, 1000)
        assert current["ha"] == {"managed": 0}
        assert "pid" not in current
        change(api, 100, agent="0", vga="std")
        assert not {"agent", "spice"} & set(await api.get(f"{Q}/100/status/current"))


async def test_the_next_number_stays_within_the_range_of_the_cluster() -> None:
    async with with_lab() as api:
        await make(api, 100)
        assert await api.get("/cluster/nextid") == "101"
        assert await api.get("/cluster/nextid", vmid=500) == "500"
        with pytest.raises(Refused, match="400") as caught:
            await api.get("/cluster/nextid", vmid=100)
        assert caught.value.errors == {"vmid": "VM 100 already exists"}
        await api.put("/cluster/options", **{"next-id": "lower=200,upper=202"})
        assert await api.get("/cluster/nextid") == "200"
        await make(api, 200)
        await make(api, 201)
        with pytest.raises(Refused, match=r"500 unable to get any free VMID in range \[200, 202\]"):
            await api.get("/cluster/nextid")


async def test_ten_thousand_vms_are_listed_without_printing_each_again() -> None:
    async with with_lab() as api:
        world = api.world
        with world.store.transaction():
            for vmid in range(100, 10_100):
                world.guests.create("qemu", "pve1", vmid, {"name": f"vm{vmid}", "memory": "1024"})
        assert len(await api.get(Q)) == 10_000
        assert len(await api.get("/cluster/resources", type="vm")) == 10_000
        world.clock.hold()
        assert world.rows.on_node(world, "pve1", "qemu") is world.rows.on_node(world, "pve1", "qemu")
        await api.put(f"{Q}/5000/config", name="changed")
        names = {row["vmid"]: row["name"] for row in await api.get(Q)}
        assert (names[5000], names[5001]) == ("changed", "vm5001")
