"""VMs of every kind, applied with one of the two providers and planned with the other: nothing changes.

STACKYARD_TEST_BPG names the binary of the real bpg/proxmox; without it these tests are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.test_provider_vm import images, prepare, rendered
from tests.support.engine import engine
from tests.support.lab import ROOMY
from tests.support.provider import Stack, driven, lab_api, require_bpg
from tests.unit.desired.test_desired import FULL

from stackyard import lab
from stackyard.engine.version import Engine

__all__ = ["engine"]

pytestmark = [pytest.mark.bpg, pytest.mark.timeout(600)]

# What is inside the resource, by what it is about.
SHAPES = {
    "empty": "",
    "named": 'name = "web-1"\n description = "the first"\n tags = ["b", "a"]\n vm_id = 4711',
    "stopped": "started = false\n on_boot = false",
    "disks-and-network": """
  disk {
    interface = "scsi0"
    size = 4
  }
  disk {
    interface = "virtio1"
    datastore_id = "local"
    file_format = "qcow2"
    size = 2
    iothread = true
    discard = "on"
    cache = "writeback"
    backup = false
    replicate = false
    serial = "abc"
    speed {
      read = 100
      write_burstable = 300
      iops_read = 500
    }
  }
  network_device {
    bridge = "vmbr0"
  }
  network_device {
    bridge = "vmbr0"
    model = "e1000"
    vlan_id = 7
    firewall = true
    mac_address = "BC:24:11:00:00:07"
    mtu = 1400
    rate_limit = 12.5
    queues = 4
    disconnected = true
    trunks = "10;20"
  }
""",
    "processing": """
  cpu {
    cores = 2
    sockets = 2
    type = "x86-64-v2-AES"
    flags = ["+aes"]
    limit = 1.5
    units = 200
    numa = true
    hotplugged = 3
    affinity = "0-1"
  }
  memory {
    dedicated = 2048
    floating = 1024
    shared = 64
  }
  numa {
    device = "numa0"
    cpus = "0-1"
    hostnodes = "0"
    memory = 1024
    policy = "bind"
  }
  numa {
    device = "numa1"
    cpus = "2-3"
    hostnodes = "0"
    memory = 1024
  }
  operating_system {
    type = "l26"
  }
  hotplug = "network,disk,usb,cpu"
  machine = "q35"
  scsi_hardware = "virtio-scsi-single"
""",
    "firmware": """
  bios = "ovmf"
  efi_disk {
    datastore_id = "local-lvm"
    type = "4m"
    pre_enrolled_keys = true
  }
  tpm_state {
    version = "v2.0"
  }
  smbios {
    manufacturer = "stackyard"
    serial = "1,2=3"
  }
  rng {
    source = "/dev/urandom"
  }
""",
    "efi-on-files": """
  bios = "ovmf"
  efi_disk {
    datastore_id = "local"
    type = "4m"
  }
""",
    "devices": """
  agent {
    enabled = true
    trim = true
    timeout = "2s"
  }
  audio_device {}
  serial_device {}
  serial_device {
    device = "socket"
  }
  vga {
    type = "serial0"
    memory = 32
  }
  watchdog {
    enabled = true
    action = "reset"
  }
  startup {
    order = 3
    up_delay = 20
  }
  usb {
    host = "spice"
    usb3 = true
  }
  tablet_device = false
  acpi = false
  keyboard_layout = "de"
  kvm_arguments = "-device foo"
  protection = false
""",
    "defaults-written-out": """
  agent {}
  cpu {}
  memory {}
  operating_system {}
  vga {}
  watchdog {}
  serial_device {}
  cdrom {}
  initialization {}
""",
    "no-cards": "network_device = []",
    "cdrom": """
  cdrom {
    file_id = "none"
    interface = "ide0"
  }
