"""A Ceph cluster in the lab: consistent from its first monitor to its last disk."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.lab import LabClient, Refused
from tests.support.lab_lxc import as_root
from tests.support.lab_qemu import Q, done, failed, with_lab

NODES = ("pve1", "pve2", "pve3")
C = "/nodes/pve1/ceph"


async def build(api: LabClient, osds: int = 1) -> LabClient:
    """Set a cluster up on all nodes, with some disks each, and return a client that is root."""
    root = await as_root(api)
    await api.post(f"{C}/init", network="10.31.0.0/16")
    for node in NODES:
        await done(api, await api.post(f"/nodes/{node}/ceph/mon/{node}"))
        for disk in ("/dev/sda", "/dev/sdb")[:osds]:
            await done(api, await root.post(f"/nodes/{node}/ceph/osd", dev=disk))
    return root


async def test_nothing_answers_before_ceph_is_set_up() -> None:
    async with with_lab(nodes=NODES) as api:
        for path in ("/cluster/ceph/status", f"{C}/status", f"{C}/pool", f"{C}/mon"):
            with pytest.raises(Refused, match="500 pveceph configuration not enabled"):
                await api.get(path)
        await api.post(f"{C}/init")
        with pytest.raises(Refused, match="500 ceph not fully configured"):
            await api.get("/cluster/ceph/status")
        assert await api.get(f"{C}/mon") == []


async def test_whole_cluster_is_healthy_and_adds_up() -> None:
    async with with_lab(nodes=NODES) as api:
        await build(api)
        status = await api.get("/cluster/ceph/status")
        assert status["health"]["status"] == "HEALTH_OK"
        assert status["quorum_names"] == list(NODES)
        assert (status["osdmap"]["num_osds"], status["osdmap"]["num_up_osds"]) == (3, 3)
        assert status["pgmap"]["bytes_total"] == 3 * 960 * 10**9
        assert status["mgrmap"]["active_name"] == "pve1"
        assert [row["quorum"] for row in await api.get(f"{C}/mon")] == [1, 1, 1]
        tree = (await api.get(f"{C}/osd"))["root"]["children"][0]
        assert [host["name"] for host in tree["children"]] == list(NODES)
        leaves = [leaf for host in tree["children"] for leaf in host["children"]]
        assert [(leaf["id"], leaf["status"], leaf["in"]) for leaf in leaves] == [
            (number, "up", 1) for number in ("0", "1", "2")
        ]
        [used] = [row for row in await api.get("/nodes/pve1/disks/list") if row["devpath"] == "/dev/sda"]
        assert (used["osdid"], used["used"]) == (0, "LVM")


async def test_stopped_services_and_dead_nodes_show_in_health_and_quorum() -> None:
    async with with_lab(nodes=NODES) as api:
        await build(api)
        await done(api, await api.post("/nodes/pve2/ceph/stop", service="osd.1"))
        health = (await api.get(f"{C}/status"))["health"]
        assert health["status"] == "HEALTH_WARN"
        assert "OSD_DOWN" in health["checks"]
        await done(api, await api.post("/nodes/pve2/ceph/stop"))
        assert (await api.get(f"{C}/status"))["quorum_names"] == ["pve1", "pve3"]
        await done(api, await api.post("/nodes/pve3/ceph/stop", service="mon"))
        with pytest.raises(Refused, match="rados_connect failed"):
            await api.get(f"{C}/status")
        for node in ("pve2", "pve3"):
            await done(api, await api.post(f"/nodes/{node}/ceph/start"))
        assert (await api.get(f"{C}/status"))["health"]["status"] == "HEALTH_OK"
        assert "exit code 5" in await failed(api, await api.post(f"{C}/start", service="osd.9"))


async def test_pool_with_a_storage_holds_disks_and_is_kept_while_it_does() -> None:
    async with with_lab(nodes=NODES) as api:
        await build(api)
        await done(
            api, await api.post(f"{C}/pool", name="vms", pg_num=64, add_storages=1, target_size_ratio=0.2)
        )
        [row] = await api.get(f"{C}/pool")
        assert (row["pool_name"], row["size"], row["min_size"], row["pg_num"]) == ("vms", 3, 2, 64)
        assert (await api.get("/nodes/pve2/storage/vms/status"))["total"] == 960 * 10**9
        await done(api, await api.post(Q, vmid=100, scsi0="vms:4"))
        state = await api.get(f"{C}/pool/vms/status", verbose=1)
        assert (state["statistics"]["stored"], state["application_list"]) == (4 * 2**30, ["rbd"])
        assert (await api.get(f"{C}/status"))["pgmap"]["bytes_used"] == 3 * 4 * 2**30
        await done(api, await api.put(f"{C}/pool/vms", size=2, pg_autoscale_mode="on"))
        changed = await api.get(f"{C}/pool/vms/status")
        assert (changed["size"], changed["pg_autoscale_mode"]) == (2, "on")
        assert "still in use by storage 'vms'" in await failed(api, await api.delete(f"{C}/pool/vms"))
        await done(api, await api.delete(f"{Q}/100"))
        await done(api, await api.delete(f"{C}/pool/vms", remove_storages=1))
        assert await api.get(f"{C}/pool") == []
        with pytest.raises(Refused, match="does not exist"):
            await api.get("/storage/vms")


async def test_erasure_coded_pool_is_two_pools() -> None:
    async with with_lab(nodes=NODES) as api:
        await build(api)
        await done(api, await api.post(f"{C}/pool", name="ec", erasure__coding="k=2,m=1", add_storages=1))
        kinds = {row["pool_name"]: (row["type"], row["size"]) for row in await api.get(f"{C}/pool")}
        assert kinds == {"ec-metadata": ("replicated", 3), "ec-data": ("erasure", 3)}
        storage = await api.get("/storage/ec")
        assert (storage["pool"], storage["data-pool"]) == ("ec-metadata", "ec-data")


@pytest.mark.parametrize(
    ("path", "params", "text"),
    [
        (f"{C}/mon/pve1", {}, "monitor address '10.31.0.11' already in use"),
        (f"{C}/mon/other", {"mon-address": "10.9.9.9"}, "not configured or up on pve1"),
        (f"{C}/mds/9lives", {}, "ID of the MDS cannot start with a number!"),
        (f"{C}/osd/99/out", {}, "no such OSD '99'"),
    ],
)
async def test_impossible_changes_are_refused(path: str, params: dict[str, Any], text: str) -> None:
    async with with_lab(nodes=NODES) as api:
        await build(api)
        with pytest.raises(Refused, match=text):
            await api.post(path, **params)


async def test_osd_leaves_only_when_out_and_down() -> None:
    async with with_lab(nodes=NODES) as api:
        root = await build(api)
        with pytest.raises(Refused, match=r"osd is in use \(in == 1\)"):
            await root.delete(f"{C}/osd/0")
        await api.post(f"{C}/osd/0/out")
        with pytest.raises(Refused, match=r"osd is still running \(up == 1\)"):
            await root.delete(f"{C}/osd/0")
        await done(api, await api.post(f"{C}/stop", service="osd.0"))
        with pytest.raises(Refused, match="does not belong to node pve2"):
            await root.delete("/nodes/pve2/ceph/osd/0")
        await done(api, await root.delete(f"{C}/osd/0", cleanup=1))
        assert (await api.get(f"{C}/status"))["osdmap"]["num_osds"] == 2
        unused = await api.get("/nodes/pve1/disks/list", type="unused")
        assert "/dev/sda" in [row["devpath"] for row in unused]
        with pytest.raises(Refused, match="403"):
            await api.post(f"{C}/osd", dev="/dev/sdb")


async def test_last_monitor_stays_and_monitors_belong_to_their_node() -> None:
    async with with_lab(nodes=NODES) as api:
        await build(api)
        with pytest.raises(Refused, match="no such monitor id 'x'"):
            await api.delete(f"{C}/mon/x")
        with pytest.raises(Refused, match="does not exist on this node"):
            await api.delete(f"{C}/mon/pve2")
        for node in ("pve2", "pve3"):
            await done(api, await api.delete(f"/nodes/{node}/ceph/mon/{node}"))
        with pytest.raises(Refused, match="can't remove last monitor"):
            await api.delete(f"{C}/mon/pve1")


async def test_settings_that_ceph_refuses_leave_the_others_changed() -> None:
    async with with_lab(nodes=NODES) as api:
        await build(api)
        await done(api, await api.post(f"{C}/pool", name="vms", target_size="1G", pg_num_min=8))
        # A pool that is there is changed to what the call says, and its defaults.
        await done(api, await api.post(f"{C}/pool", name="vms", pg_num=64))
        refused = await failed(api, await api.put(f"{C}/pool/vms", application="rgw", size=2, pg_num_min=0))
        assert "Could not set: application" in refused
        state = await api.get(f"{C}/pool/vms/status", verbose=1)
        assert (state["pg_num"], state["size"], state["min_size"]) == (64, 2, 2)
        assert (state["application_list"], state["target_size"], "pg_num_min" in state) == (
            ["rbd"],
            2**30,
            False,
        )
        assert "Could not set: min_size" in await failed(api, await api.put(f"{C}/pool/vms", min_size=3))
