"""Logging in to guests: forwarded ports, files, terminals, host keys, and who is refused."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from tests.support.lab import LabClient
from tests.support.lab_inside import make_guest, open_guest, with_sandbox
from tests.support.lab_ssh import OWN, said, ssh_to


async def listed(api: LabClient) -> list[dict[str, Any]]:
    """Return what `lab guests --json` lists."""
    reply = await api.raw("GET", "/guests", base="/_lab")
    found: list[dict[str, Any]] = json.loads(reply.body)["guests"]
    return found


def connecting(found: dict[str, Any], user: str = "ops", **options: Any) -> Any:
    """Connect to the forwarded port of a guest, whose host key must be the listed one."""
    known = asyncssh.import_known_hosts(f"[{found['host']}]:{found['port']} {found['host_key']}\n")
    chosen = {**OWN, "known_hosts": known, "username": user, **options}
    return asyncssh.connect(found["host"], found["port"], **chosen)


async def test_a_guest_answers_on_the_port_that_is_listed_with_its_host_key_and_its_users(
    tmp_path: Path,
) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")

    async with with_sandbox() as api:
        await make_guest(api, ciuser="ops", sshkeys=key.export_public_key().decode())
        (found,) = await listed(api)
        assert (found["name"], found["addresses"], found["users"]) == ("vm100", ["10.31.2.100"], ["ops"])
        async with connecting(found, client_keys=[key]) as ssh:
            assert await said(ssh, "echo $USER; cat; exit 7", b"from here") == (7, "ops\nfrom here", "")
            assert (await said(ssh, "kill -9 $$"))[0] in (None, 137)
            assert (await said(ssh, "no-such-program"))[0] == 127
            (tmp_path / "up").write_bytes(bytes(range(256)) * 4096)
            async with ssh.start_sftp_client() as sftp:
                await sftp.put(str(tmp_path / "up"), "data.bin")
                await sftp.get("data.bin", str(tmp_path / "down"))
                assert (await sftp.stat("data.bin")).size == 2**20
                with pytest.raises(asyncssh.SFTPPermissionDenied):
                    await sftp.put(str(tmp_path / "up"), "/etc/data.bin")
            assert (tmp_path / "down").read_bytes() == (tmp_path / "up").read_bytes()
            async with ssh.create_process(term_type="xterm", term_size=(100, 30)) as process:
                process.stdin.write("tty; stty size; exit 3\n")
                out = await process.stdout.read()
                assert "/dev/pts/" in str(out)
                assert "30 100" in str(out)
                assert (await process.wait()).exit_status == 3
        with pytest.raises(asyncssh.PermissionDenied):
            await connecting(found, client_keys=[asyncssh.generate_private_key("ssh-ed25519")])
        with pytest.raises(asyncssh.PermissionDenied):
            await connecting(found, "root", client_keys=[key])


async def test_users_keys_and_passwords_that_are_changed_inside_count_from_then_on() -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")

    async with with_sandbox() as api:
        await make_guest(api, user_data="#cloud-config\npassword: first\nchpasswd: {expire: false}\n")
        guest = await open_guest(api)
        (found,) = await listed(api)
        async with connecting(found, "debian", password="first") as ssh:
            await said(ssh, "sudo useradd -m -s /bin/bash ada && sudo mkdir /home/ada/.ssh")
        public = key.export_public_key()
        await guest.machine.write_file("/home/ada/.ssh/authorized_keys", public)
        async with connecting(found, "ada", client_keys=[key]) as ssh:
            assert (await said(ssh, "whoami"))[1] == "ada\n"
        await guest.machine.write_file("/etc/ssh/sshd_config.d/x.conf", b"PasswordAuthentication no\n")
        with pytest.raises(asyncssh.PermissionDenied):
            await connecting(found, "debian", password="first")
        await guest.out("userdel -r ada")
        with pytest.raises(asyncssh.PermissionDenied):
            await connecting(found, "ada", client_keys=[key])


async def test_host_keys_of_the_user_data_are_used_and_passwords_only_where_it_allows_them() -> None:
    own = asyncssh.generate_private_key("ssh-ed25519")
    private = "\n".join(f"    {line}" for line in own.export_private_key().decode().splitlines())
    data = f"#cloud-config\npassword: word\nssh_pwauth: false\nssh_keys:\n  ed25519_private: |\n{private}\n"

    async with with_sandbox() as api:
        await make_guest(api, user_data=data)
        (found,) = await listed(api)
        assert found["host_key"].split()[1] == own.export_public_key().decode().split()[1]
        with pytest.raises(asyncssh.PermissionDenied):
            await connecting(found, "debian", password="word")


async def test_a_guest_that_stops_refuses_and_comes_back_with_the_same_key_and_port() -> None:
    async with with_sandbox() as api:
        await make_guest(api, cipassword="word")
        (before,) = await listed(api)
        ssh = await connecting(before, "debian", password="word")
        await api.done(await api.post("/nodes/pve1/qemu/100/status/stop"))
        await asyncio.wait_for(ssh.wait_closed(), 30)
        with pytest.raises((asyncssh.Error, OSError)):
            await connecting(before, "debian", password="word")
        (stopped,) = await listed(api)
        assert (stopped["status"], stopped["port"]) == ("stopped", None)
        async with ssh_to(api) as node:
            with pytest.raises(asyncssh.ChannelOpenError):
                await node.connect_ssh("10.31.2.100", username="debian", **OWN)
        await api.done(await api.post("/nodes/pve1/qemu/100/status/start"))
        (after,) = await listed(api)
        assert (after["port"], after["host_key"]) == (before["port"], before["host_key"])
        async with connecting(after, "debian", password="word") as again:
            assert (await said(again, "hostname"))[1] == "vm100\n"