""",
    "cloud-init": """
  disk {
    interface = "scsi0"
    size = 1
  }
  network_device {}
  initialization {
    datastore_id = "local-lvm"
    interface = "ide1"
    upgrade = false
    dns {
      domain = "example.org"
      servers = ["10.0.0.1", "10.0.0.2"]
    }
    ip_config {
      ipv4 {
        address = "10.0.0.7/24"
        gateway = "10.0.0.254"
      }
      ipv6 {
        address = "auto"
      }
    }
    ip_config {
      ipv4 {
        address = "dhcp"
      }
    }
    user_account {
      username = "ops"
      password = "correct horse"
      keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA+/test ops@home"]
    }
  }
""",
    "template": 'template = true\n started = false\n disk {\n interface = "scsi0"\n size = 1\n }',
    "pool": "pool_id = proxmox_virtual_environment_pool.apps.pool_id",
    "timeouts": "timeout_create = 100\n stop_on_destroy = true\n purge_on_destroy = false",
    "disks-in-another-order": """
  disk {
    interface = "scsi10"
    size = 1
  }
  disk {
    interface = "scsi2"
    size = 1
  }
  disk {
    interface = "sata0"
    size = 1
  }
""",
    "amd-sev": 'bios = "ovmf"\n machine = "q35"\n started = false\n amd_sev {\n type = "es"\n }',
}
CLONES = {
    "clone": "",
    "linked": "",
    "clone-changed": """
  cpu {
    cores = 2
  }
  memory {
    dedicated = 1024
  }
  disk {
    interface = "scsi0"
    size = 3
    datastore_id = "local"
    discard = "on"
  }
  disk {
    interface = "scsi1"
    size = 1
  }
  network_device {
    bridge = "vmbr0"
    vlan_id = 12
  }
  agent {
    enabled = true
    timeout = "2s"
  }
  serial_device {}
  description = "of a template"
  tags = ["x"]
  initialization {
    ip_config {
      ipv4 {
        address = "dhcp"
      }
    }
  }
""",
    "clone-elsewhere": "",
}
POOL = 'resource "proxmox_virtual_environment_pool" "apps" { pool_id = "apps" }\n'
SOURCE = """
resource "proxmox_virtual_environment_vm" "source" {
  node_name = "pve1"
  name = "source"
  template = true
  started = false
  disk {
    interface = "scsi0"
    size = 2
  }
  network_device {}
  initialization {
    user_account {
      username = "from-template"
    }
  }
}
"""


def vm_text(inside: str, *, node: str = "pve1", name: str = "it") -> str:
    return f'resource "proxmox_virtual_environment_vm" "{name}" {{\n  node_name = "{node}"\n  {inside}\n}}\n'


def clone_text(shape: str) -> str:
    full = "false" if shape == "linked" else "true"
    node = "pve2" if shape == "clone-elsewhere" else "pve1"
    block = f"""
  clone {{
    vm_id = proxmox_virtual_environment_vm.source.vm_id
    node_name = "pve1"
    full = {full}
  }}
