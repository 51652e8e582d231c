"""Changing containers: what takes effect at once, what waits for the next start, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.lab import LabClient, Refused
from tests.support.lab_lxc import L, as_root, change, done, make, used, with_lab

GIB = 2**30


async def pending(api: LabClient) -> dict[str, dict[str, Any]]:
    return {row["key"]: row for row in await api.get(f"{L}/100/pending")}


async def test_a_running_container_takes_some_changes_at_once_and_others_at_its_next_start() -> None:
    async with with_lab() as api:
        root = await as_root(api)
        await make(root, start=1, features="nesting=1")
        await root.put(f"{L}/100/config", memory=1024, cpulimit=2, features="nesting=1,fuse=1", tty=1, swap=0)
        rows = await pending(api)
        assert (rows["memory"]["value"], rows["swap"]["value"], rows["cpulimit"]["value"]) == (1024, 0, "2")
        assert rows["features"] == {"key": "features", "value": "nesting=1", "pending": "nesting=1,fuse=1"}
        assert rows["tty"] == {"key": "tty", "pending": 1}
        assert (await api.get(f"{L}/100/config"))["features"] == "nesting=1,fuse=1"
        assert (await api.get(f"{L}/100/config", current=1))["features"] == "nesting=1"
        await done(api, await api.post(f"{L}/100/status/stop"))
        assert "pending" in (await pending(api))["features"]
        await done(api, await api.post(f"{L}/100/status/start"))
        assert "pending" not in (await pending(api))["features"]
        assert (await api.get(f"{L}/100/config", current=1))["tty"] == 1


async def test_options_are_removed_and_changes_taken_back() -> None:
    async with with_lab() as api:
        await make(api, start=1, searchdomain="lab", onboot=1, net0="name=eth0,bridge=vmbr0")
        await api.put(f"{L}/100/config", delete=["searchdomain", "onboot", "net0", "net1", "net31"])
        rows = await pending(api)
        assert "onboot" not in rows
        assert "net0" not in rows
        assert rows["searchdomain"] == {"key": "searchdomain", "value": "lab", "delete": 1}
        assert "searchdomain" not in await api.get(f"{L}/100/config")
        await api.put(f"{L}/100/config", revert="searchdomain")
        assert (await api.get(f"{L}/100/config"))["searchdomain"] == "lab"


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({}, "500 no options specified"),
        ({"delete": "nonsense"}, "400 .*unknown option 'nonsense'"),
        ({"delete": "memory"}, "500 unable to delete required option 'memory'"),
        ({"delete": "unprivileged"}, "500 unable to delete read-only option: 'unprivileged'"),
        ({"unprivileged": 0}, "500 unable to modify read-only option: 'unprivileged'"),
        (
            {"onboot": 1, "delete": "onboot"},
            "400 .*you can't use '-onboot' and -delete onboot' at the same time",
        ),
        (
            {"digest": "0" * 40, "onboot": 1},
            "500 detected modified configuration - file changed by other user",
        ),
        ({"mp0": "nowhere:1,mp=/x"}, "500 storage 'nowhere' does not exist"),
        ({"hookscript": "local:iso/x.iso"}, "500 'local:iso/x.iso' is not in the snippets directory"),
        ({"hookscript": "local:snippets/gone.sh"}, "500 script 'local:snippets/gone.sh' does not exist"),
        (
            {"net0": "name=e,bridge=vmbr0,host-managed=1,ip6=auto"},
            "500 net0: SLAAC is not supported for host-managed",
        ),
    ],
)
async def test_a_change_that_cannot_be_is_refused_and_changes_nothing(
    params: dict[str, Any], text: str
) -> None:
    async with with_lab() as api:
        root = await as_root(api)
        before = await make(root)
        with pytest.raises(Refused, match=text):
            await root.put(f"{L}/100/config", **params)
        assert await api.get(f"{L}/100/config") == before
        assert await used(api) == GIB


async def test_a_locked_container_is_left_alone() -> None:
    async with with_lab() as api:
        await make(api)
        change(api, 100, lock="snapshot")
        with pytest.raises(Refused, match=r"500 CT is locked \(snapshot\)"):
            await api.put(f"{L}/100/config", onboot=1)


async def test_a_mount_point_that_goes_becomes_unused_and_can_be_freed() -> None:
    async with with_lab() as api:
        await make(api)
        await api.put(f"{L}/100/config", mp0="local-lvm:2,mp=/data")
        assert (await api.get(f"{L}/100/config"))["mp0"] == "local-lvm:vm-100-disk-1,mp=/data,size=2G"
        await api.put(f"{L}/100/config", delete="mp0")
        config = await api.get(f"{L}/100/config")
        assert ("mp0" in config, config["unused0"]) == (False, "local-lvm:vm-100-disk-1")
        await api.put(f"{L}/100/config", mp1="local-lvm:vm-100-disk-1,mp=/again")
        config = await api.get(f"{L}/100/config")
        assert ("unused0" in config, config["mp1"]) == (False, "local-lvm:vm-100-disk-1,mp=/again,size=2G")
        await api.put(f"{L}/100/config", delete="mp1")
        await api.put(f"{L}/100/config", delete="unused0")
        assert await used(api) == GIB


async def test_a_mount_point_in_place_of_another_waits_for_the_next_start() -> None:
    async with with_lab() as api:
        await make(api, start=1)
        await api.put(f"{L}/100/config", mp0="local-lvm:1,mp=/data")
        assert (await api.get(f"{L}/100/config", current=1))["mp0"].startswith("local-lvm:vm-100-disk-1,")
        await api.put(f"{L}/100/config", mp0="local-lvm:3,mp=/data")
        assert (await pending(api))["mp0"]["pending"] == "local-lvm:3,mp=/data"
        assert await used(api) == 2 * GIB
        await done(api, await api.post(f"{L}/100/status/reboot"))
        config = await api.get(f"{L}/100/config", current=1)
        assert config["mp0"] == "local-lvm:vm-100-disk-2,mp=/data,size=3G"
        assert config["unused0"] == "local-lvm:vm-100-disk-1"


async def test_volumes_of_a_protected_container_stay() -> None:
    async with with_lab() as api:
        await make(api, mp0="local-lvm:1,mp=/data", protection=1)
        with pytest.raises(Refused, match="500 can't remove CT 100 drive 'mp0' - protection mode enabled"):
            await api.put(f"{L}/100/config", delete="mp0")
        with pytest.raises(Refused, match="500 can't update CT 100 drive 'mp1' - protection mode enabled"):
            await api.put(f"{L}/100/config", mp1="local-lvm:1,mp=/more")
        assert await used(api) == 2 * GIB


async def test_only_who_may_change_options_sees_the_environment() -> None:
    async with with_lab() as api:
        await make(api, env="TOKEN=secret\0MODE=test")
        assert (await api.get(f"{L}/100/config"))["env"] == "TOKEN=secret\0MODE=test"
        await api.post("/access/users", userid="eve@pve", password="password")
        await api.put("/access/acl", path="/vms", roles="PVEAuditor", users="eve@pve")
        eve = await api.with_password("eve@pve", "password")
        assert "env" not in await eve.get(f"{L}/100/config")
        with pytest.raises(Refused, match="403 Permission check failed"):
            await eve.put(f"{L}/100/config", onboot=1)


async def test_every_option_asks_for_its_own_privilege() -> None:
    async with with_lab() as api:
        await make(api, net0="name=eth0,bridge=vmbr0")
        await api.post("/access/users", userid="eve@pve", password="password")
        await api.post("/access/roles", roleid="Tuner", privs="VM.Config.CPU,VM.Config.Network")
        await api.put("/access/acl", path="/vms", roles="Tuner", users="eve@pve")
        eve = await api.with_password("eve@pve", "password")
        await eve.put(f"{L}/100/config", cores=2, hostname="tuned")
        for params, text in (
            ({"memory": 1024}, r"\(/vms/100, VM.Config.Memory\)"),
            ({"onboot": 1}, r"\(/vms/100, VM.Config.Options\)"),
            ({"mp0": "local-lvm:1,mp=/x"}, r"\(/vms/100, VM.Config.Disk\)"),
            ({"net1": "name=eth1,bridge=vmbr0,tag=7"}, r"\(/sdn/zones/localnetwork/vmbr0/7, SDN.Use\)"),
        ):
            with pytest.raises(Refused, match=f"403 Permission check failed {text}"):
                await eve.put(f"{L}/100/config", **params)
