"""A worker may take as long as the control plane that it waits for, and its own work beside that."""

from __future__ import annotations

import dataclasses
from ipaddress import IPv4Address

from stackyard.bootstrap.cold_boot import NodePatience
from stackyard.sources.cluster.model import ClusterNode, TalosImage

WORKER = ClusterNode(
    name="k8s-4",
    address=IPv4Address("192.0.2.24"),
    is_controller=False,
    disk="/dev/sda",
    mac_addr="bc:24:11:00:00:04",
    image=TalosImage(schematic_id="0" * 64, version="1.12.1"),
)


def test_a_worker_outlasts_the_slowest_control_plane_node() -> None:
    patience, controller = NodePatience(), dataclasses.replace(WORKER, is_controller=True)
    slowest = patience.to_appear(controller) + patience.to_install(controller)
    assert patience.to_appear(WORKER) >= slowest
    assert patience.to_install(WORKER) >= slowest + patience.install_s