"""
    return SOURCE + vm_text(block + CLONES[shape], node=node)


@pytest.fixture
def running() -> Iterator[lab.Running]:
    require_bpg()
    with lab.running(seed=ROOMY, nodes=("pve1", "pve2"), ssh_port=0) as it:
        yield it


async def compare(stack: Stack, text: str, *, first: str) -> None:
    """Apply with one, plan with the other, and let that one refresh and remove it."""
    bpg_first = first == "bpg"
    stack.write(text)
    await stack.init()
    await stack.apply(bpg=bpg_first)
    await stack.unchanged(bpg=not bpg_first)
    await stack.run("apply", "-refresh-only", "-auto-approve", "-input=false", bpg=not bpg_first)
    await stack.unchanged(bpg=bpg_first)
    await stack.destroy(bpg=not bpg_first)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("first", ["built-in", "bpg"])
def test_a_vm_of_one_provider_is_left_alone_by_the_other(
    engine: Engine, running: lab.Running, tmp_path: Path, first: str, shape: str
) -> None:
    text = (POOL if shape == "pool" else "") + vm_text(SHAPES[shape])
    driven(engine, running, tmp_path, lambda stack: compare(stack, text, first=first))


@pytest.mark.parametrize("shape", CLONES)
@pytest.mark.parametrize("first", ["built-in", "bpg"])
def test_a_clone_of_one_provider_is_left_alone_by_the_other(
    engine: Engine, running: lab.Running, tmp_path: Path, first: str, shape: str
) -> None:
    text = clone_text(shape)
    driven(engine, running, tmp_path, lambda stack: compare(stack, text, first=first))


CHAIN = ("empty", "devices", "processing", "cloud-init", "disks-and-network", "cdrom", "stopped", "empty")


def test_what_ours_changes_the_original_leaves_alone(
    engine: Engine, running: lab.Running, tmp_path: Path
) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(vm_text(SHAPES[CHAIN[0]]))
        await stack.init()
        await stack.apply(bpg=True)
        for shape in CHAIN[1:]:
            stack.write(vm_text(SHAPES[shape]))
            said = await stack.apply()
            assert "1 changed, 0 destroyed" in said, shape
            await stack.unchanged(bpg=True)
        await stack.destroy(bpg=True)

    driven(engine, running, tmp_path, scenario)


IMAGES = {
    "older-way-on-node": ("file_id", "local:iso/a.img"),
    "older-way": ("file_id", "local:import/a.qcow2"),
    "newer-way": ("import_from", "local:import/a.qcow2"),
}


@pytest.mark.parametrize("way", IMAGES)
@pytest.mark.parametrize("first", ["built-in", "bpg"])
def test_a_vm_from_an_image_is_left_alone_by_the_other(
    engine: Engine, running: lab.Running, tmp_path: Path, first: str, way: str
) -> None:
    attribute, volume = IMAGES[way]

    def add() -> None:
        with running.world.store.transaction():
            running.world.volumes.add(
                volume,
                "pve1",
                2**20,
                content=volume[6:].partition("/")[0],
                format="qcow2",
                virtual_size=2**30,
            )

    running.on_loop(add)
    places, source = ("local-lvm", "local"), f'{attribute} = "{volume}"'
    disks = [
        f'disk {{\n interface = "scsi{number}"\n datastore_id = "{place}"\n size = 3\n {source}\n}}'
        for number, place in enumerate(places)
    ]
    text = vm_text("\n".join(disks))
    driven(engine, running, tmp_path, lambda stack: compare(stack, text, first=first))


@pytest.mark.parametrize("first", ["built-in", "bpg"])
def test_the_full_model_as_it_is_rendered_is_the_same_for_both(
    engine: Engine, running: lab.Running, tmp_path: Path, first: str
) -> None:
    async def scenario(stack: Stack) -> None:
        # The original does not read back a node of memory that is bound to none of the host.
        numa = [{**node, "host_nodes": "0"} for node in FULL["vms"][0]["numa_nodes"]]
        document = json.loads(rendered(running, url, numa_nodes=numa))
        (stack.folder / "main.tf.json").write_text(json.dumps(document))
        secrets = dict.fromkeys(document["variable"], "hidden")
        (stack.folder / "secret.auto.tfvars.json").write_text(json.dumps(secrets))
        await prepare(running)
        await stack.init()
        await stack.apply(bpg=first == "bpg")
        await stack.unchanged(bpg=first != "bpg")
        await stack.destroy(bpg=first != "bpg")

    with images(tmp_path) as url:
        driven(engine, running, tmp_path, scenario)


@pytest.mark.parametrize("shape", ["empty", "disks-and-network", "cloud-init", "firmware"])
def test_an_imported_vm_is_the_same_for_both(
    engine: Engine, running: lab.Running, tmp_path: Path, shape: str
) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(vm_text("vm_id = 500\n" + SHAPES[shape]))
        await stack.init()
        await stack.apply(bpg=True)
        await stack.run("state", "rm", "proxmox_virtual_environment_vm.it")
        await stack.run("import", "-input=false", "proxmox_virtual_environment_vm.it", "pve1/500")
        await stack.unchanged()
        await stack.unchanged(bpg=True)
        async with lab_api(running) as api:
            assert (await api.get("/nodes/pve1/qemu/500/config"))["vmgenid"]

    driven(engine, running, tmp_path, scenario)
