"""A create that Proxmox refuses: nothing is made, and the journal has nothing to look after."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from tests.support.provider_bench import Bench, Failed, bench
from tests.support.provider_container import TEMPLATE, plant_templates_here

from stackyard import lab
from stackyard.clients import proxmox
from stackyard.clients.objects import open_objects
from stackyard.provider.journal import Journal, subject_of

VM = "proxmox_virtual_environment_vm"
CONTAINER = "proxmox_virtual_environment_container"
DISK = [{"interface": "scsi0", "size": 1, "datastore_id": "local-lvm"}]
CT: dict[str, Any] = {
    "node_name": "pve1",
    "started": False,
    "disk": [{"datastore_id": "local-lvm", "size": 1}],
    "initialization": [{"hostname": "made"}],
    "operating_system": [{"template_file_id": TEMPLATE, "type": "debian"}],
}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "vm": (VM, {"node_name": "pve1", "vm_id": 300, "disk": DISK}),
    "unnumbered vm": (VM, {"node_name": "pve1", "name": "web"}),
    "clone": (VM, {"node_name": "pve1", "vm_id": 300, "clone": [{"vm_id": 900}]}),
    "container": (CONTAINER, {**CT, "vm_id": 300}),
    "container clone": (
        CONTAINER,
        {"node_name": "pve1", "vm_id": 300, "clone": [{"vm_id": 901}], "initialization": [{}]},
    ),
    "pool": ("proxmox_virtual_environment_pool", {"pool_id": "more", "comment": ""}),
    "bridge": ("proxmox_network_linux_bridge", {"node_name": "pve1", "name": "vmbr9"}),
    "zone": ("proxmox_sdn_zone_simple", {"id": "zone", "nodes": ["pve1"]}),
    "ha resource": ("proxmox_haresource", {"resource_id": "vm:900"}),
    "ha rule": (
        "proxmox_harule",
        {"rule": "near", "type": "resource-affinity", "resources": ["vm:900"], "affinity": "positive"},
    ),
    "download": (
        "proxmox_download_file",
        {
            "node_name": "pve1",
            "datastore_id": "local",
            "content_type": "iso",
            "file_name": "a.img",
            "url": "https://example.org/a.img",
        },
    ),
    "zfs pool": (
        "proxmox_node_disk_zfs",
        {"node_name": "pve1", "name": "tank", "devices": ["/dev/sda"], "raidlevel": "single"},
    ),
    "oci image": (
        "proxmox_oci_image",
        {"node_name": "pve1", "datastore_id": "local", "reference": "docker.io/library/debian:13"},
    ),
    "upload": (
        "proxmox_virtual_environment_file",
        {
            "node_name": "pve1",
            "datastore_id": "local",
            "content_type": "iso",
            "source_raw": [{"data": "x", "file_name": "b.iso"}],
        },
    ),
}


async def have_sources(running: lab.Running) -> None:
    plant_templates_here(running)
    async with bench(running) as it:
        await it.apply(VM, node_name="pve1", vm_id=900, started=False, template=True, disk=DISK)
        await it.apply(CONTAINER, **CT, vm_id=901)


def entries_of(folder: Path) -> list[str]:
    return [path.read_text() for path in folder.glob("*.json")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("status", "reason"), [(403, "Permission check failed"), (400, "not so"), (500, "no")]
)
async def test_a_refused_create_leaves_no_entry(kind: str, status: int, reason: str, tmp_path: Path) -> None:
    type_name, config = KINDS[kind]

    async with lab.start(nodes=("pve1",)) as running:
        await have_sources(running)
        async with bench(running, tmp_path) as it:
            running.add_fault("answer", status=status, reason=reason, method="POST")
            with pytest.raises(Failed, match=reason):
                await it.apply(type_name, **config)
            assert it.states == {}
            assert it.session.journal.entries == ()
        assert entries_of(tmp_path) == []


async def token_for(it: Bench, **rights: str) -> str:
    """Make a user with a token that has one role at each of some paths, and nothing else."""
    client = it.session.client
    await client.post("/access/users", {"userid": "ops@pve"})
    token = await client.post("/access/users/ops@pve/token/tests", {"privsep": False})
    for path, role in rights.items():
        await client.put("/access/acl", {"path": path, "roles": role, "users": "ops@pve"})
    return f"{token['full-tokenid']}={token['value']}"


@pytest.mark.parametrize("kind", ["vm", "container", "clone"])
async def test_a_token_that_may_neither_make_nor_look_leaves_no_entry(kind: str, tmp_path: Path) -> None:
    type_name, config = KINDS[kind]

    async with lab.start(nodes=("pve1",)) as running:
        await have_sources(running)
        async with bench(running) as it:
            token = await token_for(it, **{"/vms/900": "PVETemplateUser"})
        async with bench(running, tmp_path, credentials=proxmox.Token(text=token)) as it:
            with pytest.raises(Failed, match="403"):
                await it.apply(type_name, **config)
        assert entries_of(tmp_path) == []


async def test_a_call_that_was_never_sent_leaves_no_entry(tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as cluster:
        running = await cluster.enter_async_context(lab.start(nodes=("pve1",)))
        async with bench(running, tmp_path) as it:
            # Nothing takes the connection any more.
            await cluster.aclose()
            with pytest.raises(Failed, match="E-PROXMOX-UNREACHABLE"):
                await it.apply(VM, **KINDS["vm"][1])
        assert entries_of(tmp_path) == []


TAKEN = {
    "vm": KINDS["vm"],
    "clone": KINDS["clone"],
    "container": KINDS["container"],
    "container clone": KINDS["container clone"],
}


@pytest.mark.parametrize("kind", TAKEN)
@pytest.mark.parametrize("holder", ["qemu", "lxc"])
async def test_a_taken_vm_id_is_one_error_for_all(kind: str, holder: str, tmp_path: Path) -> None:
    type_name, config = TAKEN[kind]

    async with lab.start(nodes=("pve1", "pve2")) as running:
        await have_sources(running)
        async with bench(running, tmp_path) as it:
            await take(it, holder)
            with pytest.raises(Failed) as caught:
                await it.apply(type_name, **config)
        name = "VM other" if holder == "qemu" else "container other"
        assert f"E-PROVIDER-VM-ID-TAKEN): The vm id 300 is taken: {name} on pve2 has it." in str(caught.value)
        assert "import pve2/300" in str(caught.value)
        assert entries_of(tmp_path) == []


async def take(it: Bench, holder: str) -> None:
    """Give the number to somebody else's guest, on another node."""
    if holder == "qemu":
        await it.session.client.post("/nodes/pve2/qemu", {"vmid": 300, "name": "other"})
        return
    params: dict[str, str | int] = {"vmid": 300, "hostname": "other", "ostemplate": TEMPLATE}
    await it.session.client.post("/nodes/pve2/lxc", {**params, "rootfs": "local-lvm:1"})


