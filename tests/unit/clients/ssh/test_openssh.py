"""What OpenSSH's own settings say of a machine, read from a home and used to log in."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import pytest

from stackyard.clients import ssh
from stackyard.clients.ssh.keys import KeyPair, new_key_pair

BRIDGE = """
import os, socket, sys, threading
it = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def back():
    for data in iter(lambda: it.recv(65536), b""):
        os.write(1, data)
threading.Thread(target=back, daemon=True).start()
for data in iter(lambda: os.read(0, 65536), b""):
    it.sendall(data)
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir(mode=0o700)
    return tmp_path


def write(home: Path, text: str) -> None:
    path = home / ".ssh" / "config"
    path.write_text(text)
    path.chmod(0o600)


@contextlib.asynccontextmanager
async def machine(name: str, pair: KeyPair, logins: list[str]) -> AsyncIterator[int]:
    """Serve SSH that lets one key in, and write down who came."""

    class Server(asyncssh.SSHServer):
        def begin_auth(self, username: str) -> bool:
            self.username = username
            return True

        def public_key_auth_supported(self) -> bool:
            return True

        def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
            return key.export_public_key().decode().split()[1] == pair.public.split()[1]

        def auth_completed(self) -> None:
            logins.append(f"{self.username}@{name}")

        def connection_requested(self, *where: object) -> bool:
            return True

    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_factory=Server,
        server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
        process_factory=lambda process: process.exit(0),
    )
    async with server:
        yield server.get_port()


def asking(home: Path, **fields: bool | str) -> ssh.Host:
    openssh = ssh.OpenSsh(**fields)  # type: ignore[arg-type]
    return ssh.Host(address="node.invalid", known_hosts=home / "known", openssh=openssh)


def test_jumps_keys_users_and_ports_are_those_of_the_settings(home: Path) -> None:
    pairs = [new_key_pair() for _ in range(2)]
    for number, pair in enumerate(pairs):
        path = home / ".ssh" / f"key-{number}"
        path.write_text(pair.private)
        path.chmod(0o600)

    async def scenario() -> list[str]:
        logins: list[str] = []
        async with (
            machine("first", pairs[0], logins) as first,
            machine("second", pairs[0], logins) as second,
            machine("node", pairs[1], logins) as node,
        ):
            write(
                home,
                f"Host first\n  HostName 127.0.0.1\n  Port {first}\n  User one\n  IdentityFile ~/.ssh/key-0\n"
                f"Host second\n  HostName 127.0.0.1\n  IdentityFile %d/.ssh/key-0\n"
                f"Host node.invalid\n  ProxyJump first,two@second:{second}\n  HostName 127.0.0.1\n"
                f"  Port {node}\n  User three\n  IdentityFile ~/.ssh/key-1\n",
            )
            async with ssh.connect(asking(home)) as shell:
                await shell.run("true")
                assert str(shell.host).count(" through ") == 2
        return logins

    assert asyncio.run(scenario()) == ["one@first", "two@second", "three@node"]


def test_a_command_leads_to_the_machine(home: Path) -> None:
    pair = new_key_pair()
    (home / ".ssh" / "id_ed25519").write_text(pair.private)
    (home / "bridge.py").write_text(BRIDGE)

    async def scenario() -> list[str]:
        logins: list[str] = []
        async with machine("node", pair, logins) as port:
            way = f"{sys.executable} {home}/bridge.py 127.0.0.1 {port}"
            write(home, f"Host *.invalid\n  ProxyCommand {way}\n  IdentityFile ~/.ssh/id_ed25519\n")
            async with ssh.connect(asking(home)) as shell:
                await shell.run("true")
        return logins

    assert asyncio.run(scenario()) == ["root@node"]


def test_what_the_caller_chose_counts_before_the_settings(home: Path) -> None:
    write(home, "Host node.invalid\n  User other\n  Port 2200\n  HostName 192.0.2.1\n")
    found = ssh.resolve_login(asking(home, has_user=True))
    assert (found.username, found.port, found.address) == ("root", 2200, "192.0.2.1")
    found = ssh.resolve_login(asking(home, has_port=True, keys_only=True))
    assert (found.username, found.port, found.address) == ("root", 22, "node.invalid")


def test_another_name_counts_where_it_has_the_same_address(home: Path) -> None:
    write(
        home, "Host father\n  HostName node.invalid\n  User ops\nHost mother\n  HostName elsewhere.invalid\n"
    )
    assert ssh.resolve_login(asking(home, name="father")).username == "ops"
    assert ssh.resolve_login(asking(home, name="mother")).address == "node.invalid"


def test_machines_that_name_each_other_are_refused(home: Path) -> None:
    write(
        home, "Host node.invalid\n  ProxyJump other.invalid\nHost other.invalid\n  ProxyJump node.invalid\n"
    )
    with pytest.raises(ssh.SshConfigError, match="more than 16 machines"):
        ssh.resolve_login(asking(home))


def test_a_block_for_the_last_pass_and_files_that_are_included_count(home: Path) -> None:
    (home / ".ssh" / "more").write_text("Host node.invalid\n  Port 2222\n")
    write(home, "Include more\nMatch final host node.invalid\n  User last\n")
    found = ssh.resolve_login(asking(home))
    assert (found.username, found.port) == ("last", 2222)
