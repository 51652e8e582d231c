"""Ways out of a guest's sandbox, tried and refused."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.support.lab import LabClient
from tests.support.lab_inside import make_guest, need_sandbox, open_guest, with_sandbox

SECRET = "the-secret-of-the-machine"


async def test_no_path_no_link_and_no_process_leads_to_files_of_the_machine(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text(SECRET)
    os.chmod(secret, 0o644)

    async with with_sandbox() as api:
        await make_guest(api)
        guest = await open_guest(api)
        for line in (
            f"cat {secret}",
            f"cat ../../../../../../../..{secret}",
            f"cat /proc/1/root{secret}",
            f"cat /proc/self/root{secret}",
            f"ln -s {secret} /root/link; cat /root/link",
            f"cd /proc/1/cwd/../../..; cat .{secret}",
            f"cat /oldroot{secret} /newroot{secret}",
            f"cat /dev/fd/3; cat /dev/sda; ls {Path.home()}/.ssh",
        ):
            status, out, _ = await guest.sh(line)
            assert status != 0, line
            assert SECRET not in out
        # Nor by way of the files that the lab itself reads in the guest.
        await guest.sh(f"mkdir -p /root/.ssh; ln -sf {secret} /root/.ssh/authorized_keys")
        assert SECRET not in "".join(await guest.machine.authorized_keys("root"))
        with pytest.raises(OSError, match="No such file"):
            await guest.machine.read_file(str(secret), 1000)
        with pytest.raises(OSError, match="No such file"):
            await guest.machine.write_file(str(secret), b"x")
        assert secret.read_text() == SECRET


async def test_a_guest_sees_and_signals_its_own_processes_only() -> None:
    async with with_sandbox() as api:
        await make_guest(api)
        guest = await open_guest(api)
        own = os.getpid()
        numbers = (await guest.out("ls -d /proc/[0-9]*")).split()
        assert len(numbers) < 20
        for one in numbers[:3]:
            assert "pytest" not in (await guest.sh(f"cat {one}/cmdline"))[1]
        assert (await guest.sh(f"test -e /proc/{own}/root{Path(__file__)}"))[0] != 0
        assert (await guest.sh("kill -9 -1; kill -0 $$"))[0] in (0, 1, 137)
        os.kill(own, 0)
        assert await guest.out("echo alive") == "alive"


async def test_a_guest_does_not_reach_the_loopback_of_the_machine() -> None:
    async with with_sandbox() as api:
        await make_guest(api)
        guest = await open_guest(api)
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            for target in (port, api.running.port, api.running.ssh_port):
                script = f"import socket; socket.create_connection(('127.0.0.1', {target}), 2)"
                status, _, err = await guest.sh(f'python3 -c "{script}"')
                assert status == 1
                assert "refused" in err or "unreachable" in err


@pytest.mark.parametrize(
    "line",
    [
        "touch /usr/bin/mine",
        "rm /usr/bin/python3",
        "echo x > /run/lab/lib/guest/init.py",
        "echo 1 > /proc/sys/kernel/panic",
        "echo b > /proc/sysrq-trigger",
        'python3 -c \'import ctypes; exit(ctypes.CDLL(None).mount(b"x", b"/mnt", b"tmpfs", 0, 0))\'',
        "unshare -Ur true",
        "unshare -m true",
        "chroot / true",
        "mknod /root/sda b 8 0",
        "umount /usr",
        "dmesg",
    ],
)
async def test_what_belongs_to_the_machine_is_refused(line: str) -> None:
    async with with_sandbox() as api:
        await make_guest(api)
        guest = await open_guest(api)
        assert (await guest.sh(line))[0] != 0


async def test_a_fork_bomb_ends_at_the_limit_and_the_guest_goes_on() -> None:
    script = (
        "import os, time\n"
        "count = 0\n"
        "try:\n"
        "    while count < 5000:\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(60)\n"
        "            os._exit(0)\n"
        "        count += 1\n"
        "except BlockingIOError:\n"
        "    print('stopped at', count)\n"
        "os.killpg(0, 9)\n"
    )

    async with with_sandbox() as api:
        await make_guest(api, ciuser="ops")
        guest = await open_guest(api)
        await guest.machine.write_file("/tmp/bomb.py", script.encode())
        _, out, _ = await guest.sh("python3 -u /tmp/bomb.py", user="ops")
        assert out.startswith("stopped at ")
        assert int(out.split()[-1]) < 1000
        assert await guest.out("echo alive") == "alive"


async def test_the_limits_on_memory_and_files_hold() -> None:
    async with with_sandbox() as api:
        await make_guest(api)
        guest = await open_guest(api)
        status, _, err = await guest.sh('python3 -c "bytearray(20 * 2**30)"')
        assert status != 0
        assert "MemoryError" in err
        assert (await guest.sh("truncate -s 3G /root/large"))[0] != 0


async def test_nothing_of_the_lab_is_in_the_environment_or_among_the_descriptors() -> None:
    async with with_sandbox() as api:
        await make_guest(api, cipassword="guest-word")
        guest = await open_guest(api)
        running = api.running
        for line in ("env", "cat /proc/self/environ", "cat /proc/1/environ", "cat /proc/1/cmdline"):
            _, out, _ = await guest.sh(line)
            assert running.api_token.partition("=")[2] not in out
            assert running.password not in out
            assert "STACKYARD" not in out
        assert (await guest.out("ls /proc/self/fd")).split()[:3] == ["0", "1", "2"]
        assert len((await guest.out("ls /proc/self/fd")).split()) <= 4


async def test_root_of_a_guest_is_nobody_in_particular_outside() -> None:
    bubblewrap = need_sandbox()

    async with with_sandbox() as api:
        await make_guest(api, ciuser="ops")
        guest = await open_guest(api)
        await guest.out("touch /root/mine; chmod 4755 /root/mine")
        await guest.out("touch /home/ops/mine", user="ops")
        record = api.running.world.store.get("guest_roots", "100")
        assert record is not None
        place = api.running.world.machines.roots_folder / str(record["id"]) / "root"
        owner = (place / "root" / "mine").stat().st_uid
        assert owner == (bubblewrap.first_number if bubblewrap.has_numbers else os.getuid())
        if bubblewrap.has_numbers:
            assert owner != 0
            assert (place / "home" / "ops" / "mine").stat().st_uid == owner + 1000


async def test_guests_do_not_see_one_another() -> None:
    async with with_sandbox() as api:
        await make_guest(api)
        await make_guest(api, 101)
        first, second = await open_guest(api), await open_guest(api, 101)
        await first.out("echo mine > /root/note; echo shared > /tmp/note")
        assert (await second.sh("cat /root/note /tmp/note"))[0] != 0
        folder = api.running.world.machines.roots_folder
        assert (await second.sh(f"ls {folder}"))[0] != 0
        assert "note" not in (await second.sh("ls / /root /tmp"))[1]


async def test_an_unprivileged_user_of_a_guest_stays_one() -> None:
    async def test(api: LabClient) -> None:
        await make_guest(
            api,
            user_data="#cloud-config\nusers:\n  - name: plain\n    ssh_authorized_keys: []\n  - default\n",
        )
        guest = await open_guest(api)
        for line in (
            "sudo -n id",
            "cat /etc/shadow",
            "su -c id < /dev/null",
            "apt-get install -y jq",
            "reboot",
        ):
            assert (await guest.sh(line, user="plain"))[0] != 0, line
        assert await guest.out("sudo -n id -u", user="debian") == "0"

    if need_sandbox().has_numbers:
        async with with_sandbox() as api:
            await test(api)
    else:
        pytest.skip("an ordinary user's sandbox has one user number only")
