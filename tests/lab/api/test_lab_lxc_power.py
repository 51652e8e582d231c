"""Starting and stopping containers, and the addresses that they have."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.lab import LabClient, Refused
from tests.support.lab_lxc import TEMPLATE, L, change, done, failed, make, plant_template, with_lab

from pvelab import Work


async def interfaces(api: LabClient, vmid: int = 100) -> dict[str, Any]:
    found = await api.get(f"{L}/{vmid}/interfaces")
    return {one["name"]: one for one in found}


async def test_a_container_that_is_not_in_the_right_state_says_so_at_once() -> None:
    async with with_lab() as api:
        await make(api)
        for command in ("stop", "shutdown", "suspend"):
            with pytest.raises(Refused, match="500 CT 100 not running"):
                await api.post(f"{L}/100/status/{command}")
        with pytest.raises(Refused, match="500 VM 100 not running"):
            await api.post(f"{L}/100/status/reboot")
        await done(api, await api.post(f"{L}/100/status/start"))
        for command in ("start", "resume"):
            with pytest.raises(Refused, match="500 CT 100 already running"):
                await api.post(f"{L}/100/status/{command}")
        with pytest.raises(Refused, match=r"400 .*Only root may use this option"):
            await api.post(f"{L}/100/status/stop", skiplock=1)


async def test_a_template_or_locked_container_does_not_start() -> None:
    async with with_lab() as api:
        await make(api)
        change(api, 100, lock="backup")
        assert await failed(api, await api.post(f"{L}/100/status/start")) == "CT is locked (backup)"
        change(api, 100, lock="")
        await api.post(f"{L}/100/template")
        text = await failed(api, await api.post(f"{L}/100/status/start"))
        assert text == "you can't start a CT if it's a template"


async def test_a_container_whose_volume_is_gone_does_not_start() -> None:
    async with with_lab() as api:
        await make(api)
        await done(api, await api.delete("/nodes/pve1/storage/local-lvm/content/local-lvm:vm-100-disk-0"))
        text = await failed(api, await api.post(f"{L}/100/status/start"))
        assert text == "volume 'local-lvm:vm-100-disk-0' does not exist"
        assert (await api.get(f"{L}/100/status/current"))["status"] == "stopped"


async def test_quotas_do_not_go_with_unprivileged_containers() -> None:
    async with with_lab() as api:
        await make(api, mp0="local-lvm:1,mp=/data,quota=1")
        text = await failed(api, await api.post(f"{L}/100/status/start"))
        assert text == "Quotas are not supported by unprivileged containers."


async def test_a_shutdown_that_takes_too_long_fails_or_is_forced() -> None:
    async with with_lab(latency_s={Work.SHUTDOWN: 60.0}) as api:
        await make(api, start=1)
        upid = await api.post(f"{L}/100/status/shutdown", timeout=5)
        await api.pass_time(6)
        assert await failed(api, upid) == "container did not stop"
        assert (await api.get(f"{L}/100/status/current"))["status"] == "running"
        upid = await api.post(f"{L}/100/status/shutdown", timeout=5, forceStop=1)
        await api.pass_time(6)
        await done(api, upid)
        assert (await api.get(f"{L}/100/status/current"))["status"] == "stopped"


async def test_a_stop_can_break_off_a_shutdown() -> None:
    async with with_lab(latency_s={Work.SHUTDOWN: 40.0}) as api:
        await make(api, start=1)
        shutdown = await api.post(f"{L}/100/status/shutdown", timeout=50)
        stop = await api.post(f"{L}/100/status/stop", overrule__shutdown=1)
        await done(api, stop)
        assert f"overruled vzshutdown tasks: {shutdown}" in await api.log(stop)
        assert await failed(api, shutdown) == "received interrupt"


async def test_a_suspended_container_comes_back_and_no_other_does() -> None:
    async with with_lab() as api:
        await make(api)
        assert "lxc-checkpoint" in await failed(api, await api.post(f"{L}/100/status/resume"))
        await done(api, await api.post(f"{L}/100/status/start"))
        await done(api, await api.post(f"{L}/100/status/suspend"))
        assert (await api.get(f"{L}/100/status/current"))["status"] == "stopped"
        await done(api, await api.post(f"{L}/100/status/resume"))
        assert (await api.get(f"{L}/100/status/current"))["status"] == "running"


async def test_interfaces_have_the_addresses_that_the_configuration_gives_them() -> None:
    async with with_lab() as api:
        await make(
            api,
            net0="name=eth0,bridge=vmbr0,ip=10.40.0.7/24,gw=10.40.0.1,ip6=fd00::7/64,hwaddr=BC:24:11:00:00:07",
            net1="name=lan1,bridge=vmbr0,tag=20,ip=dhcp,ip6=auto",
            net2="name=eth2,bridge=vmbr0,ip=manual",
        )
        assert await api.get(f"{L}/100/interfaces") is None
        await done(api, await api.post(f"{L}/100/status/start"))
        found = await interfaces(api)
        assert list(found) == ["lo", "eth0", "lan1", "eth2"]
        assert found["eth0"]["hardware-address"] == "bc:24:11:00:00:07"
        assert found["eth0"]["inet"] == "10.40.0.7/24"
        assert found["eth0"]["ip-addresses"] == [
            {"ip-address-type": "inet", "ip-address": "10.40.0.7", "prefix": 24},
            {"ip-address-type": "inet6", "ip-address": "fd00::7", "prefix": 64},
            {"ip-address-type": "inet6", "ip-address": "fe80::be24:11ff:fe00:7", "prefix": 64},
        ]
        assert found["lan1"]["inet"].endswith("/18")
        assert [one["ip-address-type"] for one in found["lan1"]["ip-addresses"]] == ["inet", "inet6", "inet6"]
        assert "inet" not in found["eth2"]
        await done(api, await api.post(f"{L}/100/status/reboot"))
        assert (await interfaces(api))["lan1"]["inet"] == found["lan1"]["inet"]


async def test_a_container_has_no_addresses_before_it_has_booted() -> None:
    async with with_lab(latency_s={Work.BOOT: 6000.0}) as api:
        await make(api, net0="name=eth0,bridge=vmbr0,ip=dhcp", start=1)
        found = await interfaces(api)
        assert (list(found), found["eth0"]["ip-addresses"]) == (["lo", "eth0"], [])
        api.world.clock.advance(600)
        assert "inet" in (await interfaces(api))["eth0"]


async def test_a_system_that_proxmox_does_not_know_gets_addresses_from_the_host_alone() -> None:
    async with with_lab() as api:
        await make(
            api,
            ostype="unmanaged",
            net0="name=eth0,bridge=vmbr0,ip=dhcp",
            net1="name=eth1,bridge=vmbr0,ip=dhcp,host-managed=1",
            start=1,
        )
        found = await interfaces(api)
        assert ("inet" in found["eth0"], "inet" in found["eth1"]) == (False, True)


async def test_an_image_from_a_registry_runs_what_the_image_says() -> None:
    async with with_lab() as api:
        pulled = await api.post(
            "/nodes/pve1/storage/local/oci-registry-pull", reference="docker.io/library/nginx:1.29"
        )
        await done(api, pulled)
        plant_template(api)
        await make(
            api, ostemplate="local:vztmpl/nginx_1.29.tar", net0="name=eth0,bridge=vmbr0,ip=dhcp", start=1
        )
        config = await api.get(f"{L}/100/config")
        assert (config["entrypoint"], config["cmode"], config["ostype"]) == (
            "/bin/sh",
            "console",
            "unmanaged",
        )
        assert ",host-managed=1," in config["net0"]
        assert config["lxc"] == [["lxc.signal.halt", "SIGTERM"]]
        assert "inet" in (await interfaces(api))["eth0"]
        assert TEMPLATE not in str(config)
