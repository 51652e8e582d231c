"""SDN objects: pending until they are applied, changed in place, found again."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from tests.support.provider_bench import Bench, bench

from stackyard import lab

ZONE, VNET, SUBNET = "proxmox_sdn_zone_simple", "proxmox_sdn_vnet", "proxmox_sdn_subnet"
APPLIER = "proxmox_sdn_applier"


@contextlib.asynccontextmanager
async def run() -> AsyncIterator[Bench]:
    async with lab.start(nodes=("pve1", "pve2")) as running, bench(running) as it:
        yield it


async def make_vnet(it: Bench) -> None:
    await it.apply(ZONE, id="zone")
    await it.apply(VNET, id="net", zone="zone")


async def test_a_zone_is_pending_until_the_applier_ran() -> None:
    async with run() as it:
        await it.apply(ZONE, id="zone", nodes=["pve1"], ipam="pve")
        assert (it.states[ZONE]["state"], it.states[ZONE]["pending"]) == ("new", True)
        await it.apply(APPLIER)
        assert await it.is_settled(ZONE, id="zone", nodes=["pve1"], ipam="pve")
        assert (it.states[ZONE]["state"], it.states[ZONE]["pending"]) == (None, None)


async def test_what_a_zone_does_not_have_any_more_is_unset() -> None:
    async with run() as it:
        await it.apply(ZONE, id="zone", nodes=["pve1", "pve2"], dhcp="dnsmasq", mtu=1400)
        await it.apply(APPLIER)
        await it.apply(ZONE, id="zone", nodes=["pve2"])
        assert (it.states[ZONE]["dhcp"], it.states[ZONE]["nodes"]) == (None, ["pve2"])
        # Proxmox cannot go back to its own value once there was one.
        assert it.states[ZONE]["mtu"] == 1400
        assert await it.is_settled(ZONE, id="zone", nodes=["pve2"])


async def test_a_subnet_is_changed_in_place_under_the_id_that_proxmox_gave_it() -> None:
    async with run() as it:
        await make_vnet(it)
        range_ = {"start_address": "10.5.0.10", "end_address": "10.5.0.20"}
        await it.apply(SUBNET, vnet="net", cidr="10.5.0.0/24", gateway="10.5.0.1", dhcp_range=range_)
        assert it.states[SUBNET]["id"] == "zone-10.5.0.0-24"
        assert it.plan(SUBNET, vnet="net", cidr="10.5.0.0/24", snat=True).replace == []
        await it.apply(SUBNET, vnet="net", cidr="10.5.0.0/24", snat=True)
        assert it.states[SUBNET]["gateway"] is None
        assert it.states[SUBNET]["dhcp_range"] is None
        assert it.plan(SUBNET, vnet="net", cidr="10.6.0.0/24").replace == [("cidr",)]


async def test_a_subnet_is_imported_by_its_id_or_its_network() -> None:
    async with run() as it:
        await make_vnet(it)
        await it.apply(SUBNET, vnet="net", cidr="10.5.0.0/24", gateway="10.5.0.1")
        made = it.states[SUBNET]
        for given in ("net/zone-10.5.0.0-24", "net/10.5.0.0/24"):
            found = it.operations.identify(it.known(SUBNET), SUBNET, given).state
            assert found is not None
            it.states[SUBNET] = found
            assert await it.refresh(SUBNET) == made


async def test_an_object_that_was_removed_is_gone_though_it_is_still_in_force() -> None:
    async with run() as it:
        await make_vnet(it)
        await it.apply(APPLIER)
        await it.session.client.delete("/cluster/sdn/vnets/net")
        assert await it.refresh(VNET) is None


async def test_the_applier_acts_only_when_it_is_told_to() -> None:
    async with run() as it:
        await it.apply(ZONE, id="zone")
        await it.apply(APPLIER, on_create=False, on_destroy=False)
        await it.refresh(ZONE)
        assert it.states[ZONE]["state"] == "new"
        await it.remove(APPLIER)
        await it.refresh(ZONE)
        assert it.states[ZONE]["state"] == "new"
        assert (
            "there is nothing" in it.operations.identify(it.known(APPLIER), APPLIER, "x").problems[0].detail
        )


async def test_the_dns_of_a_zone_is_set_changed_and_unset() -> None:
    async with run() as it:
        server = {"dns": "power", "type": "powerdns", "url": "https://10.0.0.53:8081/api", "key": "secret"}
        await it.session.client.post("/cluster/sdn/dns", server)
        named = {"id": "zone", "dns": "power", "reverse_dns": "power", "dns_zone": "lab.example.com"}
        await it.apply(ZONE, **named)
        assert await it.is_settled(ZONE, **named)
        await it.apply(APPLIER)
        # The server has to be named with its domain again.
        await it.apply(ZONE, **{**named, "dns_zone": "other.example.com"})
        await it.apply(ZONE, id="zone", dns="power")
        assert (it.states[ZONE]["dns"], it.states[ZONE]["dns_zone"]) == ("power", None)
        assert await it.is_settled(ZONE, id="zone", dns="power")
