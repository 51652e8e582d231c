"""Pools: members, pools in pools, who sees and changes them, and what membership grants."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest
from tests.support.lab import LabClient, Refused, lab_client

POOLS = "/pools"
ACL = "/access/acl"


@contextlib.asynccontextmanager
async def with_lab(**options: Any) -> AsyncIterator[LabClient]:
    async with lab_client(**options) as api:
        yield api


async def refusal(call: Awaitable[Any]) -> Refused:
    with pytest.raises(Refused) as caught:
        await call
    return caught.value


async def make_vm(api: LabClient, vmid: int, **params: Any) -> None:
    assert await api.done(await api.post("/nodes/pve1/qemu", vmid=vmid, **params)) == "OK"


async def members(api: LabClient, poolid: str) -> list[str]:
    (pool,) = await api.get(POOLS, poolid=poolid)
    return [member["id"] for member in pool["members"]]


async def user(api: LabClient, name: str, *grants: tuple[str, str]) -> LabClient:
    userid = f"{name}@pve"
    await api.post("/access/users", userid=userid, password="secret123")
    for path, role in grants:
        await api.put(ACL, path=path, roles=role, users=userid)
    return await api.with_password(userid, "secret123")


async def test_a_pool_reads_back_as_a_list_of_one_and_by_its_old_path() -> None:
    async with with_lab() as api:
        await api.post(POOLS, poolid="lab", comment="ours")
        await make_vm(api, 100, name="web", pool="lab")
        await api.put(POOLS, poolid="lab", storage="local-lvm")
        (pool,) = await api.get(POOLS, poolid="lab")
        assert (pool["poolid"], pool["comment"]) == ("lab", "ours")
        vm, storage = pool["members"]
        assert (vm["id"], vm["type"], vm["vmid"], vm["node"], vm["name"]) == (
            *("qemu/100", "qemu", 100, "pve1"),
            "web",
        )
        assert (storage["id"], storage["type"], storage["storage"]) == (
            "storage/pve1/local-lvm",
            "storage",
            "local-lvm",
        )
        assert await api.get(f"{POOLS}/lab") == pool
        only = await api.get(POOLS, poolid="lab", type="storage")
        assert [member["type"] for member in only[0]["members"]] == ["storage"]
        assert await api.get(POOLS) == [{"poolid": "lab", "comment": "ours"}]
        rows = {row["id"]: row for row in await api.get("/cluster/resources")}
        assert rows["qemu/100"]["pool"] == "lab"
        assert "/pool/lab" in rows


async def test_members_come_and_go_and_move_only_when_allowed() -> None:
    async with with_lab() as api:
        for poolid in ("a", "b"):
            await api.post(POOLS, poolid=poolid)
        for vmid in (100, 101):
            await make_vm(api, vmid)
        await api.put(POOLS, poolid="a", vms="100,101", storage="local")
        assert await members(api, "a") == ["qemu/100", "qemu/101", "storage/pve1/local"]
        moved = await refusal(api.put(POOLS, poolid="b", vms=100))
        text = "VM 100 belongs already to pool 'a' and 'allow-move' is not set"
        assert str(moved) == f"500 update pools failed: {text}"
        await api.put(f"{POOLS}/b", vms=100, allow__move=1)
        assert (await members(api, "a"), await members(api, "b")) == (
            ["qemu/101", "storage/pve1/local"],
            ["qemu/100"],
        )
        await api.put(POOLS, poolid="a", vms=101, storage="local", delete=1)
        assert await members(api, "a") == []


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"poolid": "nope", "vms": 100}, "pool 'nope' does not exist"),
        ({"poolid": "lab", "vms": 100}, "VM 100 is already a pool member"),
        ({"poolid": "lab", "vms": 101, "delete": 1}, "VM 101 is not a pool member"),
        ({"poolid": "lab", "storage": "local"}, "Storage 'local' is already a pool member"),
        ({"poolid": "lab", "storage": "local-lvm", "delete": 1}, "Storage 'local-lvm' is not a pool member"),
    ],
)
async def test_changes_that_cannot_be_leave_the_pool_as_it_was(params: dict[str, Any], text: str) -> None:
    async with with_lab() as api:
        await api.post(POOLS, poolid="lab")
        await make_vm(api, 100, pool="lab")
        await api.put(POOLS, poolid="lab", storage="local")
        refused = await refusal(api.put(POOLS, comment="changed", **params))
        assert str(refused) == f"500 update pools failed: {text}"
        assert await api.get(POOLS) == [{"poolid": "lab"}]
        assert await members(api, "lab") == ["qemu/100", "storage/pve1/local"]


async def test_pools_nest_three_deep_below_pools_that_exist() -> None:
    async with with_lab() as api:
        orphan = await refusal(api.post(POOLS, poolid="a/b"))
        assert orphan.reason == "create pool failed: parent 'a' of pool 'a/b' does not exist"
        for poolid in ("a", "a/b", "a/b/c"):
            await api.post(POOLS, poolid=poolid)
        deep = await refusal(api.post(POOLS, poolid="a/b/c/d"))
        assert "nested too deeply" in deep.errors["poolid"]
        full = await refusal(api.delete(POOLS, poolid="a"))
        assert full.reason == "delete pool failed: pool 'a' is not empty (contains pool 'a/b')"
        name = await refusal(api.post(POOLS, poolid="a/1"))
        assert name.reason == "create pool failed: pool name must start with a letter"
        again = await refusal(api.post(POOLS, poolid="a/b"))
        assert again.reason == "create pool failed: pool 'a/b' already exists"
        for poolid in ("a/b/c", "a/b", "a"):
            await api.delete(POOLS, poolid=poolid)
        assert await api.get(POOLS) == []


async def test_a_pool_goes_when_nothing_is_left_in_it() -> None:
    async with with_lab() as api:
        await api.post(POOLS, poolid="lab")
        await api.post("/access/users", userid="bob@pve")
        await api.put(ACL, path="/pool/lab", roles="PVEVMUser", users="bob@pve")
        await make_vm(api, 100, pool="lab")
        full = await refusal(api.delete(POOLS, poolid="lab"))
        assert full.reason == "delete pool failed: pool 'lab' is not empty (contains VM 100)"
        await api.done(await api.delete("/nodes/pve1/qemu/100"))
        await api.put(POOLS, poolid="lab", storage="local")
        full = await refusal(api.delete(f"{POOLS}/lab"))
        assert full.reason == "delete pool failed: pool 'lab' is not empty (contains storage 'local')"
        await api.put(POOLS, poolid="lab", storage="local", delete=1)
        await api.delete(POOLS, poolid="lab")
        assert await api.get(ACL) == []
        gone = await refusal(api.get(POOLS, poolid="lab"))
        assert gone.reason == "pool 'lab' does not exist"


async def test_roles_on_a_pool_reach_its_members_and_the_pools_below() -> None:
    async with with_lab() as api:
        for poolid in ("a", "a/b", "other"):
            await api.post(POOLS, poolid=poolid)
        for vmid, poolid in ((100, "a/b"), (101, "other")):
            await make_vm(api, vmid, pool=poolid)
        await api.put(POOLS, poolid="a/b", storage="local-lvm")
        bob = await user(api, "bob", ("/pool/a", "PVEAdmin"))
        assert [row["poolid"] for row in await bob.get(POOLS)] == ["a", "a/b"]
        rows = {row["id"] for row in await bob.get("/cluster/resources", type="vm")}
        assert rows == {"qemu/100"}
        granted = await bob.get("/access/permissions")
        assert "VM.PowerMgmt" in granted["/vms/100"]
        assert "Datastore.AllocateSpace" in granted["/storage/local-lvm"]
        assert "/vms/101" not in granted


async def test_a_pool_admin_adds_what_they_own_and_nothing_else() -> None:
    async with with_lab() as api:
        await api.post(POOLS, poolid="lab")
        for vmid in (100, 101):
            await make_vm(api, vmid)
        await api.post("/access/roles", roleid="Pooler", privs="Pool.Allocate,Pool.Audit")
        bob = await user(api, "bob", ("/pool/lab", "Pooler"), ("/vms/100", "PVEVMAdmin"))
        await bob.put(POOLS, poolid="lab", vms=100)
        assert await members(api, "lab") == ["qemu/100"]
        # Proxmox checks this while it holds the lock, which makes a 500 of its 403.
        foreign = await refusal(bob.put(POOLS, poolid="lab", vms=101))
        assert str(foreign) == (
            "500 update pools failed: 403 Permission check failed (/vms/101, Permissions.Modify|VM.Allocate)"
        )
        other = await refusal(bob.post(POOLS, poolid="mine"))
        assert str(other) == "403 Permission check failed (/pool/mine, Pool.Allocate)"
        eve = await user(api, "eve")
        assert await eve.get(POOLS) == []
        hidden = await refusal(eve.get(f"{POOLS}/lab"))
        assert str(hidden) == "403 Permission check failed (/pool/lab, Pool.Audit)"
