"""`make demo`: a cluster without hardware, guests made in parallel along a graph, and OpenTofu over it.

Everything is real but the hardware: the lab's Proxmox VE API over HTTPS, the scheduler, the events and their
live view, and a real OpenTofu that plans, applies, finds nothing more to do, and destroys.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from stackyard import dag, events, lab, schedule
from stackyard.cli.interrupt import run_interruptibly
from stackyard.cli.main import choose_progress
from stackyard.cli.settings import read_settings
from stackyard.cli.views.failure import write_failure
from stackyard.cli.views.paper import Paper, wants_colour
from stackyard.cli.views.stream import SafeStream
from stackyard.engine import tofu
from stackyard.engine.tools.find import find_engine
from stackyard.engine.workdir import Workdir
from stackyard.errors import StackyardError

NODES = ("pve1", "pve2")
# Long enough to be seen, short enough to be waited for.
LATENCY = "download=1.5,create=0.8,template=0.3,clone=1.5,migrate=1,start=0.4,boot=2"
TEMPLATE = "debian-13-standard_13.1-1_amd64.tar.zst"


@dataclass(frozen=True)
class Guest:
    """A guest of the demo."""

    name: str
    vmid: int
    node: str
    kind: str
    after: tuple[str, ...]


GUESTS = (
    Guest("web-1", 101, "pve1", "qemu", ("image",)),
    Guest("web-2", 102, "pve2", "qemu", ("image",)),
    Guest("database", 103, "pve1", "qemu", ("image",)),
    Guest("proxy", 104, "pve2", "lxc", ("template", "web-1", "web-2")),
)


class Api:
    """A small client of the Proxmox VE API, as a user's own script would have it."""

    def __init__(self, running: lab.Running, session: aiohttp.ClientSession) -> None:
        self._running = running
        self._session = session

    async def call(self, method: str, path: str, **parameters: str | int) -> Any:
        """Make a call and return its data."""
        url = f"{self._running.url}/api2/json{path}"
        async with self._session.request(method, url, data=parameters or None) as response:
            if response.status >= 400:
                raise StackyardError(f"{method} {path} was refused: {response.status} {response.reason}.")
            return (await response.json())["data"]

    async def task(self, method: str, path: str, **parameters: str | int) -> None:
        """Make a call that starts a task, and wait for the end of the task."""
        upid = await self.call(method, path, **parameters)
        await self._running.world.tasks.wait(upid)
        status = await self.call("GET", f"/nodes/{upid.split(':')[1]}/tasks/{upid}/status")
        if status["exitstatus"] != "OK":
            raise StackyardError(f"{method} {path} failed: {status['exitstatus']}.")


async def demo(emit: events.Emit) -> list[tuple[str, ...]]:
    """Run the whole of it and return the rows of the summary."""
    found = await find_engine()
    latency = lab.parse_latency(LATENCY)
    with events.step(emit, "lab", f"Start a lab with {' and '.join(NODES)}"):
        starting = lab.start(nodes=NODES, latency_s=latency)
        running = await starting.__aenter__()
    try:
        headers = {"Authorization": f"PVEAPIToken={running.api_token}"}
        connector = aiohttp.TCPConnector(ssl=aiohttp.Fingerprint(fingerprint_bytes(running.fingerprint)))
        async with aiohttp.ClientSession(headers=headers, connector=connector) as session:
            api = Api(running, session)
            await build(api, emit)
            rows = await verify(api, emit)
            with tempfile.TemporaryDirectory() as folder:
                await record(Workdir(engine=found.engine, folder=Path(folder)), rows, emit)
            return rows
    finally:
        await starting.__aexit__(None, None, None)


def fingerprint_bytes(text: str) -> bytes:
    """Return the fingerprint as the client compares it: the lab's certificate is pinned."""
    return bytes.fromhex(text.replace(":", ""))


async def build(api: Api, emit: events.Emit) -> None:
    """Make the image and the guests, each as soon as what it stands on is done."""
    work: dict[str, Callable[[], Awaitable[None]]] = {
        "image": lambda: make_image(api),
        "template": lambda: download(api, "pve2", "vztmpl", TEMPLATE),
    }
    dependencies: dict[str, tuple[str, ...]] = {"image": (), "template": ()}
    for guest in GUESTS:
        work[guest.name] = lambda guest=guest: make_guest(api, guest)  # type: ignore[misc]
        dependencies[guest.name] = guest.after

    async def do(name: str) -> None:
        with events.step(emit, name, f"Make {name}"):
            await work[name]()

    results = await schedule.walk(dag.Graph.from_dependencies(dependencies), do, parallel=4)
    for error in results.errors.values():
        raise error


async def download(api: Api, node: str, content: str, filename: str) -> None:
    """Let a node fetch a file; the lab needs no network for that."""
    url = f"https://images.example/{filename}"
    path = f"/nodes/{node}/storage/local/download-url"
    await api.task("POST", path, url=url, content=content, filename=filename)


