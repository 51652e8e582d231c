"""The ports of the SSH side, open from the start, while what answers them is still being loaded.

The SSH library and what needs it take a good part of the time that a lab needs to start. So the ports are
bound first and the lab is ready; who connects meanwhile waits in the queue of the port for a moment.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from pvelab.runtime.host_key import public_half, read_or_create_host_key
from pvelab.server.problems import defect
from stackyard.base.serving.sockets import listen

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path
    from types import ModuleType

    from pvelab.server.dispatch import Dispatcher
    from pvelab.world.world import World

__all__ = ["open_ssh_ports"]


@contextlib.asynccontextmanager
async def open_ssh_ports(
    world: World,
    dispatcher: Dispatcher,
    where: tuple[str, int],
    *,
    keys: Path | None,
    authorized: tuple[str, ...],
) -> AsyncIterator[Mapping[str, int]]:
    """Serve SSH until the end of the block; give the port of each node.

    Args:
        world: The lab.
        dispatcher: What answers the calls that commands make.
        where: The address to listen on and the port of the first node, the others following it; 0 for any
            free ones.
        keys: The folder of the host key.
        authorized: Who may log in as root with a key: lines as of an authorized_keys file.

    Raises:
        ListenError: A port cannot be had.
        HostKeyError: The host key is damaged.
    """
    host_key = read_or_create_host_key(keys)
    world.nest.host_key = public_half(host_key)
    bind, first = where
    listening: dict[str, socket.socket] = {}

    async def serve() -> None:
        ssh = await asyncio.to_thread(_load)
        async with ssh.serve_ssh(world, dispatcher, listening, host_key=host_key, authorized=authorized):
            await asyncio.Event().wait()

    with contextlib.ExitStack() as stack:
        for number, node in enumerate(world.cluster.nodes()):
            listening[node] = stack.enter_context(listen(bind, first + number if first else 0))
        serving = asyncio.create_task(serve())
        serving.add_done_callback(_report)
        try:
            yield {node: int(sock.getsockname()[1]) for node, sock in listening.items()}
        finally:
            serving.cancel()
            await asyncio.wait({serving})


def _load() -> ModuleType:
    from pvelab.ssh import server  # lazy: it takes longer to load than the rest takes to start

    return server


def _report(serving: asyncio.Task[None]) -> None:
    """Tell of an SSH side that did not come up or broke down; the HTTP side continues without it."""
    err = None if serving.cancelled() else serving.exception()
    if err is not None:
        defect("the SSH side", err)
