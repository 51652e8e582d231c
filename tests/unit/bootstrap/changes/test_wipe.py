"""Wiping a node: what it becomes counts, and not whether its answer arrives."""

from __future__ import annotations

from tests.support.lab import lab_client
from tests.support.talos import start_cluster
from tests.support.talos_nodes import Reports, access_to, node_of

from stackyard.bootstrap.changes.wipe import wipe_node


async def test_a_node_whose_answer_was_lost_is_wiped() -> None:
    async with lab_client() as api:
        cluster, (machine,) = await start_cluster(api)
        api.running.add_fault("talos-call", method="Reset", when="after", vmid=100, times=1)
        reason = await wipe_node(node_of(machine), access_to(cluster), Reports(), timeout_s=20)
        assert reason == ""
        assert machine.stage == "maintenance"
