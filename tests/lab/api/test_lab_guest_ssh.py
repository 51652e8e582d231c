"""Port 22 of guests, through a node: their own host keys, and the users and keys of their cloud-init."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import urllib.parse
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from tests.support.lab import LabClient, lab_client, proxmoxer_client
from tests.support.lab_ssh import OWN, said, ssh_to

from pvelab.machines.machine import Kind
from pvelab.seeds import parse_seed
from pvelab.world.storage.contents import put_file
from stackyard import lab

ADDRESS = "10.31.2.100"


@contextlib.asynccontextmanager
async def with_lab(**options: Any) -> AsyncIterator[LabClient]:
    async with lab_client(ssh_port=0, **options) as api:
        yield api


VM = {"ide2": "local-lvm:cloudinit", "net0": "virtio,bridge=vmbr0", "ipconfig0": f"ip={ADDRESS}/16"}


async def make_vm(api: LabClient, vmid: int = 100, address: str = ADDRESS, **settings: Any) -> None:
    """Make a VM with cloud-init and start it."""
    given = {**VM, "ipconfig0": f"ip={address}/16", **settings}
    await api.done(await api.post("/nodes/pve1/qemu", vmid=vmid, name=f"vm{vmid}", **given))
    await api.done(await api.post(f"/nodes/pve1/qemu/{vmid}/status/start"))


@contextlib.asynccontextmanager
async def guest(api: LabClient, **options: Any) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """Connect to a guest through the first node."""
    chosen = {**OWN, "host": ADDRESS, "username": "debian", **options}
    async with ssh_to(api) as node, node.connect_ssh(**chosen) as connection:
        yield connection


async def test_a_user_of_cloud_init_gets_in_with_key_or_password_and_runs_commands() -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")
    line = urllib.parse.quote(key.export_public_key().decode(), safe="")

    async with with_lab(guests=Kind.RECORDED) as api:
        await make_vm(api, ciuser="ops", cipassword="secret-word", sshkeys=line)
        async with guest(api, username="ops", client_keys=[key]) as ssh:
            assert await said(ssh, "true") == (0, "", "")
            assert (await said(ssh, "echo hello world"))[1] == "hello world\n"
            assert (await said(ssh, "hostname"))[1] == "vm100\n"
            assert (await said(ssh, "id"))[1].startswith("uid=1000(ops)")
            assert "ID=debian" in (await said(ssh, "cat /etc/os-release"))[1]
            assert (await said(ssh, "reboot"))[0] == 127
            assert (await said(ssh, "cat /etc/shadow"))[0] == 1
        async with guest(api, username="ops", password="secret-word") as ssh:
            assert (await said(ssh, "whoami"))[1] == "ops\n"
        for wrong in ({"username": "root", "client_keys": [key]}, {"username": "ops", "password": "wrong"}):
            with pytest.raises(asyncssh.PermissionDenied):
                async with guest(api, **wrong):
                    pass


USER_DATA = """#cloud-config
users:
  - default
  - name: deploy
    ssh_authorized_keys:
      - {key}
  - name: dashed
    ssh-authorized-keys:
      - {key}
  - name: plain
    plain_text_passwd: open-sesame
    lock_passwd: false
chpasswd:
  users:
    - name: debian
      password: for-debian
      type: text
