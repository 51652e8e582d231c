"""Another machine over SSH: a node of a lab, which nobody here has to trust beforehand."""

from __future__ import annotations

import contextlib
import io
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import pytest

from stackyard import lab
from stackyard.clients import ssh


@contextlib.asynccontextmanager
async def run(folder: Path) -> AsyncIterator[tuple[ssh.Host, lab.Running]]:
    async with lab.start(nodes=("pve1",), ssh_port=0) as running:
        assert running.ssh_port is not None
        host = ssh.Host(
            address="127.0.0.1",
            port=running.ssh_port,
            password=running.password,
            known_hosts=folder / "deep" / "known_hosts",
        )
        yield (host, running)


def changed(host: ssh.Host, **fields: object) -> ssh.Host:
    return ssh.Host(**{**{name: getattr(host, name) for name in host.__dataclass_fields__}, **fields})


async def test_a_command_gives_what_it_wrote_and_an_error_quotes_it(tmp_path: Path) -> None:
    async with run(tmp_path) as (host, _running), ssh.connect(host) as shell:
        assert (await shell.run("hostname")).strip() == "pve1"
        with pytest.raises(ssh.RemoteCommandError, match="No such file or directory") as raised:
            await shell.run("cat /nowhere")
        assert raised.value.status == 1


async def test_a_file_is_written_with_the_folders_above_it(tmp_path: Path) -> None:
    async with run(tmp_path) as (host, running):
        async with ssh.connect(host) as shell:
            await shell.write_file("/var/lib/vz/snippets/a.yaml", io.BytesIO(b"x" * 100_000), mode=0o600)
            with pytest.raises(ssh.SshError, match="Cannot write /proc/none"):
                await shell.write_file("/proc/none", io.BytesIO(b""))
        sizes = {one["volid"]: one["size"] for one in running.world.store.items("volumes").values()}
        assert sizes == {"local:snippets/a.yaml": 100_000}


async def test_a_new_host_is_remembered_once_and_a_changed_key_is_refused(tmp_path: Path) -> None:
    async with run(tmp_path) as (host, _running):
        assert host.known_hosts is not None
        for _ in range(2):
            async with ssh.connect(host) as shell:
                await shell.run("hostname")
        (line,) = host.known_hosts.read_text().splitlines()
        assert line.startswith(f"[127.0.0.1]:{host.port} ssh-")
        assert host.known_hosts.stat().st_mode & 0o077 == 0
        other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
        host.known_hosts.write_text(f"[127.0.0.1]:{host.port} {other}")
        with pytest.raises(ssh.HostKeyChangedError, match=r"is not the one in"):
            async with ssh.connect(host):
                pass


async def test_a_login_that_is_refused_does_not_show_the_password(tmp_path: Path) -> None:
    async with run(tmp_path) as (host, _running):
        with pytest.raises(ssh.SshUnreachableError, match="Permission denied") as raised:
            async with ssh.connect(changed(host, password="canary-4711")):
                pass
        assert "canary" not in raised.value.detail
        assert "canary" not in repr(changed(host, password="canary-4711"))


async def test_a_key_that_cannot_be_read_and_a_port_where_nothing_is_are_said(tmp_path: Path) -> None:
    async with run(tmp_path) as (host, _running):
        with pytest.raises(ssh.SshUnreachableError, match="private key"):
            async with ssh.connect(changed(host, private_key="no key")):
                pass
        with pytest.raises(ssh.SshUnreachableError, match=r"Cannot log in to root@127\.0\.0\.1:9"):
            async with ssh.connect(changed(host, port=9)):
                pass
