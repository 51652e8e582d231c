"""Looking at nodes: what answers at their address is what it is taken for."""

from __future__ import annotations

import asyncio
import ssl
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from tests.support.lab import lab_client
from tests.support.resolved_clusters import make_node
from tests.support.talos import Cluster, apply, boot_talos, free_network, put_image, wait_for_stage

from pvelab.talos.pki import make_authority
from stackyard.path.clusters.nodes import NodeReport, NodeStage, look_at_node
from stackyard.talosapi.methods import PORT


async def look_at(address: str) -> NodeReport:
    return await look_at_node(make_node(1, address=IPv4Address(address)))


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(100)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    writer.close()


@pytest.fixture
def address() -> str:
    return f"{free_network()}.0.1"


async def test_a_machine_without_talos_is_unreachable(address: str) -> None:
    report = await look_at(address)
    assert (report.stage, "Connection refused" in report.reason) == (NodeStage.UNREACHABLE, True)
    async with await asyncio.start_server(answer, address, PORT):
        assert (await look_at(address)).stage is NodeStage.UNREACHABLE


async def test_another_service_with_tls_is_not_taken_for_a_configured_node(
    address: str, tmp_path: Path
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made = make_authority("somebody")
    (tmp_path / "server.pem").write_bytes(made.certificate_pem + made.key_pem)
    context.load_cert_chain(tmp_path / "server.pem")
    async with await asyncio.start_server(answer, address, PORT, ssl=context):
        report = await look_at(address)
    assert (report.stage, "not Talos" in report.reason) == (NodeStage.UNREACHABLE, True)


async def test_a_node_is_in_maintenance_mode_and_then_configured() -> None:
    async with lab_client() as api:
        await put_image(api)
        machine = await boot_talos(api, 100)
        await wait_for_stage(machine, "maintenance")
        assert machine.address is not None
        report = await look_at(machine.address[0])
        assert (report.stage, report.is_disk_checked) == (NodeStage.MAINTENANCE, True)
        link = make_node(1, address=report.node.address, disk="/dev/disk/by-id/ata-one")
        assert not (await look_at_node(link)).is_disk_checked
        await apply(machine, Cluster().config("controlplane"))
        await wait_for_stage(machine, "running")
        assert (await look_at(machine.address[0])).stage is NodeStage.CONFIGURED
