"""A lab with sandboxed guests, a site for it, and guests made from what would be rendered."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.lab_inside import need_sandbox
from tests.support.path import make_yard
from tests.support.ports import free_port

from pvelab.machines.machine import Kind
from pvelab.world.storage.contents import put_file, put_stand_in
from stackyard import lab
from stackyard.clients import proxmox
from stackyard.clients.ssh.keys import new_key_pair
from stackyard.desired import Container, Guest, Vm
from stackyard.operator.guests import GuestContext, GuestTimeouts, PullService, guest_context, pull_service
from stackyard.operator.guests.access import log_in
from stackyard.operator.outcome import Phase
from stackyard.path.manifests import resolve_manifest
from stackyard.path.target import Resolved
from stackyard.path.verify import GuestUp, verify_guest
from stackyard.render.userdata import cloud_config
from stackyard.sources.manifest.model import Manifest, Node
from stackyard.sources.manifest.read import ManifestRequest, find_manifest
from stackyard.sources.site.pull import OWN_KEY_FILE
from stackyard.sources.site.resolver import ConfigResolver

__all__ = ["GATEWAY", "GuestYard", "Made", "guest_yard", "statuses", "told_in", "user_data"]

TEMPLATE = "local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst"
GATEWAY = "10.31.0.1"
# A step that cannot work is to fail soon, and everything else has time.
PATIENT = GuestTimeouts(ssh_s=60.0, refused_s=1.0, boot_s=60.0, apply_s=60.0)


@dataclass(frozen=True, kw_only=True)
class Made:
    """The guests of a manifest, up."""

    context: GuestContext
    resolved: Resolved
    up: dict[str, GuestUp]
    service: PullService | None

    def node(self, name: str) -> Node:
        return self.context.manifest.by_name[name]

    def guest(self, name: str) -> Guest:
        return next(guest for guest in self.resolved.desired.guests if guest.name == name)


@dataclass(frozen=True, kw_only=True)
class GuestYard:
    """A site and its lab."""

    folder: Path
    running: lab.Running

    def resolver(self) -> ConfigResolver:
        """Read the site."""
        return ConfigResolver(self.folder)

    def manifest(self, name: str, *nodes: dict[str, Any], **fields: Any) -> Manifest:
        """Return a manifest of these nodes; what a guest needs to be a guest is put in."""
        given = [_whole(node) for node in nodes]
        document = {"schema_version": 2, "name": name, "nodes": given, **fields}
        document.setdefault("settings", {"timeout_buffer": 0})
        return find_manifest(self.resolver().site, ManifestRequest(text=json.dumps(document)))

    def write(self, **files: str) -> None:
        """Write files of the site: `specs__web` is specs/web.yaml."""
        for name, text in files.items():
            path = self.folder / f"{name.replace('__', '/')}.yaml"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)

    @contextlib.asynccontextmanager
    async def up(self, manifest: Manifest, *, patience: GuestTimeouts = PATIENT) -> AsyncIterator[Made]:
        """Make the guests of a manifest, unless they are there, and wait until they run."""
        resolver = self.resolver()
        async with contextlib.AsyncExitStack() as stack:
            service = await stack.enter_async_context(pull_service(resolver, manifest, "lab"))
            resolved = resolve_manifest(resolver, manifest, "lab")
            client = await stack.enter_async_context(proxmox.Client(resolved.connection))
            up = {guest.name: await self._make(client, guest, resolved) for guest in resolved.desired.guests}
            context = await stack.enter_async_context(
                guest_context(resolver, manifest, "lab", service=service, patience=patience)
            )
            yield Made(context=context, resolved=resolved, up=up, service=service)

    async def _make(self, client: proxmox.Client, guest: Guest, resolved: Resolved) -> GuestUp:
        vm_id = guest.vm_id
        assert vm_id is not None
        if self.running.on_loop(lambda: self.running.world.guests.get(vm_id)) is not None:
            pass
        elif isinstance(guest, Vm):
            await self._make_vm(client, guest, resolved)
        else:
            await self._make_container(client, guest)
        return await verify_guest(client, guest)

    async def _make_vm(self, client: proxmox.Client, guest: Vm, resolved: Resolved) -> None:
        snippet = f"local:snippets/vm-{guest.vm_id}.yaml"
        content = user_data(guest, resolved).encode()
        world = self.running.world

        def put() -> None:
            blob = world.blobs.put(content)
            with world.store.transaction():
                put_file(world, snippet, "pve1", blob)

        self.running.on_loop(put)
        fields = {"name": guest.name, "ide2": "local-lvm:cloudinit", "net0": "virtio,bridge=vmbr0"}
        fields |= {"ipconfig0": "ip=dhcp", "agent": "1", "cicustom": f"user={snippet}"}
        await _done(client, await client.post("/nodes/pve1/qemu", {"vmid": guest.vm_id, **fields}))
        await _done(client, await client.post(f"/nodes/pve1/qemu/{guest.vm_id}/status/start"))

    async def _make_container(self, client: proxmox.Client, guest: Container) -> None:
        world = self.running.world

        def put() -> None:
            with world.store.transaction():
                put_stand_in(world, TEMPLATE, "pve1", 2**20)

        self.running.on_loop(put)
        fields = {"ostemplate": TEMPLATE, "hostname": guest.name, "rootfs": "local-lvm:1", "start": "1"}
        fields |= {"net0": "name=eth0,bridge=vmbr0,ip=dhcp", "ssh-public-keys": "\n".join(guest.ssh_keys)}
        await _done(client, await client.post("/nodes/pve1/lxc", {"vmid": guest.vm_id, **fields}))


async def _done(client: proxmox.Client, upid: str) -> None:
    await proxmox.wait_for(client, upid, timeout_s=60.0)


def user_data(guest: Vm, resolved: Resolved) -> str:
    """Return the user data of a guest as its hypervisor hands it over."""
    assert guest.cloud_init is not None
    text = cloud_config(guest, guest.cloud_init)
    parts = (text,) if isinstance(text, str) else text
    secrets = resolved.secrets
    return "".join(
        part if isinstance(part, str) else json.dumps(secrets.reveal(part))[1:-1] for part in parts
    )


def _whole(node: dict[str, Any]) -> dict[str, Any]:
    if node["type"] == "ct":
        return {"image": "debian-13-ct", "cores": 1, "memory": 256, "disk": 2, **node}
    return {"image": "debian-12", "preset": "vm-small", **node}


def statuses(phases: tuple[Phase, ...]) -> dict[str, str]:
    """Return how each phase ended."""
    return {phase.name: phase.status.value for phase in phases}


async def told_in(made: Made, name: str, command: str) -> str:
    """Run a command in a guest as whoever the operator is there, with sudo."""
    hosts = made.context.hosts(made.node(name), made.guest(name), made.up[name].addresses[0])
    async with log_in(hosts, made.context) as shell:
        return (await shell.run(f"sudo -n sh -c {command!r}")).strip()


@contextlib.contextmanager
def guest_yard(folder: Path) -> Iterator[GuestYard]:
    """Run a lab whose guests are sandboxed and reach one port of this machine, and make a site for it."""
    need_sandbox()
    port = free_port()
    with lab.running(nodes=("pve1",), ssh_port=0, guests=Kind.SANDBOX, expose=(port,)) as running:
        site = folder / "site"
        with pytest.MonkeyPatch.context() as patch:
            # A key for secrets is made below it, and needed no more: these are plain from here on.
            for name in ("HOME", "XDG_CONFIG_HOME"):
                patch.setenv(name, str(folder / "home"))
            make_yard(running, site)
        pair = new_key_pair()
        (site / OWN_KEY_FILE).write_text(pair.private)
        secrets = {
            "api_tokens": {"lab": running.api_token},
            "passwords": {"node_lab": running.password},
            "ssh_keys": {"site": pair.public},
        }
        (site / "secrets.yaml").write_text(json.dumps(secrets))
        node = site / "nodes" / "lab.yaml"
        node.write_text(f"{node.read_text()}controller_address: {GATEWAY}\ncontroller_port: {port}\n")
        yield GuestYard(folder=site, running=running)
