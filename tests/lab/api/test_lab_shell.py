"""Proxmox's own commands over SSH: what they do, print and end with, to clients that nobody here wrote."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from proxmoxer.backends import command_base
from proxmoxer.core import ProxmoxAPI, ProxmoxResource
from tests.support.lab import lab_client
from tests.support.lab_shell import with_shell
from tests.support.lab_ssh import ssh_to

from pvelab.machines.machine import Kind
from pvelab.seeds import load_seed
from stackyard import lab

# --- qm and pct


async def test_lists_and_states_of_guests_are_printed_as_proxmox_prints_them() -> None:
    async with with_shell() as (_api, say):
        _, out, _ = await say("qm list")
        assert out.splitlines()[:2] == [
            "      VMID NAME                 STATUS     MEM(MB)    BOOTDISK(GB) PID       ",
            "       100 opnsense             running    4096              32.00 1100      ",
        ]
        _, out, _ = await say("pct list")
        assert out.splitlines() == [
            "VMID       Status     Lock         Name                ",
            "201        running                 pihole              ",
        ]
        assert await say("qm status 101") == (0, "status: running\n", "")
        assert await say("pct status 201") == (0, "status: running\n", "")
        assert "\nname: nextcloud\n" in (await say("qm status 101 --verbose"))[1]
        assert (await say("qm config 100 | grep description"))[1] == "description: router, do not touch\n"
        assert (await say("qm listsnapshot 101"))[1] == (
            "`-> before-upgrade              2026-11-01 09:40:00     31 to 32\n"
            " `-> current                                            You are here!\n"
        )


async def test_a_vm_lives_its_life_by_commands() -> None:
    async with with_shell() as (api, say):
        status, out, err = await say(
            "qm create 300 --name web --memory 512 -scsi0 local-lvm:4 --net0=virtio,bridge=vmbr0"
        )
        assert (status, err) == (0, "")
        assert out == "scsi0: successfully created disk 'local-lvm:vm-300-disk-0,size=4G'\n"
        for command in (
            "qm start 300",
            "qm suspend 300",
            "qm resume 300",
            "qm reset 300",
            "qm reboot 300",
            "qm snapshot 300 first --description 'before it'",
            "qm set 300 --onboot --tags a,b --description 'x: y'",
            "qm disk resize 300 scsi0 +1G",
            "qm resize 300 scsi0 6G",
            "qm delsnapshot 300 first",
            "qm disk move 300 scsi0 local --delete",
            "qm shutdown 300",
            "qm clone 300 301 --name copy",
            "qm template 301",
            "qm migrate 300 pve2 --with-local-disks",
        ):
            status, _, err = await say(command)
            assert (status, err) == (0, ""), command
        config = await api.get("/nodes/pve2/qemu/300/config")
        assert (config["onboot"], config["tags"], config["description"]) == (1, "a;b", "x: y")
        assert "size=6G" in config["scsi0"]
        assert (await api.get("/nodes/pve1/qemu/301/config"))["template"] == 1
        assert (await say("qm destroy 301 --purge"))[0] == 0
        assert (await say("qm status 301"))[::2] == (
            2,
            "Configuration file 'nodes/pve1/qemu-server/301.conf' does not exist\n",
        )


async def test_what_a_command_changes_is_told_and_secrets_are_not() -> None:
    async with with_shell() as (api, say):
        _, out, _ = await say("qm set 102 --cores 3 --cipassword hunter22 --name z")
        assert out == "update VM 102: -cipassword <hidden> -cores 3 -name z\n"
        await say("echo 'ssh-ed25519 AAAA me' > /var/lib/vz/snippets/key.pub")
        assert (await say("qm set 102 --sshkeys /var/lib/vz/snippets/key.pub"))[0] == 0
        assert (await api.get("/nodes/pve1/qemu/102/config"))["sshkeys"] == "ssh-ed25519%20AAAA%20me%0A"
        assert (await say("qm set 102 --sshkeys /nowhere"))[::2] == (
            255,
            "can't open '/nowhere' - No such file or directory\n",
        )
        assert (await say("qm pending 102"))[1].startswith("cur agent: enabled=1\n")
        assert "new cores: 3\n" in (await say("qm pending 102"))[1]


async def test_a_failed_task_is_the_error_of_the_command() -> None:
    async with with_shell() as (_api, say):
        assert await say("qm start 101") == (255, "", "VM 101 already running\n")
        status, out, err = await say("qm migrate 100 pve2 --online")
        assert (status, err) == (255, "migration aborted\n")
        assert "can't migrate local disk 'local-lvm:vm-100-disk-0'" in out
        assert (await say("pct start 201"))[::2] == (255, "CT 201 already running\n")


async def test_the_log_of_a_task_is_printed_while_it_works() -> None:
    options = {"seed": load_seed("homelab"), "guests": Kind.RECORDED, "ssh_port": 0}
    command = "qm clone 9000 300 --full"
    async with (
        lab_client(latency_s={lab.Work.CLONE: 3600.0}, **options) as api,
        ssh_to(api) as ssh,
        ssh.create_process(command, encoding="utf-8") as process,
    ):
        first = await process.stdout.readline()
        assert first == "creating a clone of VM 9000 with ID 300\n"
        [upid] = [upid for upid in api.world.store.items("tasks") if ":qmclone:" in upid]
        assert api.world.tasks.is_running(upid)
        while api.world.tasks.is_running(upid):
            api.world.clock.advance(3600)
            await asyncio.sleep(0)
        assert "allocated target volume" in await process.stdout.read()
        await process.wait()
        assert process.exit_status == 0


@pytest.mark.parametrize(
    ("command", "status", "wanted"),
    [
        ("qm", 255, "ERROR: no command specified\nUSAGE: qm <COMMAND> [ARGS] [OPTIONS]\n"),
        ("qm fly 100", 255, "ERROR: unknown command 'qm fly'\nUSAGE: qm <COMMAND>"),
        ("qm disk", 255, "ERROR: incomplete command 'qm disk'\n"),
        ("qm start", 255, "400 not enough arguments\nqm start <vmid> [OPTIONS]\n"),
        ("qm start 1 2", 255, "400 too many arguments\nqm start <vmid> [OPTIONS]\n"),
        (
            "qm start x",
            255,
            "400 Parameter verification failed.\nvmid: type check ('integer') failed - got 'x'\n"
            "qm start <vmid> [OPTIONS]\n",
        ),
        ("qm start ../1", 255, "400 Parameter verification failed.\nvmid: "),
        ("qm set 101 --wings 2", 255, "Unknown option: wings\n400 unable to parse option\nqm set <vmid>"),
        ("qm config 999", 2, "Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist\n"),
        ("qm terminal 100 --iface serial0", 255, "the lab does not do this: there is no screen"),
        ("pct enter 201", 255, "the lab does not do this: it has no interactive shells"),
        ("pct unlock 201", 255, "no lock found trying to remove lock for CT 201\n"),
        ("pvesh get /nothing", 1, "No 'get' handler defined for '/nothing'\n"),
        ("pvesh get", 255, "400 not enough arguments\n"),
        ("pvesh frob /", 255, "ERROR: unknown command 'pvesh frob'\n"),
        ("pvesm path nothing", 255, "unable to parse volume ID 'nothing'\n"),
        ("pvecm add 10.0.0.1", 255, "the lab does not do this: its nodes are those that it was started with"),
        ("pveversion --frob", 255, "USAGE: pveversion [--verbose]\n"),
    ],
)
async def test_a_wrong_command_line_is_refused_as_proxmox_does(
    command: str, status: int, wanted: str
) -> None:
    async with with_shell(seed=load_seed("homelab" if "01" in command else "minimal")) as (_api, say):
        ended, _, err = await say(command)
        assert ended == status
        assert err.startswith(wanted)


async def test_subcommands_may_be_cut_short_and_old_names_work() -> None:
    async with with_shell() as (_api, say):
        assert (await say("qm stat 101"))[1] == "status: running\n"
        assert (await say("qm rescan --vmid 106"))[1] == "rescan volumes...\n"
        assert (await say("qm agent 101 ping"))[:2] == (0, "")
        assert "unknown command 'qm s'" in (await say("qm s 101"))[2]
        assert (await say("qm help start"))[1] == "USAGE: qm start <vmid> [OPTIONS]\n"


async def test_disks_are_imported_found_again_and_unlinked() -> None:
    async with with_shell() as (api, say):
        image = "/var/lib/vz/import/debian-13-generic-amd64.qcow2"
        _, out, _ = await say(f"qm importdisk 100 {image} local-lvm")
        assert out == (
            f"importing disk '{image}' to VM 100 ...\n"
            "unused0: successfully imported disk 'local-lvm:vm-100-disk-1'\n"
        )
        _, out, _ = await say(f"qm disk import 100 {image} local-lvm --target-disk scsi3")
        assert out.endswith("scsi3: successfully imported disk 'local-lvm:vm-100-disk-2,size=3G'\n")
        assert (await say("pvesm alloc local-lvm 100 vm-100-disk-7 4G"))[1] == (
            "successfully created 'local-lvm:vm-100-disk-7'\n"
        )
        _, out, _ = await say("qm disk rescan")
        lost = "VM 100: add unreferenced volume 'local-lvm:vm-100-disk-7' as 'unused1' to config\n"
        assert out == f"rescan volumes...\n{lost}"
        assert (await api.get("/nodes/pve1/qemu/100/config"))["unused1"] == "local-lvm:vm-100-disk-7"


async def test_a_container_is_made_entered_and_looked_at() -> None:
    async with with_shell() as (api, say):
        template = "nas:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst"
        status, _, err = await say(
            f"pct create 310 {template} --hostname box --rootfs local-lvm:4 --unprivileged 1 --start"
        )
        assert (status, err) == (0, "")
        assert await say("pct exec 310 -- hostname") == (0, "box\n", "")
        assert await say("pct pull 310 /etc/hostname -") == (0, "box\n", "")
        assert (await say("pct df 310"))[1].splitlines() == [
            "MP     Volume                  Size Used Avail Use% Path",
            "rootfs local-lvm:vm-310-disk-0 4.0G    0  4.0G  0.0 /",
        ]
        await say("pct set 310 --memory 777 --tags x")
        assert "memory: 777\n" in (await say("pct config 310"))[1]
        assert (await say("pct stop 310"))[0] == 0
        assert (await say("pct exec 310 -- true"))[::2] == (255, "container '310' not running!\n")
        assert (await say("pct destroy 310"))[0] == 0
        assert all(row["vmid"] != 310 for row in await api.get("/nodes/pve1/lxc"))


async def test_locks_are_taken_off() -> None:
    async with with_shell() as (api, say):
        for kind, vmid in (("qemu", 101), ("lxc", 201)):
            guest = api.world.guests.get(vmid)
            assert guest is not None
            with api.world.store.transaction():
                api.world.guests.update(guest, config={**guest["config"], "lock": "backup"})
            tool = "qm" if kind == "qemu" else "pct"
            assert (await say(f"{tool} set {vmid} --memory 600"))[0] == 255
            assert await say(f"{tool} unlock {vmid}") == (0, "", "")
            assert "lock" not in await api.get(f"/nodes/pve1/{kind}/{vmid}/config")


# --- Who may, and what cannot happen


async def test_only_root_runs_them() -> None:
    async with with_shell() as (_api, say):
        assert (await say("sudo -n qm list"))[0] == 0


@pytest.mark.parametrize(
    "command",
    [
        "qm start '; rm -rf /'",
        "pvesm free local:../../etc/passwd",
        "pvesh get /nodes/../../../etc/passwd",
        "pvesh get '/nodes/pve1/qemu/100/config?node=x'",
        "qm guest exec 101",
        "pct push 201 /etc/shadow /x",
        "pvesm set --",
        "qm set 101 --delete",
        "pveum user add 'a b@pve'",
        "vzdump",
        "qm set 101 --description " + "x" * 20_000,
        "qm set 101 $'--na\\x00me' x",
    ],
)
async def test_hostile_words_end_in_a_refusal_not_in_a_defect(command: str) -> None:
    async with with_shell() as (_api, say):
        status, out, err = await say(command)
        assert status in (1, 2, 255), (status, out, err)
        assert "internal error" not in err
        assert "root:" not in out


# --- Clients of others


@pytest.fixture
def login(tmp_path: Path) -> dict[str, Any]:
    """Return a lab's options and the files that `ssh` needs to log in with a key."""
    for program in ("ssh", "ssh-keygen"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not on PATH")
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    return {"key": key, "authorized_keys": (key.with_suffix(".pub").read_text(),)}


def ssh_command(running: lab.Running, key: Path) -> list[str]:
    options = ("BatchMode=yes", "StrictHostKeyChecking=no", f"UserKnownHostsFile={key.parent / 'hosts'}")
    flags = [word for option in options for word in ("-o", option)]
    return [
        "ssh",
        "-q",
        "-F",
        "/dev/null",
        "-i",
        str(key),
        *flags,
        "-p",
        str(running.ssh_port),
        "root@127.0.0.1",
    ]


def test_a_real_ssh_client_runs_them(login: dict[str, Any]) -> None:
    with lab.running(
        seed=load_seed("homelab"), ssh_port=0, authorized_keys=login["authorized_keys"]
    ) as running:
        base = ssh_command(running, login["key"])
        env = {"PATH": os.environ["PATH"], "HOME": str(login["key"].parent)}

        def run(command: str, **options: Any) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [*base, command], env=env, capture_output=True, text=True, timeout=60, check=False, **options
            )

        done = run("qm set 105 --name desk && qm config 105", stdin=subprocess.DEVNULL)
        assert done.returncode == 2
        done = run("pvesh get /cluster/resources --type vm --output-format json", stdin=subprocess.DEVNULL)
        assert done.returncode == 0
        assert '"name":"nextcloud"' in done.stdout
        done = run("pveum passwd alice@pve", input="new-secret\nnew-secret\n")
        assert done.returncode == 0, done.stderr


