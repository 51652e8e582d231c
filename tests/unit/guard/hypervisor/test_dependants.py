"""What others use is not taken away, and everyone who uses it is named."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from tests.support.hypervisor_guard import judge, removed, updated
from tests.support.lab import LabClient, lab_client

from stackyard.guard import Finding, Owners

STILL_USED, UNKNOWN = "E-GUARD-STILL-USED", "E-GUARD-USE-UNKNOWN"
NAS: dict[str, Any] = {"id": "nas", "path": "/srv/nas", "content": ["images", "iso", "backup"], "nodes": None}


@contextlib.asynccontextmanager
async def busy_lab() -> AsyncIterator[LabClient]:
    """Have a lab of two nodes in which everything is in use."""
    async with lab_client(nodes=("pve1", "pve2")) as api:
        await api.post(
            "/storage", storage="nas", type="dir", path="/srv/nas", content="images,iso,backup", shared=1
        )
        await api.post("/nodes/pve1/network", iface="vmbr1", type="bridge", autostart=1)
        await api.post("/nodes/pve1/network", iface="vmbr1.7", type="vlan", autostart=1)
        await api.done(await api.put("/nodes/pve1/network"))
        await api.post("/cluster/mapping/pci", id="gpu", map="node=pve1,path=0000:01:00.0,id=10de:1b80")
        await api.post("/pools", poolid="shop")
        await api.done(
            await api.post(
                "/nodes/pve1/qemu",
                vmid=100,
                name="web",
                scsi0="nas:4",
                net0="virtio,bridge=vmbr1",
                pool="shop",
            )
        )
        await api.put("/nodes/pve1/qemu/100/config", hostpci0="mapping=gpu")
        await api.post("/cluster/backup", id="nightly", storage="nas", schedule="daily", all=1)
        await api.post("/access/groups", groupid="ops")
        await api.post("/access/roles", roleid="Runner", privs="VM.Audit")
        await api.post("/access/users", userid="ann@pve", groups="ops")
        await api.post("/access/users/ann@pve/token/ci")
        await api.put("/access/acl", path="/vms", roles="Runner", groups="ops")
        await api.put("/access/acl", path="/storage/nas", roles="PVEDatastoreUser", users="ann@pve")
        yield api


def texts(found: list[Finding], code: str = STILL_USED) -> list[str]:
    return [one.detail for one in found if one.kind.code == code]


async def test_everyone_who_uses_something_is_named() -> None:
    async with busy_lab() as api:
        owners = Owners(states={100: "env/shop/pve1"}, files={"nas:iso/debian.iso": "env/shop/pve1"})
        found = await judge(
            api.running,
            removed("storage_directory", **NAS),
            removed("network_linux_bridge", name="vmbr1", node_name="pve1"),
            removed("hardware_mapping_pci", name="gpu", map=[]),
            removed("virtual_environment_pool", pool_id="shop"),
            removed("virtual_environment_user", user_id="ann@pve"),
            removed("virtual_environment_role", role_id="Runner"),
            owners=owners,
        )
        web = "VM 100 web on pve1, of the state env/shop/pve1"
        assert texts(found) == [
            f"The storage nas would be removed, and is used by: {web} (scsi0); backup job nightly; "
            "file nas:iso/debian.iso, of the state env/shop/pve1; "
            "access of ann@pve to /storage/nas as PVEDatastoreUser.",
            f"The interface vmbr1 of pve1 would be removed, and is used by: {web} (net0); "
            "interface vmbr1.7 of pve1.",
            f"The hardware mapping gpu would be removed, and is used by: {web} (hostpci0).",
            "The pool shop would be removed, and is used by: VM 100 web, of the state env/shop/pve1.",
            "The user ann@pve would be removed, and is used by: token ann@pve!ci; "
            "access of ann@pve to /storage/nas as PVEDatastoreUser.",
            "The role Runner would be removed, and is used by: access of ops to /vms as Runner.",
        ]
        assert not texts(found, UNKNOWN)
        assert all(one.permit is None for one in found if one.kind.code == STILL_USED)


async def test_what_a_part_of_them_loses_counts_for_that_part() -> None:
    async with busy_lab() as api:
        # The guest is on pve1, and the job for all guests of both nodes.
        assert texts(await judge(api.running, updated("storage_directory", NAS, nodes=["pve1"]))) == [
            "The storage nas would be limited to pve1, and is used by: backup job nightly."
        ]
        images = updated("storage_directory", {**NAS, "content": ["images", "vztmpl"]}, content=["images"])
        assert texts(await judge(api.running, images)) == []
        moved, narrowed, disabled = [
            texts(await judge(api.running, updated("storage_directory", NAS, **change)))
            for change in ({"nodes": ["pve2"]}, {"content": ["images"]}, {"disable": True})
        ]
        assert moved == [
            "The storage nas would be limited to pve2, and is used by: VM 100 web on pve1 (scsi0); "
            "backup job nightly."
        ]
        assert narrowed == [
            "The storage nas would be taken from backup, iso, and is used by: backup job nightly."
        ]
        assert disabled[0].startswith("The storage nas would be disabled, and is used by: VM 100 web")
        gpu = {"name": "gpu", "map": [{"node": "pve1"}, {"node": "pve2"}]}
        assert (
            texts(await judge(api.running, updated("hardware_mapping_pci", gpu, map=[{"node": "pve1"}])))
            == []
        )
        assert texts(await judge(api.running, updated("hardware_mapping_pci", gpu, map=[{"node": "pve2"}])))


async def test_what_the_same_plan_removes_does_not_count() -> None:
    async with busy_lab() as api:
        found = await judge(
            api.running,
            removed("virtual_environment_vm", vm_id=100, name="web", node_name="pve1", pool_id="shop"),
            removed("network_linux_bridge", name="vmbr1", node_name="pve1"),
            removed("network_linux_vlan", name="vmbr1.7", node_name="pve1"),
            removed("virtual_environment_pool", pool_id="shop"),
            removed("virtual_environment_role", role_id="Runner"),
            removed("acl", path="/vms", role_id="Runner", group_id="ops"),
        )
        assert texts(found) == []


async def test_what_cannot_be_seen_is_not_taken_for_unused() -> None:
    async with busy_lab() as api:
        answer = await api.post("/access/users/root@pam/token/small", privsep=1)
        await api.put("/access/acl", path="/storage", roles="PVEDatastoreAdmin", tokens="root@pam!small")
        await api.put("/access/acl", path="/", roles="PVEAuditor", tokens="root@pam!small", propagate=0)
        token = f"root@pam!small={answer['value']}"
        found = await judge(api.running, removed("storage_directory", **NAS), token=token)
        assert any("VM.Audit on /vms" in text for text in texts(found, UNKNOWN))
        assert any("Sys.Audit on /access" in text for text in texts(found, UNKNOWN))
        api.running.add_fault("node-down", node="pve1")
        bridge = removed("network_linux_bridge", name="vmbr1", node_name="pve1")
        (reason,) = texts(await judge(api.running, bridge), UNKNOWN)
        assert "pve1 does not answer, and guests are there" in reason


async def test_networks_of_the_sdn_and_accounts_are_in_use_too() -> None:
    async with busy_lab() as api:
        await api.post("/cluster/sdn/zones", zone="lan", type="vlan", bridge="vmbr1")
        await api.post("/cluster/sdn/vnets", vnet="office", zone="lan", tag=5)
        await api.done(await api.put("/cluster/sdn"))
        await api.put("/nodes/pve1/qemu/100/config", net1="virtio,bridge=office")
        ann = {"user_id": "ann@pve", "enabled": True, "groups": ["ops"]}
        zone = {"id": "lan", "bridge": "vmbr1", "nodes": None}
        found = await judge(
            api.running,
            removed("network_linux_bridge", name="vmbr1", node_name="pve1"),
            removed("sdn_zone_vlan", **zone),
            removed("sdn_vnet", id="office", zone="lan"),
            removed("virtual_environment_group", group_id="ops"),
            removed("realm_ldap", realm="pve"),
            updated("virtual_environment_user", ann, enabled=False),
        )
        web = "VM 100 web on pve1"
        assert texts(found) == [
            f"The interface vmbr1 of pve1 would be removed, and is used by: {web} (net0); "
            "interface vmbr1.7 of pve1.",
            f"The SDN zone lan would be removed, and is used by: {web} (net1).",
            f"The SDN vnet office would be removed, and is used by: {web} (net1).",
            "The group ops would be removed, and is used by: user ann@pve; access of ops to /vms as Runner.",
            "The realm pve would be removed, and is used by: user ann@pve.",
            "The user ann@pve would be disabled, and is used by: token ann@pve!ci.",
        ]
        (limited,) = texts(await judge(api.running, updated("sdn_zone_vlan", zone, nodes=["pve2"])))
        assert limited == f"The SDN zone lan would be limited to pve2, and is used by: {web} (net1)."


async def test_a_backup_job_uses_the_storage_of_its_fleecing() -> None:
    async with lab_client() as api:
        await api.post("/storage", storage="fast", type="dir", path="/srv/fast", content="images")
        fleecing = "enabled=1,storage=fast"
        await api.post(
            "/cluster/backup", id="nightly", storage="local", schedule="daily", all=1, fleecing=fleecing
        )
        gone = removed("storage_directory", id="fast", path="/srv/fast", content=["images"], nodes=None)
        assert texts(await judge(api.running, gone)) == [
            "The storage fast would be removed, and is used by: backup job nightly (fleecing)."
        ]
        before = {"id": "nightly", "storage": "local", "fleecing": {"enabled": True, "storage": "fast"}}
        moved = updated("backup_job", before, fleecing={"enabled": True, "storage": "other"})
        assert texts(await judge(api.running, gone, moved)) == []