async def make_image(api: Api) -> None:
    """Make a VM template from a cloud image."""
    await download(api, "pve1", "import", "debian-13.qcow2")
    await api.task(
        "POST",
        "/nodes/pve1/qemu",
        vmid=9000,
        name="debian-13",
        memory=1024,
        agent="enabled=1",
        scsi0="local-lvm:0,import-from=local:import/debian-13.qcow2",
        ide2="local-lvm:cloudinit",
        net0="virtio,bridge=vmbr0",
        ipconfig0="ip=dhcp",
        serial0="socket",
    )
    await api.task("POST", "/nodes/pve1/qemu/9000/template")


async def make_guest(api: Api, guest: Guest) -> None:
    """Clone a VM, or make a container, where it belongs, and start it."""
    where = f"/nodes/{guest.node}/{guest.kind}/{guest.vmid}"
    if guest.kind == "qemu":
        await api.task("POST", "/nodes/pve1/qemu/9000/clone", newid=guest.vmid, name=guest.name, full=1)
        if guest.node != "pve1":
            moved: dict[str, str | int] = {"target": guest.node, "with-local-disks": 1}
            await api.task("POST", f"/nodes/pve1/qemu/{guest.vmid}/migrate", **moved)
    else:
        await api.task(
            "POST",
            f"/nodes/{guest.node}/lxc",
            vmid=guest.vmid,
            hostname=guest.name,
            ostemplate=f"local:vztmpl/{TEMPLATE}",
            rootfs="local-lvm:4",
            net0="name=eth0,bridge=vmbr0,ip=dhcp",
        )
    await api.task("POST", f"{where}/status/start")


async def verify(api: Api, emit: events.Emit) -> list[tuple[str, ...]]:
    """Wait until every guest has an address."""
    with events.step(emit, "verify", "Prove that every guest is up") as step:
        rows: list[tuple[str, ...]] = []
        for done, guest in enumerate(GUESTS):
            step.progressed(done, len(GUESTS), "guests")
            step.waiting(f"the address of {guest.name}")
            address = await first_address(api, guest)
            rows.append((guest.name, str(guest.vmid), guest.node, guest.kind, address))
        return rows


async def first_address(api: Api, guest: Guest) -> str:
    """Ask the guest until it has an address; Proxmox has no event for that."""
    path = f"/nodes/{guest.node}/{guest.kind}/{guest.vmid}"
    path += "/interfaces" if guest.kind == "lxc" else "/agent/network-get-interfaces"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            answer = await api.call("GET", path)
        except StackyardError:
            answer = []
        interfaces = answer["result"] if isinstance(answer, dict) else answer
        for interface in interfaces:
            for address in interface.get("ip-addresses", []):
                if interface["name"] != "lo" and not address["ip-address"].startswith("fe80"):
                    return str(address["ip-address"])
        await asyncio.sleep(0.2)
    raise StackyardError(f"{guest.name} has no address after a minute.")


async def record(workdir: Workdir, rows: list[tuple[str, ...]], emit: events.Emit) -> None:
    """Let OpenTofu keep the inventory as its state: plan, apply, plan again, destroy."""
    guests = {row[0]: {"vmid": row[1], "node": row[2], "address": row[4]} for row in rows}
    resource = {"for_each": guests, "input": "${each.value}"}
    root = {
        "resource": {"terraform_data": {"guest": resource}},
        "output": {
            "guests": {"value": "${{for name, guest in terraform_data.guest : name => guest.output}}"}
        },
    }
    (workdir.folder / "main.tf.json").write_bytes(orjson.dumps(root))
    saved = workdir.folder / "plan"
    with events.step(emit, "tofu.init", f"Initialise OpenTofu {workdir.engine.version}"):
        await tofu.init(workdir, emit=events.ignore)
    with events.step(emit, "tofu.plan", "Plan"):
        await tofu.plan(workdir, saved, emit=emit)
    with events.step(emit, "tofu.apply", "Apply exactly that plan"):
        await tofu.apply(workdir, saved, emit=events.ignore)
    with events.step(emit, "tofu.again", "Plan again: nothing may change"):
        again = await tofu.plan(workdir, saved, emit=events.ignore)
        if again.outcome is not tofu.PlanOutcome.NO_CHANGES:
            raise StackyardError("A second plan wants to change something.")
    with events.step(emit, "tofu.destroy", "Destroy what OpenTofu made"):
        await tofu.destroy(workdir, emit=events.ignore)


def main(argv: list[str]) -> int:
    """Run the demo with the views of the command line."""
    settings = read_settings(argv)
    stdout, stderr = SafeStream(sys.stdout), SafeStream(sys.stderr)
    errors = Paper(stderr, colour=wants_colour(stderr, no_color=settings.no_color))
    paper = Paper(
        stdout, colour=wants_colour(stdout, no_color=settings.no_color), is_terminal=stdout.isatty()
    )
    progress = choose_progress(settings, stderr, errors)
    began = time.monotonic()
    try:
        rows = run_interruptibly(demo(progress.emit), progress.emit)
    except StackyardError as err:
        progress.close()
        write_failure(errors, err)
        return int(err.exit_status)
    progress.close()
    paper.table(("guest", "id", "node", "kind", "address"), rows)
    paper.line(
        f"{len(rows)} guests on {len(NODES)} nodes in {time.monotonic() - began:.1f} s, without hardware."
    )
    paper.line("The lab is gone again. To keep one: stackyard lab up")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
