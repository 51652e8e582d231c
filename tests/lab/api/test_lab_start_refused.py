"""What Proxmox refuses when a guest is started, and which CPUs it does not take, in its own words."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.lab import LabClient, Refused
from tests.support.lab_lxc import L
from tests.support.lab_lxc import make as make_container
from tests.support.lab_qemu import Q, change, done, failed, make, with_lab

from pvelab.seeds import Seed, SeedMachine

SMALL = Seed(name="small", machines={"pve1": SeedMachine(cpus=4, memory=8 * 2**30)})
QEMU = "start failed: QEMU exited with code 1"
GPU, CARD = "0000:01:00.0", "0000:02:00"
GPU_MAP = f"node=pve1,path={GPU},id=10de:1eb8,iommugroup=12,subsystem-id=10de:0001"


async def start(api: LabClient, vmid: int = 100) -> tuple[str, list[str]]:
    """Start a VM and return how the task ended and its log."""
    upid = await api.post(f"{Q}/{vmid}/status/start")
    return await api.done(upid), await api.log(upid)


@pytest.mark.parametrize(
    ("config", "status", "line"),
    [
        ({"cores": 5}, "MAX 4 vcpus allowed per VM on this node", None),
        ({"cores": 2, "sockets": 3, "vcpus": 1}, "MAX 4 vcpus allowed per VM on this node", None),
        (
            {"machine": "pc-q35-10.2"},
            "Installed QEMU version '10.1.2' is too old to run machine type 'pc-q35-10.2+pve0', please"
            " upgrade node 'pve1'",
            None,
        ),
        (
            {"machine": "pc-i440fx-9.2+pve2"},
            "Installed qemu-server (max feature level for 9.2 is pve1) is too old to run machine type"
            " 'pc-i440fx-9.2+pve2', please upgrade node 'pve1'",
            None,
        ),
        ({"machine": "pc-i440fx-1.4"}, QEMU, 'kvm: unsupported machine type: "pc-i440fx-1.4"'),
        ({"machine": "pc-q35-7.5"}, QEMU, 'kvm: unsupported machine type: "pc-q35-7.5"'),
        ({"machine": "virt"}, QEMU, 'kvm: unsupported machine type: "virt"'),
        (
            {"cpu": "cortex-a72"},
            "CPU model 'cortex-a72' does not exist for configured vCPU architecture 'x86_64'",
            None,
        ),
        (
            {"memory": 16385},
            QEMU,
            "kvm: cannot set up guest memory 'pc.ram': Cannot allocate memory",
        ),
        (
            {"memory": 40000, "numa": 1, "sockets": 2},
            QEMU,
            "kvm: cannot set up guest memory 'ram-node0': Cannot allocate memory",
        ),
        ({"hostpci0": "0000:0a:00.0"}, "no PCI device found for '0000:0a:00.0'", None),
        (
            {"hostpci0": GPU, "hostpci1": f"host={CARD}.1;01:00"},
            f"device '{GPU}' assigned more than once",
            None,
        ),
        (
            {"hostpci0": f"{GPU},pcie=1"},
            "q35 machine model is not enabled at /usr/share/perl5/PVE/QemuServer/PCI.pm line 510.",
            None,
        ),
        ({"hostpci0": "mapping=none"}, "PCI device mapping not found for 'none'", None),
        ({"usb0": "mapping=none"}, "USB device mapping not found for 'none'", None),
        ({"virtiofs0": "none"}, "Directory ID none does not exist.", None),
        ({"net0": "virtio,bridge=vmbr9"}, QEMU, "bridge 'vmbr9' does not exist"),
    ],
)
async def test_a_vm_that_a_node_cannot_run_is_not_started(
    config: dict[str, Any], status: str, line: str | None
) -> None:
    async with with_lab(seed=SMALL) as api:
        await make(api)
        change(api, 100, **config)
        ended, log = await start(api)
        assert ended == status
        assert line is None or line in log
        assert (await api.get(f"{Q}/100/status/current"))["status"] == "stopped"


@pytest.mark.parametrize(
    "config",
    [
        {"cores": 4},
        {"cores": 2, "sockets": 2, "machine": "q35"},
        {"machine": "pc-i440fx-2.6"},
        {"machine": "pc-q35-9.2+pve1"},
        {"machine": "virt", "arch": "aarch64", "cpu": "cortex-a72"},
        {"memory": 16384},
        {"memory": 20000, "numa": 1, "sockets": 2},
        {"cpu": "Icelake-Client,flags=+aes;-pcid"},
        {"hostpci0": f"{GPU},pcie=1", "hostpci1": CARD[5:], "machine": "q35"},
        {"usb0": "host=dead:beef"},
    ],
)
async def test_a_vm_that_a_node_can_just_run_is_started(config: dict[str, Any]) -> None:
    async with with_lab(seed=SMALL) as api:
        await make(api)
        change(api, 100, **config)
        assert await start(api) == ("OK", ["TASK OK"])


async def test_a_pci_device_belongs_to_one_running_vm() -> None:
    async with with_lab() as api:
        await make(api, 100)
        await make(api, 101)
        change(api, 100, hostpci0=GPU)
        change(api, 101, hostpci0=f"{CARD}.0;{GPU}")
        assert (await start(api, 100))[0] == "OK"
        assert (await start(api, 101))[0] == f"PCI device '{GPU}' already in use by VMID '100'"
        await done(api, await api.post(f"{Q}/100/status/stop"))
        assert (await start(api, 101))[0] == "OK"


async def test_a_mapping_stands_for_the_devices_of_the_node_that_are_free() -> None:
    async with with_lab() as api:
        ports = [
            f"node=pve1,path={CARD}.{port},id=8086:1521,iommugroup={13 + port},subsystem-id=8086:0001"
            for port in (0, 1)
        ]
        await api.post("/cluster/mapping/pci", id="ports", map=ports)
        for vmid in (100, 101, 102):
            await make(api, vmid, hostpci0="mapping=ports")
        assert [(await start(api, vmid))[0] for vmid in (100, 101)] == ["OK", "OK"]
        assert (await start(api, 102))[0] == "could not find a free device for 'hostpci0'"
        await done(api, await api.post(f"{Q}/101/status/stop"))
        assert (await start(api, 102))[0] == "OK"


@pytest.mark.parametrize(
    ("kind", "entry", "option", "text"),
    [
        (
            "pci",
            GPU_MAP.replace("10de:1eb8", "10de:2204"),
            {"hostpci0": "mapping=it"},
            "PCI device mapping invalid (hardware probably changed): 'id' does not match for 'it'"
            " (10de:1eb8 != 10de:2204)",
        ),
        (
            "pci",
            GPU_MAP.replace("node=pve1", "node=pve2"),
            {"hostpci0": "mapping=it"},
            "PCI device mapping not found for 'it'",
        ),
        (
            "usb",
            "node=pve1,id=dead:beef",
            {"usb0": "mapping=it"},
            "USB Mapping invalid (hardware probably changed): usb device 'dead:beef' not found",
        ),
        (
            "dir",
            "node=pve2,path=/srv/shared",
            {"virtiofs0": "it"},
            "No directory mapping for node pve1.",
        ),
    ],
)
async def test_a_mapping_has_to_fit_the_node(
    kind: str, entry: str, option: dict[str, Any], text: str
) -> None:
    async with with_lab() as api:
        await api.post(f"/cluster/mapping/{kind}", id="it", map=entry)
        await make(api, **option)
        assert (await start(api))[0] == text


@pytest.mark.parametrize(
    ("custom", "text"),
    [
        ("user=local:snippets/user.yaml", "volume 'local:snippets/user.yaml' does not exist"),
        ("vendor=local:iso/a.iso", "local:iso/a.iso is not in the snippets directory"),
        ("meta=gone:snippets/a.yaml", "storage 'gone' does not exist"),
    ],
)
async def test_a_cloud_init_drive_needs_its_snippets_on_the_node_of_the_vm(custom: str, text: str) -> None:
    async with with_lab() as api:
        with api.world.store.transaction():
            # On another node than that of the VM.
            api.world.volumes.add("local:snippets/user.yaml", "pve2", 10, content="snippets", format="raw")
        await make(api, cicustom=custom)
        assert (await start(api))[0] == "OK"
        await done(api, await api.post(f"{Q}/100/status/stop"))
        await api.put(f"{Q}/100/config", ide2="local-lvm:cloudinit")
        assert (await start(api))[0] == text
        with pytest.raises(Refused, match=f"500 {text}"):
            await api.put(f"{Q}/100/cloudinit")
        with api.world.store.transaction():
            api.world.volumes.add("local:snippets/user.yaml", "pve1", 10, content="snippets", format="raw")
        await api.put(f"{Q}/100/config", cicustom="user=local:snippets/user.yaml")
        assert (await start(api))[0] == "OK"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("nonsense", "Built-in cputype 'nonsense' is not defined (missing 'custom-' prefix?)"),
        ("custom-mine", "Custom cputype 'mine' not found"),
        (
            "host,flags=+aes;+avx9",
            "VM-specific CPU flags must be a subset of: aes, amd-no-ssb, amd-ssbd, hv-evmcs, hv-tlbflush,"
            " ibpb, md-clear, nested-virt, pcid, pdpe1gb, spec-ctrl, ssbd, virt-ssbd",
        ),
        (
            "host,reported-model=kvm64",
            "Property 'reported-model' not allowed in VM-specific CPU config.",
        ),
    ],
)
async def test_a_cpu_that_does_not_exist_is_not_kept(given: str, text: str) -> None:
    async with with_lab() as api:
        errors = {"cpu": f"invalid format - {text}\n"}
        with pytest.raises(Refused, match="400 Parameter verification failed") as caught:
            await api.post(Q, vmid=100, cpu=given)
        assert caught.value.errors == errors
        await make(api, cpu="x86-64-v2-AES,flags=+aes")
        with pytest.raises(Refused, match="400 Parameter verification failed") as caught:
            await api.put(f"{Q}/100/config", cpu=given)
        assert caught.value.errors == errors


async def test_a_cpu_model_of_the_cluster_has_to_be_there_when_a_vm_starts() -> None:
    async with with_lab() as api:
        model = {"cputype": "mine", "reported-model": "kvm64"}
        await api.post("/cluster/qemu/custom-cpu-models", **model)
        await make(api, cpu="custom-mine")
        assert (await start(api))[0] == "OK"
        await done(api, await api.post(f"{Q}/100/status/stop"))
        await api.delete("/cluster/qemu/custom-cpu-models/mine")
        assert (await start(api))[0] == "Custom cputype 'mine' not found"


async def test_a_container_needs_its_bridge() -> None:
    async with with_lab() as api:
        await make_container(api, net0="name=eth0,bridge=vmbr9")
        upid = await api.post(f"{L}/100/status/start")
        assert await failed(api, upid) == "startup for container '100' failed"
        log = await api.log(upid)
        assert "bridge 'vmbr9' does not exist" in log
        assert "lxc_spawn: 1852 Failed to create the network" in log
        assert (await api.get(f"{L}/100/status/current"))["status"] == "stopped"
        await api.put(f"{L}/100/config", net0="name=eth0,bridge=vmbr0")
        await done(api, await api.post(f"{L}/100/status/start"))