"""


async def test_users_of_a_custom_user_data_snippet_get_in() -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")
    text = USER_DATA.format(key=key.export_public_key().decode().strip())

    async with with_lab(
        seed=parse_seed({"files": [{"volume": "local:snippets/u.yaml", "text": text}]})
    ) as api:
        await make_vm(api, ciuser="ignored", cipassword="ignored-2", cicustom="user=local:snippets/u.yaml")
        for name in ("deploy", "dashed"):
            async with guest(api, username=name, client_keys=[key]) as ssh:
                assert (await said(ssh, "whoami"))[1] == f"{name}\n"
        for name, password in (("plain", "open-sesame"), ("debian", "for-debian")):
            async with guest(api, username=name, password=password) as ssh:
                assert (await said(ssh, "whoami"))[1] == f"{name}\n"
        with pytest.raises(asyncssh.PermissionDenied):
            async with guest(api, username="ignored", password="ignored-2"):
                pass


@pytest.mark.parametrize("text", ["not: [closed", "#cloud-config\n- a list", "plain text", ""])
async def test_user_data_that_cannot_be_read_lets_nobody_in_and_breaks_nothing(text: str) -> None:
    async with with_lab(
        seed=parse_seed({"files": [{"volume": "local:snippets/u.yaml", "text": text}]})
    ) as api:
        await make_vm(api, cicustom="user=local:snippets/u.yaml")
        with pytest.raises(asyncssh.PermissionDenied):
            async with guest(api, password="anything"):
                pass


async def test_a_container_lets_root_in_with_its_password_and_its_keys() -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")

    async def test(api: LabClient) -> None:
        await api.done(
            await api.post(
                "/nodes/pve1/lxc",
                vmid=200,
                hostname="box",
                ostemplate="local:vztmpl/debian.tar.zst",
                rootfs="local-lvm:1",
                net0=f"name=eth0,bridge=vmbr0,ip={ADDRESS}/16",
                password="secret-word",
                ssh__public__keys=key.export_public_key().decode().strip(),
                start=1,
            )
        )
        for login in ({"password": "secret-word"}, {"client_keys": [key]}):
            async with guest(api, username="root", **login) as ssh:
                assert (await said(ssh, "hostname; id -u"))[1] == "box\n0\n"

    template = {"files": [{"volume": "local:vztmpl/debian.tar.zst", "size": 100_000_000}]}
    async with with_lab(seed=parse_seed(template)) as api:
        await test(api)


async def host_key(api: LabClient, address: str) -> bytes:
    async with ssh_to(api) as node:
        found = await asyncssh.get_server_host_key(address, tunnel=node, config=None)
        assert found is not None
        return found.public_data


async def test_each_guest_has_a_host_key_of_its_own_that_stays(tmp_path: Path) -> None:
    async with lab_client(ssh_port=0, data=tmp_path) as api:
        await make_vm(api, 100, ADDRESS)
        await make_vm(api, 101, "10.31.2.101")
        first, other = await host_key(api, ADDRESS), await host_key(api, "10.31.2.101")
        assert first != other
        await api.done(await api.post("/nodes/pve1/qemu/100/status/reboot"))
        assert await host_key(api, ADDRESS) == first
    async with lab_client(ssh_port=0, data=tmp_path) as api:
        assert await host_key(api, ADDRESS) == first
        for vmid in (100, 101):
            await api.done(await api.post(f"/nodes/pve1/qemu/{vmid}/status/stop"))
        await api.done(await api.delete("/nodes/pve1/qemu/100"))
        await make_vm(api, 100, ADDRESS)
        assert await host_key(api, ADDRESS) != first


async def test_only_port_22_of_running_guests_and_nodes_can_be_reached() -> None:
    async with with_lab() as api:
        await make_vm(api)
        refused = [
            (ADDRESS, 80, "Connection refused"),
            ("10.31.2.99", 22, "No route to host"),
            ("127.0.0.1", api.running.port, "No route to host"),
            ("localhost", 22, "Name or service not known"),
            ("::1", 22, "No route to host"),
        ]
        async with ssh_to(api) as node:
            for host, port, reason in refused:
                with pytest.raises(asyncssh.ChannelOpenError, match=reason):
                    await node.open_connection(host, port)
            async with node.connect_ssh(
                "10.31.0.11", username="root", password=api.running.password, **OWN
            ) as again:
                assert (await said(again, "hostname"))[1] == "pve1\n"
            with pytest.raises(asyncssh.ChannelListenError):
                await node.forward_remote_port("127.0.0.1", 0, "127.0.0.1", 1)


async def test_a_guest_answers_when_it_has_booted_and_no_longer_when_it_stops() -> None:
    async with with_lab(latency_s={lab.Work.BOOT: 30.0}) as api:
        api.world.clock.hold()
        await make_vm(api, cipassword="secret-word")
        with pytest.raises(asyncssh.ChannelOpenError, match="No route to host"):
            async with guest(api, password="secret-word"):
                pass
        await api.pass_time(31)
        async with guest(api, password="secret-word") as ssh:
            assert (await said(ssh, "true"))[0] == 0
            await api.done(await api.post("/nodes/pve1/qemu/100/status/stop"))
            await ssh.wait_closed()
        with pytest.raises(asyncssh.ChannelOpenError, match="No route to host"):
            async with guest(api, password="secret-word"):
                pass


@pytest.mark.skipif(shutil.which("ssh") is None, reason="OpenSSH's ssh is not on PATH")
def test_openssh_jumps_over_a_node_to_a_guest(tmp_path: Path) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")
    (tmp_path / "key").write_bytes(key.export_private_key())
    (tmp_path / "key").chmod(0o600)
    line = key.export_public_key().decode().strip()
    common = [
        *("-F", "/dev/null", "-i", str(tmp_path / "key"), "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes"),
        *("-o", "StrictHostKeyChecking=accept-new", "-o", f"UserKnownHostsFile={tmp_path / 'known'}"),
    ]

    with lab.running(ssh_port=0, authorized_keys=(line,)) as running:
        machines = proxmoxer_client(running).nodes("pve1").qemu
        machines.post(**VM, vmid=100, name="vm100", ciuser="ops", sshkeys=urllib.parse.quote(line, safe=""))
        machines(100).status.start.post()
        jump = ["ssh", *common, "-p", str(running.ssh_port), "-W", "%h:%p", "root@127.0.0.1"]
        done = subprocess.run(
            ["ssh", *common, "-o", f"ProxyCommand={' '.join(jump)}", f"ops@{ADDRESS}", "hostname; id -un"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stdout) == (0, "vm100\nops\n"), done.stderr


async def test_passwords_are_refused_where_the_user_data_says_so() -> None:
    async with with_lab(guests=Kind.RECORDED) as api:
        world = api.running.world
        blob = world.blobs.put(b"#cloud-config\npassword: word\nssh_pwauth: false\n")
        with world.store.transaction():
            put_file(world, "local:snippets/u.yaml", "pve1", blob)
        await make_vm(api, cicustom="user=local:snippets/u.yaml")
        with pytest.raises(asyncssh.PermissionDenied):
            async with guest(api, password="word"):
                pass