async def test_a_vm_id_that_is_taken_after_the_look_is_the_same_error(tmp_path: Path) -> None:
    """The container asks whether its number is free, and somebody takes it before it is made."""

    async with lab.start(nodes=("pve1", "pve2")) as running, bench(running, tmp_path) as it:
        plant_templates_here(running)
        running.add_fault("delay", seconds=0.5, when="after", method="GET", path="/cluster/nextid")
        making = asyncio.create_task(it.apply(CONTAINER, **CT, vm_id=300))
        while not any(one.path == "/cluster/nextid" for one in running.world.journal.entries()):
            if any(rule[2] for rule in running.world.faults.rules().values()):
                break
            await asyncio.sleep(0.01)
        await take(it, "qemu")
        with pytest.raises(Failed, match=r"VM-ID-TAKEN.*VM other on pve2"):
            await making
        assert entries_of(tmp_path) == []


@pytest.mark.parametrize("kind", ["vm", "container"])
async def test_a_vm_id_of_a_guest_that_the_token_cannot_see_is_named_as_such(
    kind: str, tmp_path: Path
) -> None:
    type_name, config = TAKEN[kind]
    config = {**config, "pool_id": "apps"}
    rights = {
        "/pool/apps": "PVEVMAdmin",
        "/storage": "PVEDatastoreUser",
        "/sdn": "PVESDNUser",
        "/nodes": "PVEAuditor",
    }

    async with lab.start(nodes=("pve1", "pve2")) as running:
        await have_sources(running)
        async with bench(running) as it:
            await take(it, "qemu")
            token = await token_for(it, **rights)
        async with bench(running, tmp_path, credentials=proxmox.Token(text=token)) as it:
            with pytest.raises(Failed) as caught:
                await it.apply(type_name, **config)
        assert "E-PROVIDER-VM-ID-TAKEN" in str(caught.value)
        assert "that the token may not see" in str(caught.value)
        assert "VM.Audit on /vms/300" in str(caught.value)
        assert entries_of(tmp_path) == []


@pytest.mark.parametrize("type_name", [VM, CONTAINER])
async def test_an_old_entry_of_what_was_never_made_changes_nothing(type_name: str, tmp_path: Path) -> None:
    config = KINDS["vm" if type_name == VM else "container"][1]

    async with lab.start(nodes=("pve1",)) as running:
        plant_templates_here(running)
        async with bench(running) as it:
            planned = it.plan(type_name, **config).state
        assert planned is not None
        name = (planned.get("initialization") or [{}])[0].get("hostname")
        subject = subject_of(type_name, {**planned, "name": name} if name else planned)
        await Journal(open_objects(tmp_path), "test").begin(subject, node="pve1", vm_id=300)
        async with bench(running, tmp_path) as it:
            await it.apply(type_name, **config)
            assert await it.is_settled(type_name, **config)
            assert len(running.world.guests.all()) == 1
        assert entries_of(tmp_path) == []