class _Session(command_base.CommandBaseSession):  # type: ignore[misc]
    """proxmoxer's own session over any shell, here over the real `ssh`."""

    def __init__(self, base: list[str]) -> None:
        super().__init__(service="PVE", timeout=60)
        self._base = base

    def _exec(self, cmd: list[str]) -> tuple[str, str, int]:
        quoted = " ".join("'" + word.replace("'", "'\"'\"'") + "'" for word in cmd)
        done = subprocess.run(
            [*self._base, quoted], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        return done.stdout, done.stderr, done.returncode


def test_proxmoxer_works_over_ssh(login: dict[str, Any]) -> None:
    with lab.running(
        seed=load_seed("homelab"), ssh_port=0, authorized_keys=login["authorized_keys"]
    ) as running:
        session = _Session(ssh_command(running, login["key"]))
        api = ProxmoxAPI.__new__(ProxmoxAPI)
        store = {
            "base_url": "",
            "session": session,
            "serializer": command_base.JsonSimpleSerializer(),
        }
        ProxmoxResource.__init__(api, **store)
        assert api.version.get()["release"].startswith("9.")
        assert {row["node"] for row in api.nodes.get()} == {"pve1", "pve2", "pve3"}
        upid = api.nodes("pve2").qemu(105).status.start.post()
        assert str(upid).startswith("UPID:pve2:")
        assert api.nodes("pve2").qemu(105).status.current.get()["status"] == "running"
