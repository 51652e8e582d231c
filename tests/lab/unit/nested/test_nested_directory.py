"""The directory of addresses: what answers, told at once and as it changes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from tests.support.lab import lab_client
from tests.support.lab_nested import make_node, nested_node, sessions

from pvelab.machines.machine import Kind
from pvelab.nested.network_location import NetworkLocation

NODE = "10.31.0.11"


class Heard:
    """Keeps what a listener is told."""

    def __init__(self) -> None:
        self.present: set[str] = set()

    def __call__(self, added: Mapping[str, NetworkLocation], removed: set[str]) -> None:
        self.present |= set(added)
        self.present -= removed


async def test_it_tells_of_guests_and_nodes_that_run_and_of_every_change() -> None:
    async with lab_client(guests=Kind.RECORDED) as api:
        await make_node(api, 100, scsi0="local-lvm:1", ipconfig0="ip=10.0.12.5/24")
        heard = Heard()
        api.world.nest.directory.listen(heard)
        assert heard.present == {NODE, "10.0.12.5"}
        await make_node(api, 101, scsi0="local-lvm:1", ipconfig0="ip=10.0.12.6/24")
        assert heard.present == {NODE, "10.0.12.5", "10.0.12.6"}
        await api.done(await api.post("/nodes/pve1/qemu/100/status/stop"))
        assert heard.present == {NODE, "10.0.12.6"}


async def test_a_guest_that_boots_answers_when_it_has_booted() -> None:
    async with lab_client(guests=Kind.RECORDED, latency_s={"boot": 30.0}) as api:
        heard = Heard()
        api.world.nest.directory.listen(heard)
        await make_node(api, 100, scsi0="local-lvm:1", ipconfig0="ip=10.0.12.5/24")
        assert heard.present == {NODE}
        await api.pass_time(31)
        assert heard.present == {NODE, "10.0.12.5"}


async def test_an_address_that_two_have_is_gone_with_the_second() -> None:
    async with lab_client(guests=Kind.RECORDED) as api:
        heard = Heard()
        api.world.nest.directory.listen(heard)
        for vmid in (100, 101):
            await make_node(api, vmid, scsi0="local-lvm:1", ipconfig0="ip=10.0.12.5/24")
        for vmid, expected in ((100, True), (101, False)):
            await api.done(await api.post(f"/nodes/pve1/qemu/{vmid}/status/stop"))
            assert ("10.0.12.5" in heard.present) is expected


async def test_labs_inside_are_in_the_same_directory_as_long_as_they_run() -> None:
    async with lab_client(guests=Kind.RECORDED) as api, sessions() as session:
        inner = await nested_node(api, 100, session, ipconfig0="ip=10.0.12.5/24")
        heard = Heard()
        api.world.nest.directory.listen(heard)
        await make_node(inner, 200, scsi0="local-lvm:1", ipconfig0="ip=10.0.13.9/24")
        assert heard.present == {NODE, "10.0.12.5", "10.0.13.9"}
        await api.done(await api.post("/nodes/pve1/qemu/100/status/stop"))
        async with asyncio.timeout(60):
            while "10.0.13.9" in heard.present:
                await asyncio.sleep(0.01)
        assert heard.present == {NODE}
