"""Machines behind other machines, and machines whose keys are known beforehand."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import asyncssh
import pytest

from stackyard.clients import ssh
from stackyard.clients.ssh.keys import new_key_pair


@dataclass
class Machine:
    """A real SSH server that lets one key in, forwards, and says how often somebody logged in.

    Attributes:
        key: The private key that opens it.
        logins: How often somebody did.
    """

    key: str
    logins: int = 0
    host_key: asyncssh.SSHKey = field(default_factory=lambda: asyncssh.generate_private_key("ssh-ed25519"))
    extra_keys: tuple[asyncssh.SSHKey, ...] = ()
    port: int = 0

    @contextlib.asynccontextmanager
    async def serve(self) -> AsyncIterator[Machine]:
        machine = self
        allowed = asyncssh.import_private_key(self.key).export_public_key().decode()

        class Server(asyncssh.SSHServer):
            def begin_auth(self, username: str) -> bool:
                return True

            def public_key_auth_supported(self) -> bool:
                return True

            def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
                return key.export_public_key().decode().split()[1] == allowed.split()[1]

            def auth_completed(self) -> None:
                machine.logins += 1

            def connection_requested(self, *where: object) -> bool:
                return True

        server = await asyncssh.listen(
            "127.0.0.1",
            0,
            server_factory=Server,
            server_host_keys=[*self.extra_keys, self.host_key],
            process_factory=lambda process: _answer(process, self),
        )
        async with server:
            self.port = server.get_port()
            yield self

    def host(self, folder: Path, **fields: object) -> ssh.Host:
        """Return how to log in."""
        return replace(
            ssh.Host(
                address="127.0.0.1", port=self.port, private_key=self.key, known_hosts=folder / "known_hosts"
            ),
            **fields,  # type: ignore[arg-type]
        )

    @property
    def public(self) -> str:
        return self.host_key.export_public_key().decode().strip()


def _answer(process: asyncssh.SSHServerProcess[str], machine: Machine) -> None:
    process.stdout.write(f"{machine.port}\n")
    process.exit(0)


async def test_a_machine_is_reached_through_two_others_each_logged_in_to_once(tmp_path: Path) -> None:
    key = new_key_pair().private

    async with (
        Machine(key).serve() as outer,
        Machine(key).serve() as middle,
        Machine(key).serve() as inner,
    ):
        way = middle.host(tmp_path, via=outer.host(tmp_path))
        host = inner.host(tmp_path, via=way)
        assert str(host).count(" through ") == 2
        async with ssh.Jumps() as jumps:
            async with ssh.connect(host, jumps=jumps) as one, ssh.connect(host, jumps=jumps) as two:
                assert (await one.run("x"), await two.run("x")) == (f"{inner.port}\n",) * 2
            shell = await jumps.shell(way)
            line = await shell.probe_port("127.0.0.1", inner.port, waits_for_line=True)
            assert line.startswith(b"SSH-2.0")
            with pytest.raises(ssh.SshError, match=r"cannot reach 127\.0\.0\.1:1"):
                await shell.probe_port("127.0.0.1", 1)
            async with (
                shell.forward_port("127.0.0.1", inner.port) as port,
                ssh.connect(replace(inner.host(tmp_path), port=port)) as direct,
            ):
                assert await direct.run("x") == f"{inner.port}\n"
        assert (outer.logins, middle.logins, inner.logins) == (1, 1, 3)
        async with ssh.connect(host) as alone:
            assert await alone.run("x") == f"{inner.port}\n"


async def test_a_jump_that_was_lost_is_logged_in_to_again(tmp_path: Path) -> None:
    key = new_key_pair().private

    async with Machine(key).serve() as outer, Machine(key).serve() as inner, ssh.Jumps() as jumps:
        host = inner.host(tmp_path, via=outer.host(tmp_path))
        shell = await jumps.shell(outer.host(tmp_path))
        shell._connection.abort()
        await shell._connection.wait_closed()
        assert shell.is_closed
        async with ssh.connect(host, jumps=jumps) as found:
            assert await found.run("x") == f"{inner.port}\n"
        assert outer.logins == 2


async def test_a_pinned_key_counts_alone_and_is_asked_for_among_others(tmp_path: Path) -> None:
    key, other = new_key_pair().private, asyncssh.generate_private_key("ecdsa-sha2-nistp256")

    async with Machine(key, extra_keys=(other,)).serve() as machine:
        pinned = machine.host(tmp_path, host_keys=(f"{machine.public} a comment",))
        async with ssh.connect(pinned) as shell:
            assert shell.host_key.split()[:2] == machine.public.split()[:2]
        assert not (tmp_path / "known_hosts").exists()
        forged = machine.host(tmp_path, host_keys=(new_key_pair().public,))
        with pytest.raises(ssh.HostKeyChangedError, match="not among those that are pinned"):
            async with ssh.connect(forged):
                pass
        assert machine.logins == 1


def test_a_remembered_machine_is_known_by_its_alias_until_it_is_forgotten(tmp_path: Path) -> None:
    key = new_key_pair().private
    known = tmp_path / "known_hosts"

    async def scenario() -> None:
        async with Machine(key).serve() as one, Machine(key).serve() as other:
            async with ssh.connect(one.host(tmp_path, alias="yard/box")):
                pass
            assert known.read_text().startswith("yard/box ssh-ed25519 ")
            with pytest.raises(ssh.HostKeyChangedError):
                async with ssh.connect(other.host(tmp_path, alias="yard/box")):
                    pass
            ssh.forget_hosts(known, ["yard/box"])
            assert known.read_text() == ""
            async with ssh.connect(other.host(tmp_path, alias="yard/box")):
                pass

    ssh.forget_hosts(tmp_path / "nowhere", ["x"])
    asyncio.run(scenario())


async def test_key_files_are_tried_and_those_that_cannot_be_read_are_passed_over(tmp_path: Path) -> None:
    key = new_key_pair().private
    right, locked, broken = tmp_path / "right", tmp_path / "locked", tmp_path / "broken"
    right.write_text(key)
    secret = asyncssh.generate_private_key("ssh-ed25519").export_private_key("pkcs8-pem", passphrase="word")
    locked.write_bytes(secret)
    broken.write_text("no key")

    async with Machine(key).serve() as machine:
        files = (tmp_path / "missing", locked, broken, right)
        async with ssh.connect(machine.host(tmp_path, private_key=None, key_files=files)) as shell:
            assert await shell.run("x") == f"{machine.port}\n"
        with pytest.raises(ssh.LoginRefusedError, match="Permission denied"):
            async with ssh.connect(machine.host(tmp_path, private_key=None, key_files=(locked,))):
                pass


async def test_an_agent_that_is_gone_does_not_stand_in_the_way_of_a_key(tmp_path: Path) -> None:
    key = new_key_pair().private

    async with Machine(key).serve() as machine:
        host = machine.host(tmp_path, agent_socket=str(tmp_path / "gone"))
        async with ssh.connect(host) as shell:
            assert await shell.run("x") == f"{machine.port}\n"
