"""Settings of a node: DNS, hosts, time, configuration; and turning nodes off and on."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused, lab_client

from pvelab import Work

NODE = "/nodes/pve1"


@contextlib.asynccontextmanager
async def with_lab(**options: Any) -> AsyncIterator[LabClient]:
    async with lab_client(**options) as api:
        yield api


async def test_dns_is_replaced_as_a_whole() -> None:
    async with with_lab() as api:
        assert set(await api.get(f"{NODE}/dns")) == {"search", "dns1"}
        await api.put(f"{NODE}/dns", search="example.test", dns1="192.0.2.1", dns3="192.0.2.3")
        assert await api.get(f"{NODE}/dns") == {
            "search": "example.test",
            "dns1": "192.0.2.1",
            "dns2": "192.0.2.3",
        }
        await api.put(f"{NODE}/dns", search="example.test")
        assert await api.get(f"{NODE}/dns") == {"search": "example.test"}
        with pytest.raises(Refused, match="value does not look like a valid IP address"):
            await api.put(f"{NODE}/dns", search="example.test", dns1="nope")


async def test_the_hosts_file_is_kept_as_text_and_guarded_by_its_digest() -> None:
    async with with_lab() as api:
        first = await api.get(f"{NODE}/hosts")
        assert "10.31.0.11 pve1" in first["data"]
        await api.post(f"{NODE}/hosts", data="127.0.0.1 localhost\n# end\n", digest=first["digest"])
        assert (await api.get(f"{NODE}/hosts"))["data"] == "127.0.0.1 localhost\n# end\n"
        with pytest.raises(Refused, match="500 detected modified configuration"):
            await api.post(f"{NODE}/hosts", data="", digest=first["digest"])


async def test_the_local_time_follows_the_time_zone() -> None:
    async with with_lab() as api:
        found = await api.get(f"{NODE}/time")
        assert (found["timezone"], found["localtime"]) == ("UTC", found["time"])
        await api.put(f"{NODE}/time", timezone="Asia/Tokyo")
        found = await api.get(f"{NODE}/time")
        assert (found["timezone"], found["localtime"] - found["time"]) == ("Asia/Tokyo", 9 * 3600)
        with pytest.raises(Refused, match=r"400 .*No such timezone"):
            await api.put(f"{NODE}/time", timezone="Mars/Base")


async def test_the_configuration_of_a_node_has_only_what_was_set() -> None:
    async with with_lab() as api:
        config = f"{NODE}/config"
        assert await api.get(config) == {}
        await api.put(config, **{"description": "first\nsecond", "startall-onboot-delay": 5})
        found = await api.get(config)
        assert found["description"] == "first\nsecond\n"
        assert found["startall-onboot-delay"] == "5"
        assert set(found) == {"description", "startall-onboot-delay", "digest"}
        assert await api.get(config, property="wakeonlan") == {}
        await api.put(config, delete="startall-onboot-delay,description", digest=found["digest"])
        assert await api.get(config) == {}
        await api.put(config, wakeonlan="BC:24:11:00:00:01")
        with pytest.raises(Refused, match="500 detected modified configuration"):
            await api.put(config, description="x", digest=found["digest"])
        with pytest.raises(Refused, match=r"plugin 'cf' for domain 'a\.example\.test' not found!"):
            await api.put(config, acmedomain0="domain=a.example.test,plugin=cf")
        with pytest.raises(Refused, match=r"duplicate domain 'a\.example\.test'"):
            await api.put(config, acme="domains=a.example.test", acmedomain1="A.example.test")


async def test_a_new_node_has_no_subscription() -> None:
    async with with_lab() as api:
        found = await api.get(f"{NODE}/subscription")
        assert (found["status"], len(found["serverid"])) == ("notfound", 32)


async def test_a_reboot_stops_the_guests_and_starts_those_that_start_with_the_node() -> None:
    async with with_lab(nodes=("pve1", "pve2"), latency_s={Work.BOOT: 30.0}) as api:
        for vmid, onboot in ((100, 1), (101, 0)):
            await api.done(await api.post("/nodes/pve2/qemu", vmid=vmid, onboot=onboot))
            await api.done(await api.post(f"/nodes/pve2/qemu/{vmid}/status/start"))
        assert await api.post("/nodes/pve2/status", command="reboot") is None
        reply = await api.raw("GET", "/nodes/pve2/status")
        assert (reply.status, reply.reason) == (595, "No route to host")
        assert {row["node"]: row["status"] for row in await api.get("/nodes")}["pve2"] == "offline"
        await api.pass_time(31)
        statuses = {row["vmid"]: row["status"] for row in await api.get("/nodes/pve2/qemu")}
        assert statuses == {100: "running", 101: "stopped"}
        assert (await api.get("/nodes/pve2/status"))["uptime"] < 10
        types = [task["type"] for task in await api.get("/nodes/pve2/tasks", source="all")]
        assert {"stopall", "startall", "qmshutdown"} <= set(types)


async def test_a_node_that_was_shut_down_stays_off_until_it_is_woken() -> None:
    async with with_lab(nodes=("pve1", "pve2", "pve3")) as api:
        await api.post("/nodes/pve3/status", command="shutdown")
        await api.pass_time(600)
        assert (await api.raw("GET", "/nodes/pve3/status")).status == 595
        with pytest.raises(Refused, match="500 No wake on LAN MAC address defined for 'pve3'!"):
            await api.post("/nodes/pve3/wakeonlan")
        with pytest.raises(Refused, match="500 'pve1' is local node, cannot wake my self!"):
            await api.post("/nodes/pve1/wakeonlan")
        with api.world.store.transaction():
            api.world.store.put("node_config", "pve3", {"wakeonlan": "BC:24:11:00:00:01"})
        assert await api.post("/nodes/pve3/wakeonlan") == "BC:24:11:00:00:01"
        assert (await api.get("/nodes/pve3/status"))["uptime"] >= 0


async def test_all_guests_start_in_their_order_and_stop_in_the_reverse() -> None:
    async with with_lab() as api:
        for vmid, order in ((100, 2), (101, 1), (102, None)):
            startup = {} if order is None else {"startup": f"order={order}"}
            await api.done(await api.post(f"{NODE}/qemu", vmid=vmid, onboot=1, **startup))
        upid = await api.post(f"{NODE}/startall")
        assert await api.done(upid) == "OK"
        assert await api.log(upid) == ["Starting VM 101", "Starting VM 100", "Starting VM 102", "TASK OK"]
        upid = await api.post(f"{NODE}/stopall", vms="100,101")
        assert await api.done(upid) == "OK"
        assert [line.split(" (")[0] for line in await api.log(upid)][:2] == [
            "Stopping VM 100",
            "Stopping VM 101",
        ]
        assert {row["vmid"]: row["status"] for row in await api.get(f"{NODE}/qemu")}[102] == "running"
