"""The client of the Talos API against machines of the lab: maintenance mode, certificates, refusals."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import socket
import ssl
from collections.abc import AsyncIterator

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.support.lab import lab_client
from tests.support.talos import (
    Cluster,
    apply,
    boot_talos,
    put_image,
    start_cluster,
    wait_for_stage,
    wait_until,
)

from pvelab.talos.machine import TalosMachine
from stackyard.base.redaction import Redactor
from stackyard.clients.talos import (
    FingerprintError,
    TalosCertificateError,
    TalosClient,
    TalosCredentials,
    TalosEndpoint,
    TalosRefusedError,
    TalosUnreachableError,
)
from stackyard.talosapi.messages import pb


def endpoint(machine: TalosMachine, **more: object) -> TalosEndpoint:
    address = machine.address
    assert address is not None
    return TalosEndpoint(host=address[0], port=address[1], **more)  # type: ignore[arg-type]


def credentials(cluster: Cluster, *, signed_by: Cluster | None = None) -> TalosCredentials:
    client = (signed_by or cluster).client()
    # Talos has its own label for keys.
    key = client.key_pem.replace(b" PRIVATE KEY", b" ED25519 PRIVATE KEY")
    return TalosCredentials(ca=cluster.authority.certificate_pem, certificate=client.certificate_pem, key=key)


def fingerprint_of(where: TalosEndpoint) -> str:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((where.host, where.port)) as plain, context.wrap_socket(plain) as secure:
        certificate = x509.load_der_x509_certificate(secure.getpeercert(binary_form=True) or b"")
    public = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(public).digest()).decode()


async def test_a_node_in_maintenance_mode_shows_its_disks_and_refuses_its_version() -> None:
    async with lab_client() as api:
        await put_image(api)
        machine = await boot_talos(api)
        await wait_for_stage(machine, "maintenance")
        async with TalosClient(endpoint(machine)) as client:
            assert (await client.list_disks())[0].device_name == "/dev/sda"
            with pytest.raises(TalosRefusedError, match="not implemented in maintenance mode") as refused:
                await client.read_version()
            with pytest.raises(TalosRefusedError) as quoted:
                await client.call("/machine.MachineService/Version", redactor=Redactor(["maintenance mode"]))
        assert "maintenance mode" not in f"{quoted.value} {quoted.value.__cause__}"
        assert refused.value.status == "UNIMPLEMENTED"


async def test_only_the_machine_with_the_expected_fingerprint_is_spoken_to() -> None:
    async with lab_client() as api:
        await put_image(api)
        machine = await boot_talos(api)
        await wait_for_stage(machine, "maintenance")
        plain = endpoint(machine)
        shown = await asyncio.to_thread(fingerprint_of, plain)
        async with TalosClient(endpoint(machine, fingerprint=shown)) as client:
            assert await client.list_disks()
        other = base64.b64encode(b"x" * 32).decode()
        async with TalosClient(endpoint(machine, fingerprint=other)) as client:
            with pytest.raises(FingerprintError):
                await client.list_disks()


async def test_a_configured_node_answers_to_the_certificate_of_its_cluster_alone() -> None:
    async with lab_client() as api:
        await put_image(api)
        machine = await boot_talos(api)
        await wait_for_stage(machine, "maintenance")
        ours, theirs = Cluster(), Cluster(name="other")
        await apply(machine, ours.config())
        await wait_for_stage(machine, "running")
        where = endpoint(machine)
        async with TalosClient(endpoint(machine, credentials=credentials(ours))) as client:
            assert await client.read_version() == "1.12.1"
        async with TalosClient(where) as client:
            with pytest.raises(TalosCertificateError):
                await client.list_disks()
        for wrong in (credentials(theirs), credentials(ours, signed_by=theirs)):
            async with TalosClient(endpoint(machine, credentials=wrong)) as client:
                with pytest.raises(TalosCertificateError):
                    await client.read_version()


async def test_what_does_not_answer_is_unreachable_and_says_where() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        async with TalosClient(TalosEndpoint(host="127.0.0.1", port=port), timeout_s=2) as client:
            with pytest.raises(TalosUnreachableError, match=f"127.0.0.1:{port}"):
                await client.list_disks()
        # It accepts, and says nothing.
        taken.listen()
        async with TalosClient(TalosEndpoint(host="127.0.0.1", port=port), timeout_s=0.3) as client:
            with pytest.raises(TalosUnreachableError):
                await client.list_disks()


async def test_resources_of_a_node_are_read_by_type_and_name() -> None:
    async with lab_client() as api:
        await put_image(api)
        machine = await boot_talos(api)
        await wait_for_stage(machine, "maintenance")
        async with TalosClient(endpoint(machine)) as client:
            status = await client.read_resource("MachineStatuses.runtime.talos.dev", "runtime", "machine")
            links = await client.list_resources("LinkStatuses.net.talos.dev", "network")
            with pytest.raises(TalosRefusedError) as refused:
                await client.read_resource("MachineStatuses.runtime.talos.dev", "runtime", "other")
        assert status["stage"] == "maintenance"
        assert any(link["hardwareAddr"] and link["operationalState"] == "up" for link in links.values())
        assert refused.value.status == "NOT_FOUND"


async def test_bytes_are_sent_in_many_messages_and_a_refusal_of_them_is_an_error() -> None:
    async with lab_client() as api:
        ours, (machine,) = await start_cluster(api)

        async def snapshot() -> AsyncIterator[bytes]:
            for part in parts:
                yield part

        async with TalosClient(endpoint(machine, credentials=credentials(ours))) as client:
            parts = [part.bytes async for part in client.stream("/machine.MachineService/EtcdSnapshot")]
            with pytest.raises(TalosRefusedError):
                await client.upload("/machine.MachineService/EtcdRecover", snapshot())
            wiped = [pb.ResetPartitionSpec(label="EPHEMERAL", wipe=True)]
            request = pb.ResetRequest(reboot=True, system_partitions_to_wipe=wiped)
            await client.call("/machine.MachineService/Reset", request)
        await wait_until(machine, lambda: not machine.etcd.is_member)
        await wait_for_stage(machine, "running")
        async with TalosClient(endpoint(machine, credentials=credentials(ours))) as client:
            answer = await client.upload("/machine.MachineService/EtcdRecover", snapshot())
        assert len(answer.messages) == 1
