"""The client of the Talos API against a node that falls silent or goes away in the middle of an answer."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from grpclib.const import Cardinality, Handler
from tests.support.ports import free_port

from stackyard.base.grpc_server import ClosingServer
from stackyard.base.serving import make_certificate
from stackyard.clients.talos import TalosClient, TalosEndpoint, TalosUnreachableError
from stackyard.talosapi.messages import pb

_SNAPSHOT = "/machine.MachineService/EtcdSnapshot"
_UPGRADE = "/machine.MachineService/Upgrade"
_RECOVER = "/machine.MachineService/EtcdRecover"


class Node:
    """Sends one part of a snapshot, and then nothing; or it ends the connection. It takes no upload."""

    def __init__(self, *, is_ending: bool = False) -> None:
        self._is_ending = is_ending

    async def send_part(self, stream: Any) -> None:
        await stream.recv_message()
        await stream.send_message(pb.Data(bytes=b"part"))
        if self._is_ending:
            stream._stream._transport.abort()
        await asyncio.Event().wait()

    async def take_nothing(self, _stream: Any) -> None:
        await asyncio.Event().wait()

    async def pull(self, stream: Any) -> None:
        await stream.recv_message()
        # Longer than the client waits for other calls.
        await asyncio.sleep(1.0)
        await stream.send_message(pb.UpgradeResponse())

    def __mapping__(self) -> dict[str, Handler]:
        return {
            _SNAPSHOT: Handler(self.send_part, Cardinality.UNARY_STREAM, pb.EtcdSnapshotRequest, pb.Data),
            _UPGRADE: Handler(self.pull, Cardinality.UNARY_UNARY, pb.UpgradeRequest, pb.UpgradeResponse),
            _RECOVER: Handler(self.take_nothing, Cardinality.STREAM_UNARY, pb.Data, pb.EtcdRecoverResponse),
        }


@contextlib.asynccontextmanager
async def client_of(node: Node, folder: Path) -> AsyncIterator[TalosClient]:
    """Give a client of a node in maintenance mode, whose calls may take half a second."""
    made = make_certificate(["127.0.0.1"])
    (folder / "node.pem").write_bytes(made.certificate_pem + made.key_pem)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "node.pem")
    context.set_alpn_protocols(["h2"])
    server = ClosingServer([node])
    port = free_port()
    await server.start("127.0.0.1", port, ssl=context)
    try:
        async with TalosClient(TalosEndpoint(host="127.0.0.1", port=port), timeout_s=0.5) as client:
            yield client
    finally:
        await server.end()


@pytest.mark.parametrize("is_ending", [False, True])
async def test_a_node_that_is_lost_in_the_middle_of_an_answer_is_unreachable(
    tmp_path: Path, *, is_ending: bool
) -> None:
    async with client_of(Node(is_ending=is_ending), tmp_path) as client, asyncio.timeout(5):
        answers = client.stream(_SNAPSHOT)
        assert (await anext(answers)).bytes == b"part"
        with pytest.raises(TalosUnreachableError):
            await anext(answers)


async def test_a_node_that_takes_no_more_bytes_is_unreachable(tmp_path: Path) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield bytes(2**18)

    async with client_of(Node(), tmp_path) as client, asyncio.timeout(5):
        with pytest.raises(TalosUnreachableError):
            await client.upload(_RECOVER, chunks())


async def test_a_call_may_take_longer_than_others(tmp_path: Path) -> None:
    async with client_of(Node(), tmp_path) as client, asyncio.timeout(5):
        with pytest.raises(TalosUnreachableError, match="did not answer Upgrade in time"):
            await client.call(_UPGRADE)
        await client.call(_UPGRADE, timeout_s=4.0)
