"""A VM of the lab that boots a Talos image: maintenance mode, over the Talos API."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519
from grpclib import GRPCError, Status
from tests.support.lab import LabClient, lab_client
from tests.support.talos import Cluster, apply, boot_talos, put_image, talos_client, wait_for_stage

from pvelab.talos.machine import TalosMachine
from stackyard.talosapi.messages import pb


async def start(api: LabClient, vmid: int = 100, **config: Any) -> TalosMachine:
    await put_image(api)
    machine = await boot_talos(api, vmid, **config)
    await wait_for_stage(machine, "maintenance")
    return machine


async def refusal(client: Any, name: str, request: Any = None) -> tuple[Status, str]:
    with pytest.raises(GRPCError) as caught:
        await client.call(name, request)
    return caught.value.status, str(caught.value.message)


async def test_a_machine_in_maintenance_mode_tells_its_disks_at_its_own_address() -> None:
    async with lab_client() as api:
        machine = await start(api, virtio1="local-lvm:8", scsi1="local-lvm:4,ssd=1")
        address = machine.address
        assert address is not None
        assert address[0].startswith("127.")
        assert address[1] == 50000
        async with talos_client(address) as client:
            disks = (await client.call("Disks")).messages[0].disks
        found = {disk.device_name: (disk.size, disk.type) for disk in disks}
        kinds = pb.Disk.DiskType
        assert found["/dev/sda"] == (20 * 2**30, kinds.SSD)
        assert found["/dev/sdb"] == (4 * 2**30, kinds.SSD)
        assert found["/dev/vda"] == (8 * 2**30, kinds.SSD)
        assert {name for name, (_, kind) in found.items() if kind == kinds.CD} == {"/dev/sr0", "/dev/sr1"}
        assert not any(disk.system_disk for disk in disks)


async def test_maintenance_mode_refuses_everything_else_in_its_own_words() -> None:
    async with lab_client() as api:
        machine = await start(api)
        assert machine.address is not None
        async with talos_client(machine.address) as client:
            text = "API is not implemented in maintenance mode"
            for name in ("Version", "Reset", "Upgrade"):
                assert await refusal(client, name) == (Status.UNIMPLEMENTED, text)
            for name in ("Bootstrap", "ServiceList", "Kubeconfig", "Reboot", "Events", "EtcdMemberList"):
                expected = (Status.UNIMPLEMENTED, f"method {name} not implemented")
                assert await refusal(client, name) == expected
            denied = (Status.PERMISSION_DENIED, "write access is not allowed")
            assert await refusal(client, "Create") == denied


async def test_the_certificate_is_new_at_each_boot_and_ed25519() -> None:
    async with lab_client() as api:
        machine = await start(api)
        assert machine.address is not None
        first = await read_certificate(machine.address)
        assert isinstance(first.public_key(), ed25519.Ed25519PublicKey)
        assert "maintenance-service.talos.dev" in first.subject.rfc4514_string()
        names = first.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert machine.address[0] in [str(one) for one in names.get_values_for_type(x509.IPAddress)]
        await api.done(await api.post("/nodes/pve1/qemu/100/status/reset"))
        again = api.world.machines.talos(100)
        assert again is not None
        assert again is not machine
        await wait_for_stage(again, "maintenance")
        assert again.address is not None
        second = await read_certificate(again.address)
        assert second.public_key() != first.public_key()


async def read_certificate(address: tuple[str, int]) -> x509.Certificate:
    pem = await asyncio.to_thread(ssl.get_server_certificate, address)
    return x509.load_pem_x509_certificate(pem.encode())


async def test_resources_are_read_by_everybody_unless_they_hold_secrets() -> None:
    async with lab_client() as api:
        machine = await start(api)
        assert machine.address is not None
        async with talos_client(machine.address) as client:
            definitions = await client.list("ResourceDefinitions.meta.cosi.dev", "meta")
            aliases = {
                name: pb.ResourceDefinitionSpec.FromString(one.spec.proto_spec).resource_type
                for one in definitions
                for name in pb.ResourceDefinitionSpec.FromString(one.spec.proto_spec).all_aliases
            }
            assert aliases["disks"] == "Disks.block.talos.dev"
            assert aliases["links"] == "LinkStatuses.net.talos.dev"
            assert aliases["addresses"] == "AddressStatuses.net.talos.dev"
            links = await client.list("LinkStatuses.net.talos.dev", "network")
            macs = {one.metadata.id: yaml.safe_load(one.spec.yaml_spec)["hardwareAddr"] for one in links}
            config = await api.get("/nodes/pve1/qemu/100/config")
            assert macs["ens18"] == config["net0"].split("=")[1].split(",")[0].lower()
            request = pb.GetRequest(
                namespace="runtime", type="MachineStatuses.runtime.talos.dev", id="machine"
            )
            status = (await client.call("Get", request)).resource
            assert yaml.safe_load(status.spec.yaml_spec)["stage"] == "maintenance"
            for kind, text in (
                ("MachineConfigs.config.talos.dev", "not authorized"),
                ("Secrets.x.dev", 'resource type "Secrets.x.dev" is not supported'),
            ):
                request = pb.ListRequest(namespace="config", type=kind)
                assert await refusal(client, "List", request) == (Status.PERMISSION_DENIED, text)
            request = pb.GetRequest(namespace="runtime", type="Disks.block.talos.dev", id="sdz")
            assert (await refusal(client, "Get", request))[0] is Status.NOT_FOUND


async def test_a_watch_sends_what_there_is_and_then_each_change() -> None:
    async with lab_client() as api:
        machine = await start(api)
        assert machine.address is not None
        request = pb.WatchRequest(
            namespace="runtime",
            type="MachineStatuses.runtime.talos.dev",
            options=pb.WatchOptions(bootstrap_contents=True),
            api_version=1,
        )
        kinds = pb.WatchEvent.EventType
        async with talos_client(machine.address) as client:
            stream = client.stream("Watch", request)
            assert not (await anext(stream)).event
            events = [(await anext(stream)).event[0] for _ in range(2)]
            assert [event.event_type for event in events] == [kinds.CREATED, kinds.BOOTSTRAPPED]
            machine.update(stage="installing")
            changed = (await anext(stream)).event[0]
            assert changed.event_type == kinds.UPDATED
            assert "maintenance" in changed.old.spec.yaml_spec
            assert "installing" in changed.resource.spec.yaml_spec
            await stream.aclose()


BAD = {
    "no yaml": (b"a: [", Status.UNKNOWN, "failed to parse config: "),
    "no kind": (b"x: 1", Status.UNKNOWN, "failed to parse config: missing kind"),
    "unknown kind": (
        b"apiVersion: v1alpha1\nkind: EnvironmentConfig\n",
        Status.UNKNOWN,
        '"EnvironmentConfig" "v1alpha1": not registered',
    ),
    "two of a kind": (
        b"apiVersion: v1alpha1\nkind: HostnameConfig\n---\napiVersion: v1alpha1\nkind: HostnameConfig\n",
        Status.UNKNOWN,
        "duplicate document v1alpha1/HostnameConfig/ is not allowed",
    ),
    "unknown key": (b"version: v1alpha1\nmachin: {}\n", Status.UNKNOWN, "unknown keys found during decoding"),
    "no sections": (
        b"version: v1alpha1\n",
        Status.INVALID_ARGUMENT,
        "configuration validation failed: 2 errors occurred:\n\t* machine instructions are required",
    ),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_configuration_that_is_not_valid_is_refused(name: str) -> None:
    data, status, text = BAD[name]
    async with lab_client() as api:
        machine = await start(api)
        with pytest.raises(GRPCError) as caught:
            await apply(machine, data)
        assert caught.value.status is status
        assert text in str(caught.value.message)
        assert machine.stage == "maintenance"


async def test_modes_and_the_dry_run_of_maintenance_mode() -> None:
    async with lab_client() as api:
        machine = await start(api)
        config = Cluster().config()
        for mode, name in ((2, "no-reboot"), (3, "staged")):
            with pytest.raises(GRPCError, match=f"--mode='{name}' is not supported in maintenance mode"):
                await apply(machine, config, mode=mode)
        answer = await apply(machine, config, dry_run=True)
        assert "Node is running in maintenance mode and does not have a config yet." in answer.mode_details
        selector = Cluster().config(install={"diskSelector": {"size": ">= 1TB"}})
        with pytest.raises(GRPCError, match="runtime configuration validation failed") as caught:
            await apply(machine, selector)
        assert caught.value.status is Status.INVALID_ARGUMENT
        assert machine.stage == "maintenance"


async def test_a_restarted_lab_continues_where_its_machines_were(tmp_path: Any) -> None:
    async with lab_client(data=tmp_path) as api:
        machine = await start(api)
        assert machine.address is not None
        before = await read_certificate(machine.address)
        address = machine.address
    async with lab_client(data=tmp_path) as api:
        again = api.world.machines.talos(100)
        assert again is not None
        await wait_for_stage(again, "maintenance")
        assert again.address == address
        # It is the same boot: the certificate is signed by the same authority.
        assert (await read_certificate(address)).issuer == before.issuer


LOADED = """
import asyncio, sys, pvelab
async def main():
    async with pvelab.start():
        heavy = ("grpclib", "google.protobuf", "pvelab.talos.guests")
        print([name for name in heavy if name in sys.modules])
asyncio.run(main())
"""


def test_a_lab_without_talos_loads_nothing_of_it() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
