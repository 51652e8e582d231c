"""Proxmox's own commands over SSH for storages, users and the cluster, and pvesh for everything else."""

from __future__ import annotations

import asyncio
import re

from tests.support.lab import LabClient
from tests.support.lab_shell import with_shell

from pvelab.seeds import load_seed

# --- Storages, users, the cluster


async def test_storages_are_listed_as_proxmox_lists_them() -> None:
    async with with_shell() as (api, say):
        _, out, _ = await say("pvesm status")
        lines = out.splitlines()
        assert lines[:2] == [
            "Name             Type     Status     Total (KiB)      Used (KiB) Available (KiB)        %",
            "archive           dir   disabled               0               0               0      N/A",
        ]
        assert re.fullmatch(r"local-lvm     lvmthin     active +\d+ +\d+ +\d+ +\d+\.\d\d%", lines[3])
        _, out, _ = await say("pvesm list nas --content iso")
        assert out.splitlines()[:2] == [
            "Volid                                   Format  Type           Size VMID",
            "nas:iso/debian-13.1.0-amd64-netinst.iso iso     iso       786432000",
        ]
        assert (await say("pvesm path local:iso/x.iso"))[1] == "/var/lib/vz/template/iso/x.iso\n"
        assert await say("pvesm add dir extra --path /mnt/extra --content iso,backup") == (0, "", "")
        assert await say("pvesm set extra --disable") == (0, "", "")
        assert (await api.get("/storage/extra"))["disable"] == 1
        assert await say("pvesm remove extra") == (0, "", "")
        assert (await say("pvesm remove extra"))[
            2
        ] == "delete storage failed: storage 'extra' does not exist\n"
        _, out, _ = await say("pvesm prune-backups nas --dry-run --keep-last 1 --vmid 201")
        assert out.splitlines()[-1].split() == [
            "nas:backup/vzdump-lxc-201-2026_11_15-02_04_41.tar.zst",
            "lxc/201",
            "keep",
        ]


async def test_users_tokens_and_permissions_are_managed() -> None:
    async with with_shell() as (api, say):
        for command in (
            "pveum group add ops --comment 'who operates'",
            "pveum role add Runner --privs VM.PowerMgmt,VM.Audit",
            "pveum user add eve@pve --groups ops --password secret-123",
            "pveum aclmod /vms --groups ops --roles Runner",
            "pveum pool add crew --comment c",
            "pveum pool modify crew --vms 101 --allow-move",
            "pveum passwd eve@pve --password secret-456",
            "pveum realm modify pve --comment ours",
        ):
            assert await say(command) == (0, "", ""), command
        _, out, _ = await say("pveum user token add eve@pve ci --privsep 0 --output-format json")
        made = re.search(r'"value":"([0-9a-f-]{36})"', out)
        assert made is not None
        client = api.with_token(f"eve@pve!ci={made[1]}")
        assert {row["vmid"] for row in await client.get("/cluster/resources", type="vm")} >= {100, 101}
        _, out, _ = await say("pveum user permissions eve@pve --path /vms")
        assert out.splitlines()[1:5] == [
            "│ ACL path │ Permissions      │",
            "╞══════════╪══════════════════╡",
            "│ /vms     │ VM.Audit (*)     │",
            "│          │ VM.PowerMgmt (*) │",
        ]
        _, out, _ = await say("pveum ticket eve@pve", b"secret-456\n")
        assert out.partition("PVE:")[2].startswith("eve@pve:")
        assert (await say("pveum acl list --noborder --noheader"))[1].splitlines()[-1].split()[:4] == [
            "/vms",
            "Runner",
            "group",
            "ops",
        ]
        assert await say("pveum user tfa list") == (0, "", "")
        assert await say("pveum user tfa list eve@pve") == (0, "", "")
        assert await say("pveum user delete eve@pve") == (0, "", "")


async def test_the_cluster_and_its_versions_are_told() -> None:
    async with with_shell() as (_api, say):
        _, out, _ = await say("pvecm status")
        assert "Name:             homelab\n" in out
        assert "Quorate:          Yes\n" in out
        assert out.endswith("0x00000003          1 10.31.0.13\n")
        assert (await say("pvecm nodes"))[1].splitlines()[-3:] == [
            "         1          1 pve1 (local)",
            "         2          1 pve2",
            "         3          1 pve3",
        ]
        assert re.fullmatch(
            r"pve-manager/9\.\S+/[0-9a-f]+ \(running kernel: \S+\)\n", (await say("pveversion"))[1]
        )
        assert "\npve-manager: 9." in (await say("pveversion -v"))[1]


