"""Workers that do not answer never take the room that control plane nodes need."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from ipaddress import IPv4Address

from tests.support.talos import Cluster
from tests.support.talos_nodes import access_to

from stackyard.sources.cluster.model import ClusterNode, TalosImage

NODE = ClusterNode(
    name="k8s-1",
    address=IPv4Address("127.0.0.1"),
    is_controller=False,
    disk="/dev/sda",
    mac_addr="bc:24:11:00:00:01",
    image=TalosImage(schematic_id="0" * 64, version="1.12.1"),
)


async def test_conversations_with_workers_are_bounded_and_those_with_controllers_are_not_among_them() -> None:
    access, controller = access_to(Cluster()), dataclasses.replace(NODE, is_controller=True)
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(32):
            await stack.enter_async_context(access.open(NODE))
        one_more = asyncio.create_task(stack.enter_async_context(access.open_maintenance(NODE)))
        async with access.open(controller):
            assert not one_more.done()
        one_more.cancel()
