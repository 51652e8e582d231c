"""What one does in a guest stays done, through restarts, copies and snapshots: packages, users, files."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.lab import LabClient
from tests.support.lab_inside import make_guest, need_sandbox, open_guest, with_sandbox

from pvelab.machines.machine import MachineError
from pvelab.machines.makers import SandboxMaker
from pvelab.machines.roots import Roots


async def test_packages_are_installed_removed_and_refused_in_the_records_of_the_guest() -> None:
    async with with_sandbox() as api:
        await make_guest(api)
        guest = await open_guest(api)
        out = await guest.out("apt-get update -q && apt-get install -y nginx jq=1.6-2.1+deb12u3 2>&1")
        assert "Setting up nginx" in out
        assert "nginx-common" in out
        assert await guest.out("dpkg-query -W -f '${Package} ${Version} ${Status}\\n' jq") == (
            "jq 1.6-2.1+deb12u3 install ok installed"
        )
        assert await guest.out("systemctl is-active nginx; systemctl is-enabled nginx") == "active\nenabled"
        await guest.out("echo mine > /var/www/html/index.html && ls -d /etc/nginx/sites-enabled")
        assert "is already the newest version" in await guest.out("apt-get install -y nginx")
        assert "Inst htop" in await guest.out("apt-get -s install htop")
        assert (await guest.sh("dpkg -s htop"))[0] == 1
        status, _, err = await guest.sh("apt-get install -y no-such-thing")
        assert (status, err.strip()) == (100, "E: Unable to locate package no-such-thing")
        assert (await guest.sh("apt-get install -y jq=9.9"))[0] == 100
        await guest.out("apt-get remove -y nginx")
        assert (await guest.out("dpkg -l nginx")).splitlines()[-1].startswith("rc")
        assert "Remv nginx-common" in await guest.out("apt-get -s autoremove")
        await guest.out("apt-get purge -y nginx && apt-get autoremove -y")
        assert (await guest.sh("dpkg -s nginx-common"))[0] != 0 or "config-files" in await guest.out(
            "dpkg -s nginx-common"
        )
        assert "Candidate: 1.22" in await guest.out("apt-cache policy nginx")
        script = (
            "import apt, apt_pkg; c = apt.Cache(); print(c['jq'].installed.version, c['htop'].is_installed)"
        )
        assert await guest.out(f'python3 -c "{script}"') == "1.6-2.1+deb12u3 False"


async def test_services_users_and_settings_are_changed_as_on_a_real_system() -> None:
    async with with_sandbox() as api:
        await make_guest(api)
        guest = await open_guest(api)
        unit = "[Unit]\nDescription=app\n[Service]\nExecStart=/bin/sleep 9\n"
        unit += "[Install]\nWantedBy=multi-user.target\n"
        await guest.machine.write_file("/etc/systemd/system/app.service", unit.encode())
        assert (await guest.sh("systemctl is-enabled app"))[1] == "disabled\n"
        await guest.out("systemctl daemon-reload && systemctl enable --now app && systemctl restart app")
        assert await guest.out("systemctl show -p ActiveState,UnitFileState app") == (
            "ActiveState=active\nUnitFileState=enabled"
        )
        await guest.out("systemctl mask app")
        assert (await guest.sh("systemctl start app"))[0] == 1
        assert (await guest.sh("systemctl start nothing"))[0] == 5
        assert (await guest.sh("systemctl status cron"))[0] == 0
        await guest.out(
            "groupadd -g 3000 crew && useradd -m -G crew,sudo -s /bin/bash ada && usermod -aG adm ada"
        )
        assert set((await guest.out("id -Gn ada")).split()) == {"ada", "crew", "sudo", "adm"}
        await guest.out("echo ada:word | chpasswd")
        assert await guest.machine.accepts_password("ada", "word")
        assert await guest.out("echo word | sudo -S -p '' id -un", user="ada") == "root"
        assert (await guest.sh("echo wrong | sudo -S -p '' id", user="ada"))[0] == 1
        assert (await guest.sh("useradd ada"))[0] == 9
        await guest.out("userdel -r ada")
        assert (await guest.sh("id ada"))[0] != 0
        await guest.out("hostnamectl set-hostname other && timedatectl set-timezone Asia/Tokyo")
        assert await guest.out("hostname; cat /etc/timezone") == "other\nAsia/Tokyo"
        links = json.loads(await guest.out("ip -j addr show eth0"))
        assert links[0]["addr_info"][0]["local"] == "10.31.2.100"
        assert await guest.out("ip route show default") == "default via 10.31.0.1 dev eth0"
        assert (await guest.sh("ping -c1 10.31.0.11"))[0] == 0
        assert (await guest.sh("ping -c1 10.99.9.9"))[0] == 1


async def test_a_guest_that_powers_off_stops_and_one_that_reboots_starts_anew() -> None:
    async with with_sandbox() as api:
        await make_guest(api)
        guest = await open_guest(api)
        await guest.out("touch /tmp/gone /root/kept; apt-get install -y htop")
        before = guest.machine
        with contextlib.suppress(MachineError):
            await guest.sh("reboot")
        world = api.running.world
        while await world.machines.of(world.guests.get(100) or {}) is before:
            await asyncio.sleep(0.02)
        again = await open_guest(api)
        assert await again.out("ls /root/kept; dpkg-query -W -f '${Status}' htop") == (
            "/root/kept\ninstall ok installed"
        )
        assert (await again.sh("ls /tmp/gone"))[0] != 0
        with contextlib.suppress(MachineError):
            await again.sh("poweroff")
        async with asyncio.timeout(30):
            while (await api.get("/nodes/pve1/qemu/100/status/current"))["status"] != "stopped":
                await asyncio.sleep(0.02)


async def test_a_copy_begins_with_the_disk_a_rollback_restores_it_and_removal_removes_it(
    tmp_path: Path,
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the machine")

    async with with_sandbox() as api:
        await make_guest(api)
        guest = await open_guest(api)
        await guest.out(f"echo one > /root/state; chown nobody /root/state; ln -s {secret} /root/link")
        await api.done(await api.post("/nodes/pve1/qemu/100/snapshot", snapname="s1"))
        await guest.out("echo two > /root/state; rm -rf /etc/hosts")
        await api.done(await api.post("/nodes/pve1/qemu/100/status/stop"))
        await api.done(await api.post("/nodes/pve1/qemu/100/clone", newid=101, full=1))
        await api.done(await api.post("/nodes/pve1/qemu/101/status/start"))
        clone = await open_guest(api, 101)
        assert await clone.out("cat /root/state") == "two"
        assert await clone.out("readlink /root/link") == str(secret)
        await api.done(await api.post("/nodes/pve1/qemu/100/snapshot/s1/rollback"))
        await api.done(await api.post("/nodes/pve1/qemu/100/status/start"))
        back = await open_guest(api)
        assert await back.out("cat /root/state; test -e /etc/hosts") == "one"
        folder = api.running.world.machines.roots_folder
        await api.done(await api.post("/nodes/pve1/qemu/100/status/stop"))
        await api.done(await api.delete("/nodes/pve1/qemu/100"))
        async with asyncio.timeout(30):
            while len([path for path in folder.iterdir() if path.is_dir()]) > 1:
                await asyncio.sleep(0.02)
        assert api.running.world.store.get("guest_roots", "100") is None


async def test_a_guest_outlives_the_lab_where_the_lab_has_a_folder(tmp_path: Path) -> None:
    async def first(api: LabClient) -> None:
        await make_guest(api, user_data="#cloud-config\nruncmd: [echo once >> /root/runs]\n")
        guest = await open_guest(api)
        await guest.out("useradd -m ada")

    async def second(api: LabClient) -> None:
        guest = await open_guest(api)
        assert await guest.out("id -un ada; cat /root/runs") == "ada\nonce"

    async with with_sandbox(data=tmp_path / "lab") as api:
        await first(api)
    async with with_sandbox(data=tmp_path / "lab") as api:
        await second(api)


async def test_a_guest_that_stops_takes_its_programs_along() -> None:
    async with with_sandbox() as api:
        await make_guest(api)
        guest = await open_guest(api)
        running = asyncio.create_task(guest.sh("sleep 1000"))
        await guest.out("true")
        await api.done(await api.post("/nodes/pve1/qemu/100/status/stop"))
        with pytest.raises(MachineError):
            await asyncio.wait_for(running, 30)


async def test_a_sandbox_of_an_ordinary_user_has_one_number_and_shows_the_right_ones() -> None:
    found = need_sandbox()

    async with with_sandbox() as api:
        world = api.running.world
        alone = dataclasses.replace(found, has_numbers=False)

        async def answer(_vmid: int, _uid: int, _question: Mapping[str, Any]) -> Any:
            return None

        roots = Roots(world.store, None)
        world.machines.add(lambda _maker: SandboxMaker(world, alone, roots, answer))
        await make_guest(api, ciuser="ops")
        guest = await open_guest(api)
        assert await guest.out("id -un; id -u; cat /proc/self/uid_map | wc -l") == "root\n0\n1"
        assert await guest.out(
            "id -un; id -u; pwd; sudo -n id -un; sudo -n -u www-data id -u", user="ops"
        ) == ("ops\n1000\n/home/ops\nroot\n33")
        # Changes of ownership seem to succeed, and change nothing.
        assert await guest.out("touch /root/x && chown www-data /root/x && stat -c %U /root/x") == "root"
        assert (await guest.sh("unshare -Ur true"))[0] != 0
        assert (await guest.sh("touch /usr/bin/mine"))[0] != 0
        await guest.machine.kill()
        roots.close()
