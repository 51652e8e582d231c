"""VMs under a real engine with the built-in provider: from configuration to Proxmox and back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import usual_engine
from tests.support.lab import ROOMY
from tests.support.provider import Stack, credentials, driven, lab_api
from tests.support.web import served
from tests.unit.desired.test_desired import FULL

from pvelab.faults.latency import Work
from stackyard import lab, provider
from stackyard.base import process
from stackyard.clients.objects import open_objects
from stackyard.desired import Desired
from stackyard.engine.version import Engine
from stackyard.render import Provider, render

__all__ = ["usual_engine"]

ADDRESS = "proxmox_virtual_environment_vm.it"
VM = """
resource "proxmox_virtual_environment_vm" "it" {
  node_name = "pve1"
  vm_id     = 300
  name      = "web"
  disk {
    interface = "scsi0"
    size      = %s
  }
  network_device {
    bridge = "vmbr0"
  }
  %s
}
"""


@pytest.fixture
def running() -> Iterator[lab.Running]:
    with lab.running(seed=ROOMY, nodes=("pve1", "pve2"), ssh_port=0) as it:
        yield it


def guests(running: lab.Running) -> dict[str, Any]:
    return running.on_loop(lambda: dict(running.world.guests.all()))


def test_a_vm_is_made_changed_imported_and_removed(
    engine: Engine, running: lab.Running, tmp_path: Path
) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(VM % (2, 'tags = ["b", "a"]'))
        await stack.init()
        assert "1 to add" in await stack.plan(status=2)
        await stack.apply()
        assert guests(running)["300"]["status"] == "running"

        stack.write(VM % (4, 'tags = ["a", "b"]\n description = "changed"'))
        assert "0 added, 1 changed, 0 destroyed" in await stack.apply()
        assert "size=4G" in guests(running)["300"]["config"]["scsi0"]

        await stack.run("state", "rm", ADDRESS)
        await stack.run("import", "-input=false", ADDRESS, "pve1/300")
        await stack.unchanged()

        async with lab_api(running) as api:
            await api.put("/nodes/pve1/qemu/300/config", {"description": "by hand", "cores": 4})
        assert "by hand" in await stack.plan(status=2)
        await stack.apply()
        assert guests(running)["300"]["config"]["description"] == "changed"
        await stack.destroy()
        assert guests(running) == {}

    driven(engine, running, tmp_path, scenario)


def test_a_value_that_cannot_be_is_named(engine: Engine, running: lab.Running, tmp_path: Path) -> None:
    async def scenario(stack: Stack) -> None:
        stack.write(VM % (2, 'bios = "coreboot"\n keyboard_layout = "xx"'))
        await stack.init()
        said = await stack.run("validate", "-no-color", status=1)
        assert "`bios` must be one of ovmf, seabios" in said
        assert "keyboard_layout" in said

    driven(engine, running, tmp_path, scenario)


@contextlib.contextmanager
def images(folder: Path) -> Iterator[str]:
    """Serve an image with a disk of five gibibytes and give the address."""
    place = folder / "images"
    place.mkdir()
    header = b"QFI\xfb" + bytes(20) + (5 * 2**30).to_bytes(8, "big")
    (place / "a.qcow2").write_bytes(header + bytes(480))
    with served(place) as url:
        yield url


def rendered(running: lab.Running, url: str, **changes: Any) -> bytes:
    """Return the VM of the full model and its files, as the renderer writes them."""
    vms, files = [{**FULL["vms"][0], **changes}], [one for one in FULL["files"] if one["key"] != "template"]
    files = [{**one, "url": f"{url}/a.qcow2"} if "url" in one else one for one in files]
    model = Desired.model_validate({"vms": vms, "files": files})
    nodes = tuple((name, "127.0.0.1", port) for name, port in running.ssh_ports.items())
    found = render(model, Provider(ssh_user="root", ssh_nodes=nodes))
    assert [variable.name for variable in found.variables]
    return found.files["main.tf.json"]


async def prepare(running: lab.Running) -> None:
    """Have what the full model takes for granted: a disc, and a card that nodes share."""

    def add() -> None:
        with running.world.store.transaction():
            running.world.volumes.add("local:iso/tools.iso", "pve1", 2**20, content="iso", format="iso")

    running.on_loop(add)
    async with lab_api(running) as api:
        device = (await api.get("/nodes/pve1/hardware/pci"))[0]
        kind = f"{device['vendor'][2:]}:{device['device'][2:]}"
        board = f"{device['subsystem_vendor'][2:]}:{device['subsystem_device'][2:]}"
        group = device["iommugroup"]
        place = f"node=pve1,path={device['id']},id={kind},subsystem-id={board},iommugroup={group}"
        await api.post("/cluster/mapping/pci", {"id": "gpu", "map": place})


def test_the_full_model_as_it_is_rendered_is_applied_and_left_alone(
    engine: Engine, running: lab.Running, tmp_path: Path
) -> None:
    async def scenario(stack: Stack) -> None:
        document = json.loads(rendered(running, url))
        names = list(document["variable"])
        (stack.folder / "main.tf.json").write_text(json.dumps(document))
        (stack.folder / "secret.auto.tfvars.json").write_text(json.dumps(dict.fromkeys(names, "hidden")))
        await prepare(running)
        await stack.init()
        await stack.apply()
        config = guests(running)["100"]["config"]
        assert (config["name"], config["tags"], config["bios"]) == ("web", "a;b", "ovmf")
        assert "size=20G" in config["scsi0"]
        assert "mapping=gpu" in config["hostpci0"]
        await stack.destroy()
        assert guests(running) == {}

    with images(tmp_path) as url:
        driven(engine, running, tmp_path, scenario)


@contextlib.contextmanager
def slow_lab() -> Iterator[lab.Running]:
    with lab.running(seed=ROOMY, nodes=("pve1",), latency_s={Work.CREATE: 1.0, Work.START: 0.5}) as it:
        yield it


@pytest.mark.parametrize("when", ["making", "starting"])
def test_after_the_engine_was_killed_the_next_run_goes_on_with_the_same_vms(
    engine: Engine, tmp_path: Path, when: str
) -> None:
    """Killed with the provider in another process, which dies with it: only the journal is left."""

    async def scenario(running: lab.Running) -> None:
        journal = tmp_path / "journal"
        async with served_stack(engine, running, tmp_path, journal) as stack:
            stack.write(
                'resource "proxmox_virtual_environment_vm" "it" {\n count = 3\n'
                ' node_name = "pve1"\n name = "vm-${count.index}"\n}\n'
            )
            await stack.init()
            await killed(stack, running, wanted="create" if when == "making" else "")
        async with served_stack(engine, running, tmp_path, journal) as stack:
            await stack.apply()
            found = guests(running)
            names = sorted(str(guest["config"]["name"]) for guest in found.values())
            assert names == ["vm-0", "vm-1", "vm-2"]
            assert all(guest["status"] == "running" for guest in found.values())
            await stack.destroy()
            assert guests(running) == {}

    with slow_lab() as running:
        asyncio.run(scenario(running))


@contextlib.asynccontextmanager
async def served_stack(engine: Engine, running: lab.Running, folder: Path, journal: Path) -> Any:
    env = credentials(running)
    options = provider.Options(environment=env, journal=open_objects(journal), state="test")
    async with provider.serve(options) as served_provider:
        yield Stack(engine=engine, folder=folder, environment=env, reattach=served_provider.reattach)


async def killed(stack: Stack, running: lab.Running, *, wanted: str) -> None:
    """Begin an apply and kill the engine once its VMs are at the point that is wanted."""
    env = {
        "PATH": os.environ["PATH"],
        "TF_REATTACH_PROVIDERS": stack.reattach,
        "HOME": str(stack.folder),
        "TF_CLI_CONFIG_FILE": os.devnull,
    }
    command = process.Command(
        argv=(str(stack.engine.path), "apply", "-auto-approve", "-input=false"),
        env=env,
        cwd=stack.folder,
        timeout_s=120.0,
    )
    running_engine = asyncio.create_task(process.run(command, check=False))

    def is_there() -> bool:
        found = guests(running)
        return len(found) == 3 and all(guest["config"].get("lock", "") == wanted for guest in found.values())

    while not is_there():
        assert not running_engine.done()
        await asyncio.sleep(0.02)
    for pid in engine_processes(stack.folder):
        os.kill(pid, signal.SIGKILL)
    assert (await running_engine).returncode != 0


def engine_processes(folder: Path) -> list[int]:
    """Return the processes whose working directory is a folder of the test."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and os.readlink(entry / "cwd") == str(folder):
                found.append(int(entry.name))
    return found
