"""Creating and removing containers: how they are printed, what is kept secret, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.lab import Refused
from tests.support.lab_lxc import (
    TEMPLATE,
    L,
    as_root,
    change,
    done,
    failed,
    make,
    plant_template,
    used,
    with_lab,
)

GIB = 2**30
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0ZQxFv6rfQ6vGqgZk1wq3pW9yq0kq3bq1pJr9n5Wkz me@here"


async def test_a_new_container_is_printed_as_proxmox_prints_it() -> None:
    async with with_lab() as api:
        config = await make(
            api,
            rootfs="volume=local-lvm:4,quota=0,acl=0,mountoptions=discard",
            mp0="mp=/data,volume=local:2,backup=1",
            net0="bridge=vmbr0,host-managed=0,ip=dhcp,name=eth0",
            net1="name=eth1,hwaddr=bc:24:11:00:00:01,ip=10.9.0.2/24,gw=10.9.0.1,bridge=vmbr0",
            cpulimit="1.5",
            cores=2,
            onboot=1,
            tags="web;App;web",
            nameserver="10.0.0.1,10.0.0.2",
            description="first\nsecond",
        )
        assert config["rootfs"] == "local-lvm:vm-100-disk-0,acl=0,mountoptions=discard,quota=0,size=4G"
        assert config["mp0"] == "local:100/vm-100-disk-0.raw,mp=/data,backup=1,size=2G"
        name, bridge, managed, mac, ip, kind = config["net0"].split(",")
        assert (name, bridge, managed) == ("name=eth0", "bridge=vmbr0", "host-managed=0")
        assert mac.startswith("hwaddr=BC:24:11:")
        assert (ip, kind) == ("ip=dhcp", "type=veth")
        assert config["net1"] == (
            "name=eth1,bridge=vmbr0,gw=10.9.0.1,hwaddr=bc:24:11:00:00:01,ip=10.9.0.2/24,type=veth"
        )
        assert (config["cores"], config["cpulimit"], config["onboot"]) == (2, "1.5", 1)
        assert (config["tags"], config["nameserver"]) == ("app;web", "10.0.0.1 10.0.0.2")
        assert config["description"] == "first\nsecond\n"
        assert await used(api) == 4 * GIB
        volumes = await api.get("/nodes/pve1/storage/local-lvm/content")
        assert [(volume["volid"], volume["content"], volume["vmid"]) for volume in volumes] == [
            ("local-lvm:vm-100-disk-0", "rootdir", 100)
        ]


async def test_what_is_not_said_comes_from_the_template_and_from_proxmox() -> None:
    async with with_lab() as api:
        plant_template(api)
        await done(api, await api.post(L, vmid=100, ostemplate=TEMPLATE, storage="local-lvm"))
        config = await api.get(f"{L}/100/config")
        del config["digest"]
        assert config == {
            "arch": "amd64",
            "hostname": "CT100",
            "memory": 512,
            "ostype": "ubuntu",
            "rootfs": "local-lvm:vm-100-disk-0,size=4G",
            "swap": 512,
            "unprivileged": 1,
        }
        assert (await api.get(f"{L}/100/status/current"))["status"] == "stopped"


async def test_passwords_and_keys_never_come_back() -> None:
    async with with_lab() as api:
        await make(api, password="hidden-word", ssh__public__keys=KEY, start=1)
        for path in ("config", "pending", "status/current"):
            reply = await api.raw("GET", f"{L}/100/{path}")
            assert b"hidden-word" not in reply.body
            assert b"ssh-ed25519" not in reply.body
        kept = api.world.store.get("guest_secrets", "100")
        assert kept == {"password": "hidden-word", "ssh-public-keys": KEY}
        await done(api, await api.post(f"{L}/100/status/stop"))
        await done(api, await api.delete(f"{L}/100"))
        assert api.world.store.get("guest_secrets", "100") is None


async def test_a_container_can_start_at_once_in_a_pool() -> None:
    async with with_lab() as api:
        with api.world.store.transaction():
            api.world.store.put("pools", "lab", {"poolid": "lab"})
        await make(api, start=1, pool="lab", hostname="web")
        status = await api.get(f"{L}/100/status/current")
        assert (status["status"], status["type"], status["name"]) == ("running", "lxc", "web")
        assert status["maxswap"] == 512 * 2**20
        row = next(row for row in await api.get("/cluster/resources") if row["id"] == "lxc/100")
        assert (row["pool"], row["status"], row["maxdisk"]) == ("lab", "running", GIB)
        assert [row["vmid"] for row in await api.get(L)] == [100]


@pytest.mark.parametrize(
    ("params", "text"),
    [
        (
            {"mp0": "/srv,mp=/srv"},
            r"403 Permission check failed \(mount point type bind is only allowed for root@pam\)",
        ),
        (
            {"dev0": "/dev/net/tun"},
            r"403 Permission check failed \(configuring device passthrough is only allowed for",
        ),
        (
            {"features": "nesting=1,fuse=1"},
            r"403 Permission check failed \(changing feature flags \(except nesting\)",
        ),
        (
            {"features": "nesting=1", "unprivileged": 0},
            r"403 Permission check failed \(changing feature flags for privileged container is only",
        ),
        (
            {"hookscript": "local:snippets/x.sh"},
            r"403 Permission check failed \(changing the hookscript is only",
        ),
    ],
)
async def test_some_options_are_for_root_alone_and_no_token_of_his(params: dict[str, Any], text: str) -> None:
    async with with_lab() as api:
        with pytest.raises(Refused, match=text):
            await make(api, **params)
        assert api.world.guests.get(100) is None


async def test_root_himself_may_mount_folders_and_pass_devices_through() -> None:
    async with with_lab() as api:
        root = await as_root(api)
        config = await make(
            root, mp0="/srv/data,mp=/data,shared=1", dev0="/dev/net/tun,mode=0666", features="fuse=1,keyctl=1"
        )
        assert config["mp0"] == "/srv/data,mp=/data,shared=1"
        assert config["dev0"] == "/dev/net/tun,mode=0666"
        assert config["features"] == "fuse=1,keyctl=1"


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"ostemplate": "local:iso/x.iso"}, "content type needs to be 'vztmpl'"),
        ({"ostemplate": "local:x"}, "500 unable to parse directory volume name 'x'"),
        ({"ostemplate": "nowhere:vztmpl/x.tar.gz"}, "500 storage 'nowhere' does not exist"),
        ({"rootfs": "nowhere:4"}, "500 storage 'nowhere' does not exist"),
        ({"rootfs": None, "mp0": "local-lvm:1,mp=/x"}, "500 mount points configured, but 'rootfs' not set"),
        ({"ssh__public__keys": "no key at all"}, "500 SSH public key validation error"),
        (
            {"net0": "name=eth0,bridge=vmbr0,mtu=9000"},
            "500 net0: MTU size '9000' is bigger than bridge MTU '1500'",
        ),
        ({"pool": "none"}, "500 pool 'none' does not exist"),
        ({"restore": 1}, "content type needs to be 'backup'"),
        ({"password": "1234"}, "400 .*value must be at least 5 characters long"),
        ({"net0": "bridge=vmbr0"}, "400 .*property is missing and it is not optional"),
    ],
)
async def test_what_cannot_be_is_refused_at_once(params: dict[str, Any], text: str) -> None:
    async with with_lab() as api:
        plant_template(api)
        given = {"ostemplate": TEMPLATE, "rootfs": "local-lvm:1", **params}
        with pytest.raises(Refused, match=text):
            await api.post(L, vmid=100, **{key: value for key, value in given.items() if value is not None})
        assert api.world.guests.get(100) is None


async def test_a_storage_that_holds_no_containers_is_refused() -> None:
    async with with_lab() as api:
        await api.post("/storage", storage="vms", type="dir", path="/srv/vms", content="images")
        with pytest.raises(Refused, match="storage 'vms' does not support container directories"):
            await make(api, rootfs="vms:1")


async def test_a_taken_number_is_refused() -> None:
    async with with_lab() as api:
        await make(api)
        with pytest.raises(
            Refused, match="500 unable to create CT 100 - CT 100 already exists on node 'pve1'"
        ):
            await make(api)
        with pytest.raises(
            Refused, match="500 unable to create VM 100 - CT 100 already exists on node 'pve1'"
        ):
            await api.post("/nodes/pve2/qemu", vmid=100)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"ostemplate": "local:vztmpl/gone.tar.gz"}, "volume 'local:vztmpl/gone.tar.gz' does not exist"),
        ({"mp0": "local:500,mp=/x"}, "No space left on device"),
    ],
)
async def test_a_creation_that_fails_leaves_nothing_behind(params: dict[str, Any], text: str) -> None:
    async with with_lab() as api:
        plant_template(api)
        given = {"ostemplate": TEMPLATE, "rootfs": "local-lvm:1", **params}
        status = await failed(api, await api.post(L, vmid=100, **given))
        assert status.startswith("unable to create CT 100 - ")
        assert status.endswith(text)
        assert await used(api) == 0
        with pytest.raises(Refused, match=r"500 Configuration file 'nodes/pve1/lxc/100.conf' does not exist"):
            await api.get(f"{L}/100/status/current")


async def test_a_running_or_protected_container_is_not_removed() -> None:
    async with with_lab() as api:
        await make(api, start=1)
        with pytest.raises(Refused, match="500 unable to destroy CT 100 - container is running"):
            await api.delete(f"{L}/100")
        upid = await api.delete(f"{L}/100", force=1)
        await done(api, upid)
        assert "forced to stop CT 100 before destroying!" in await api.log(upid)
        await make(api, protection=1)
        with pytest.raises(Refused, match="500 can't remove CT 100 - protection mode enabled"):
            await api.delete(f"{L}/100")
        change(api, 100, protection=0, lock="backup")
        with pytest.raises(Refused, match=r"500 CT is locked \(backup\)"):
            await api.delete(f"{L}/100")


async def test_a_container_that_others_count_on_is_removed_with_purge_only() -> None:
    async with with_lab() as api:
        root = await as_root(api)
        await make(root, ha__managed=1)
        assert (await api.get(f"{L}/100/status/current"))["ha"] == {"managed": 1, "state": "stopped"}
        with pytest.raises(Refused, match="500 unable to remove CT 100 - used in HA resources and purge"):
            await api.delete(f"{L}/100")
        with api.world.store.transaction():
            api.world.store.put("backup_jobs", "job", {"id": "job", "vmid": "100,101"})
        upid = await api.delete(f"{L}/100", purge=1)
        await done(api, upid)
        assert "NOTE: removed CT 100 from HA resource configuration." in await api.log(upid)
        assert api.world.store.get("ha_resources", "ct:100") is None
        assert api.world.store.get("backup_jobs", "job") == {"id": "job", "vmid": "101"}


async def test_removing_a_container_frees_its_volumes_and_forgets_it() -> None:
    async with with_lab() as api:
        await make(api, mp0="local-lvm:1,mp=/data")
        await api.put(f"{L}/100/config", delete="mp0")
        await api.post("/nodes/pve1/storage/local-lvm/content", filename="vm-100-disk-9", vmid=100, size="1G")
        assert await used(api) == 3 * GIB
        await done(api, await api.delete(f"{L}/100"))
        assert await used(api) == GIB
        await make(api)
        await done(api, await api.delete(f"{L}/100", purge=1, destroy__unreferenced__disks=1))
        assert await used(api) == 0
