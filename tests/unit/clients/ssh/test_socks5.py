"""Nodes behind a SOCKS5 proxy, with a real SSH server at the other end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import asyncssh
import pytest
from tests.unit.clients.ssh.test_jumps import Machine

from stackyard.clients import ssh
from stackyard.clients.ssh.keys import new_key_pair
from stackyard.clients.ssh.socks5 import Socks5

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def listening(handle: Handler) -> AsyncIterator[int]:
    ended: list[asyncio.Event] = []

    async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.append(asyncio.Event())
        here = ended[-1]
        with contextlib.suppress(OSError, EOFError):
            await handle(reader, writer)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        here.set()

    server = await asyncio.start_server(closing, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        for one in ended:
            await one.wait()


def proxy(port: int, *, asks: bool = False, seen: list[bytes] | None = None) -> Handler:
    """Return a proxy that leads everything to one port."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        if asks:
            if 2 not in methods:
                writer.write(b"\x05\xff")
                return
            writer.write(b"\x05\x02")
            _, length = await reader.readexactly(2)
            user = await reader.readexactly(length)
            (length,) = await reader.readexactly(1)
            password = await reader.readexactly(length)
            accepted = (user, password) == (b"me", b"pw")
            writer.write(b"\x01\x00" if accepted else b"\x01\x01")
            if not accepted:
                return
        else:
            writer.write(b"\x05\x00")
        _, _, _, kind = await reader.readexactly(4)
        length = (await reader.readexactly(1))[0] if kind == 3 else {1: 4, 4: 16}[kind]
        target = await reader.readexactly(length + 2)
        if seen is not None:
            seen.append(target[:-2])
        inside, outside = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\x05\x00\x00\x03\x03abc\x00\x01")
        await asyncio.gather(copy(reader, outside), copy(inside, writer))

    return handle


async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await source.read(65536):
            sink.write(chunk)
            await sink.drain()
    sink.close()


def a_proxy(port: int, username: str = "", password: str = "") -> Socks5:
    return Socks5(address="127.0.0.1", port=port, username=username, password=password)


@pytest.mark.parametrize("asks", [False, True])
async def test_a_machine_is_reached_through_a_proxy_that_resolves_its_name(
    asks: bool, tmp_path: Path
) -> None:
    seen: list[bytes] = []
    machine = Machine(key=new_key_pair().private)
    async with machine.serve(), listening(proxy(machine.port, asks=asks, seen=seen)) as port:
        host = machine.host(tmp_path, address="pve1.lan", socks5=a_proxy(port, "me", "pw"))
        async with ssh.connect(host) as shell:
            assert await shell.run("anything") == f"{machine.port}\n"
    assert seen == [b"pve1.lan"]


@pytest.mark.parametrize(
    ("proxied", "said"),
    [(("", ""), "asks for a login"), (("me", "canary"), "does not accept the user and password")],
)
async def test_a_proxy_that_does_not_accept_us_is_named(
    proxied: tuple[str, str], said: str, tmp_path: Path
) -> None:
    async with listening(proxy(1, asks=True)) as port:
        host = ssh.Host(address="10.0.0.1", known_hosts=tmp_path / "known", socks5=a_proxy(port, *proxied))
        with pytest.raises(ssh.SshUnreachableError, match=said) as raised:
            async with ssh.connect(host):
                pass
    assert f"SOCKS5 proxy 127.0.0.1:{port}" in raised.value.detail
    assert "canary" not in raised.value.detail


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ((b"HTTP/1.1 400",), "no SOCKS5 proxy"),
        ((b"\x05\x00", b"\x05\x05\x00\x01" + bytes(6)), "the connection was refused"),
        ((b"\x05\x00", b"\x05\x63\x00\x01" + bytes(6)), "status 99"),
        ((b"\x05",), "closed the connection"),
        ((b"",), "closed the connection"),
    ],
)
async def test_whatever_answers_is_data(answers: tuple[bytes, ...], said: str, tmp_path: Path) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await reader.read(4096)
            writer.write(answer)
            await writer.drain()

    async with listening(handle) as port:
        host = ssh.Host(address="10.0.0.1", known_hosts=tmp_path / "known", socks5=a_proxy(port))
        with pytest.raises(ssh.SshUnreachableError, match=said):
            async with ssh.connect(host):
                pass


async def test_a_proxy_that_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(handle) as port:
        host = ssh.Host(
            address="10.0.0.1", known_hosts=tmp_path / "known", socks5=a_proxy(port), connect_s=0.2
        )
        with pytest.raises(ssh.SshUnreachableError, match="does not answer"):
            async with ssh.connect(host):
                pass


async def test_an_agent_is_forwarded_only_where_that_is_asked_for(tmp_path: Path) -> None:
    key = new_key_pair().private
    found: list[str | None] = []

    def tell(process: asyncssh.SSHServerProcess[str]) -> None:
        found.append(process.channel.get_agent_path())
        process.exit(0)

    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
        authorized_client_keys=asyncssh.import_authorized_keys(
            asyncssh.import_private_key(key).export_public_key().decode()
        ),
        process_factory=tell,
    )
    async with server:
        for socket in (None, str(tmp_path / "agent")):
            host = ssh.Host(
                address="127.0.0.1",
                port=server.get_port(),
                private_key=key,
                known_hosts=tmp_path / "known",
                forwarded_agent=socket,
            )
            async with ssh.connect(host) as shell:
                await shell.run("true")
    assert found[0] is None
    assert found[1] is not None