async def test_a_node_alone_is_no_cluster() -> None:
    async with with_shell(seed=load_seed("empty")) as (_api, say):
        status, _, err = await say("pvecm status")
        assert status == 255
        assert err.startswith("Error: Corosync config '/etc/pve/corosync.conf' does not exist")


async def test_backups_are_made_and_restored() -> None:
    async with with_shell() as (api, say):
        status, out, err = await say("vzdump 101 --storage nas --mode snapshot --compress zstd")
        assert (status, err) == (0, "")
        assert "INFO: Backup job finished successfully\n" in out
        rows = await api.get("/nodes/pve1/storage/nas/content", content="backup", vmid=101)
        newest = max(rows, key=lambda row: row["ctime"])["volid"]
        assert "name: nextcloud" in (await say(f"pvesm extractconfig {newest}"))[1]
        assert (await say(f"qmrestore {newest} 400 --storage local-lvm"))[0] == 0
        assert (await api.get("/nodes/pve1/qemu/400/config"))["name"] == "nextcloud"


async def test_high_availability_is_managed() -> None:
    async with with_shell() as (api, say):
        assert (await say("ha-manager status"))[1].startswith("quorum OK\nmaster pve1 ")
        assert await say("ha-manager add vm:104 --state started --comment third") == (0, "", "")
        assert "vm:104\n\tcomment third\n" in (await say("ha-manager config"))[1]
        assert (await say("ha-manager set vm:104 --state ignored"))[0] == 0
        assert await say("ha-manager crm-command node-maintenance enable pve1") == (0, "", "")
        # What HA manages leaves a node that is to be worked on.
        while not await left(api, 102, "pve1"):
            await asyncio.sleep(0)
        assert await say("ha-manager crm-command node-maintenance disable pve1") == (0, "", "")
        assert (await say("ha-manager crm-command stop vm:104 0"))[
            2
        ] == "resource 'vm:104' is not HA managed\n"
        assert (await say("ha-manager remove vm:104"))[0] == 0
        assert (await say("ha-manager remove vm:104"))[0] == 255
        assert {row["sid"] for row in await api.get("/cluster/ha/resources")} == {"vm:102", "vm:103"}


async def left(api: LabClient, vmid: int, node: str) -> bool:
    rows = await api.get("/cluster/resources", type="vm")
    return all(row["node"] != node for row in rows if row["vmid"] == vmid)


# --- pvesh


async def test_pvesh_calls_any_path_and_prints_any_format() -> None:
    async with with_shell() as (api, say):
        assert (await say("pvesh get /nodes/localhost/dns --output-format json"))[0] == 0
        assert await say("pvesh create /pools --poolid lab --comment 'x y'") == (0, "", "")
        assert (await say("pvesh get /pools/lab --output-format yaml"))[1] == (
            "---\ncomment: x y\nmembers: []\npoolid: lab\n"
        )
        assert await say("pvesh set /pools/lab -comment z") == (0, "", "")
        assert (await api.get("/pools/lab"))["comment"] == "z"
        assert await say("pvesh delete /pools/lab") == (0, "", "")
        assert (await say("pvesh get /cluster/nextid"))[1] == "107\n"
        _, out, _ = await say("pvesh ls /nodes/pve1/qemu")
        assert out.splitlines()[0] == "Dr--d        100"
        assert (await say("pvesh ls /"))[1].splitlines()[0] == "Dr---        access"
        assert (await say("pvesh usage /pools -v"))[1].startswith("USAGE: pvesh get /pools [OPTIONS]\n")
        status, _, err = await say("pvesh set /nodes/pve1/qemu/102/config --cores many")
        assert status == 255
        assert err.startswith("400 Parameter verification failed.\ncores: type check ('integer') failed")


async def test_pvesh_waits_for_a_task_and_prints_its_upid() -> None:
    async with with_shell() as (api, say):
        status, out, err = await say("pvesh create /nodes/pve2/qemu/105/status/start --output-format json")
        assert (status, err) == (0, "")
        assert re.fullmatch(r'"UPID:pve2:[0-9A-F]{8}:[0-9A-F]{8}:[0-9A-F]{8}:qmstart:105:root@pam:"\n', out)
        assert (await api.get("/nodes/pve2/qemu/105/status/current"))["status"] == "running"
        status, out, err = await say("pvesh create /nodes/pve2/qemu/105/status/start")
        assert (status, err) == (0, "VM 105 already running\n")
        assert out.startswith("UPID:pve2:")
