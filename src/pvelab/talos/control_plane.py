"""Kubernetes behind the control plane machines of a cluster: one API for each etcd that has a quorum.

    etcd ─> API ─> nodes join ─> a network plugin is applied ─> nodes are ready

The API is at port 6443 of every control plane machine whose etcd runs, at the shared address (VIP) and at the
endpoint of the configuration, as far as this machine can listen there. The objects belong to the etcd.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp

from pvelab.faults.latency import Work
from pvelab.faults.talos import list_taken_addresses
from pvelab.kubernetes import RunningKubernetes, serve_double, serve_programs
from pvelab.kubernetes.api import KubernetesApi
from pvelab.kubernetes.client import ControllerClient
from pvelab.kubernetes.controllers import LabNode, run_controllers
from pvelab.kubernetes.operations import Cluster
from pvelab.kubernetes.problems import KubeStatusError
from pvelab.machines.machine import Endpoint
from pvelab.server.problems import defect
from pvelab.talos import kubernetes_settings as settings
from pvelab.talos.cluster_view import ClusterView
from pvelab.talos.hardware import list_addresses
from pvelab.talos.kubelets import create_first_objects, list_pods, update_pods
from pvelab.talos.objects import open_objects
from pvelab.talos.relay import Relays, is_here

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from pvelab.kubernetes.controllers import Controllers
    from pvelab.talos.configuration import MachineConfig
    from pvelab.talos.guests import TalosGuests
    from pvelab.talos.machine import TalosMachine

__all__ = ["ControlPlane", "ControlPlanes"]


class ControlPlanes:
    """All Kubernetes APIs of a lab, each for as long as its etcd has a quorum.

    Args:
        guests: The Talos machines.
    """

    def __init__(self, guests: TalosGuests) -> None:
        self._guests = guests
        self._running: dict[str, ControlPlane] = {}
        self._folders = contextlib.ExitStack()
        self._folder: Path | None = None
        self._task = asyncio.get_running_loop().create_task(self._follow())

    def of(self, machine: TalosMachine) -> ControlPlane | None:
        """Return the one that a machine belongs to, None while there is none."""
        if not self._running:
            return None
        for one in machine.list_members():
            found = self._running.get(one.etcd.uuid) if one.is_control_plane else None
            if found is not None and one.etcd.is_healthy:
                return found
        return None

    async def close(self) -> None:
        """End all."""
        self._task.cancel()
        await asyncio.wait({self._task})
        await asyncio.gather(*(one.end() for one in self._running.values()))
        self._running.clear()
        await asyncio.to_thread(self._folders.close)

    def _find_folder(self) -> Path | None:
        """Return where programs keep their data, None for the double."""
        machines = self._guests.world.machines
        if machines.kubernetes is None or machines.kubernetes_folder is not None:
            return machines.kubernetes_folder
        if self._folder is None:
            made = tempfile.TemporaryDirectory(prefix="pvelab-kubernetes-")
            self._folder = Path(self._folders.enter_context(made))
        return self._folder

    async def _follow(self) -> None:
        while True:
            changed = self._guests.changed
            wanted = {one.etcd.uuid for one in self._guests.all() if one.etcd.is_healthy}
            for uuid in wanted - set(self._running):
                self._running[uuid] = ControlPlane(self._guests, uuid, self._find_folder())
            for uuid in set(self._running) - wanted:
                await self._running.pop(uuid).end()
            await changed.wait()


class ControlPlane:
    """One Kubernetes.

    Args:
        guests: The Talos machines.
        uuid: The etcd that has its objects.
        folder: Where programs keep their data.
    """

    def __init__(self, guests: TalosGuests, uuid: str, folder: Path | None = None) -> None:
        self._folder = folder
        self._guests = guests
        self._uuid = uuid
        self.view = ClusterView()
        self.endpoint: Endpoint | None = None
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def is_answering(self) -> bool:
        """Whether the API answers."""
        return self.endpoint is not None and bool(self.list_answering())

    async def end(self) -> None:
        """End it; its objects stay."""
        self._task.cancel()
        await asyncio.wait({self._task})

    def list_servers(self) -> list[TalosMachine]:
        """Return the control plane machines whose etcd is healthy."""
        return [
            one
            for one in self._guests.all()
            if one.etcd.uuid == self._uuid and one.etcd.is_healthy and not one.has_fault("unreachable")
        ]

    def list_answering(self) -> list[TalosMachine]:
        """Return those of the servers at whose addresses the API answers."""
        return [one for one in self.list_servers() if not one.has_fault("api-away")]

    async def _run(self) -> None:
        try:
            await self._guests.world.clock.sleep(self._guests.world.latency.seconds(Work.APISERVER))
            async with self._serve() as kube, contextlib.AsyncExitStack() as stack:
                # Python's own way: the folder is small and ours alone.
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pvelab-flux-")))
                controllers = await stack.enter_async_context(run_controllers(kube, folder=folder))
                client = await stack.enter_async_context(ControllerClient(kube, "talos"))
                await stack.enter_async_context(self.view.watch(client, self._tell))
                stack.enter_context(self._bring_system(client))
                await self._attend(kube, controllers)
        except Exception as err:  # The edge of a task that no one waits for.
            defect(f"the Kubernetes API of the etcd {self._uuid}", err)

    @contextlib.asynccontextmanager
    async def _serve(self) -> AsyncIterator[RunningKubernetes]:
        while not self.list_servers():
            await self._guests.wait_change()
        machine, config = self._first()
        authority = settings.authority_of(config)
        if authority is None:
            # A configuration without the CA of Kubernetes starts no API server.
            await asyncio.Event().wait()
        programs = self._guests.world.machines.kubernetes
        if programs is not None and self._folder is not None:
            folder = self._folder / self._uuid
            async with serve_programs(programs, folder, authority=authority, names=self._names()) as kube:
                yield kube
            return
        store = open_objects(self._guests.world.store, self._uuid)
        version = settings.server_version(config, machine.version)
        api = KubernetesApi(cluster=Cluster(store), version=version)
        async with serve_double(api=api, authority=authority, names=self._names()) as kube:
            yield kube

    @contextlib.contextmanager
    def _bring_system(self, client: ControllerClient) -> Iterator[None]:
        """Create the first objects and run the static pods, beside everything else."""
        task = asyncio.create_task(self._follow_servers(client))
        try:
            yield
        finally:
            task.cancel()

    async def _follow_servers(self, client: ControllerClient) -> None:
        has_created = False
        done: dict[str, Any] = {}
        while True:
            changed = self._guests.changed
            servers = self.list_servers()
            wanted = list_pods(servers, self.view)
            try:
                if servers and not has_created:
                    machine, config = self._first()
                    version = settings.server_version(config, machine.version)
                    await create_first_objects(client, config, version)
                    has_created = True
                if servers and wanted != done:
                    await update_pods(client, wanted)
                    done = wanted
            except (KubeStatusError, aiohttp.ClientError, TimeoutError, OSError) as err:
                defect(f"the first objects of the etcd {self._uuid}", err)
            await changed.wait()

    async def _attend(self, kube: RunningKubernetes, controllers: Controllers) -> None:
        parts = urlsplit(kube.url)
        self.endpoint = Endpoint(host=str(parts.hostname), port=int(parts.port or 0))
        relays, shown = Relays(self.endpoint), self._names()
        try:
            while True:
                changed = self._guests.changed
                if self.list_servers():
                    machine, config = self._first()
                    if kube.api is not None:
                        kube.api.version = settings.server_version(config, machine.version)
                    if shown != self._names():
                        shown = self._names()
                        kube.show_names(shown)
                    members = [
                        one for one in machine.list_members() if one.stage == "running" and one.is_open
                    ]
                    controllers.set_nodes(tuple(_describe(one) for one in members))
                await relays.listen_at(self._list_places())
                await changed.wait()
        finally:
            self.endpoint = None
            await relays.close()

    def _first(self) -> tuple[TalosMachine, MachineConfig]:
        machine = self.list_servers()[0]
        assert machine.config is not None, "a member of an etcd has a configuration"  # noqa: S101
        return machine, machine.config

    def _tell(self) -> None:
        """Wake who waits for machines of the cluster: they may be ready now, or no longer."""
        for server in self.list_servers()[:1]:
            for machine in server.list_members():
                machine.tell()

    def _names(self) -> tuple[str, ...]:
        found = []
        for machine in self.list_servers():
            if machine.config is not None:
                found += [*list_addresses(machine.world, machine.guest), machine.hostname]
                found += settings.list_names(machine.config)
        host = self._guests.world.machines.forwards.host
        return tuple(dict.fromkeys(name for name in (*found, host) if name))

    def _list_places(self) -> list[tuple[str, int]]:
        """Return where the API is to be reached, as far as this machine can listen there."""
        found = []
        for machine in self.list_answering():
            addresses = [*list_addresses(machine.world, machine.guest)]
            if machine.config is not None:
                addresses += settings.list_vips(machine.config)
                found.append(settings.endpoint_of(machine.config))
            found += [(address, settings.API_PORT) for address in addresses]
        taken = list_taken_addresses(self._guests.world.store)
        return [
            (host, port) for host, port in dict.fromkeys(found) if is_here(host) and (host, port) not in taken
        ]


def _describe(machine: TalosMachine) -> LabNode:
    config = machine.config
    assert config is not None, "a machine that runs has a configuration"  # noqa: S101
    return LabNode(
        name=machine.hostname,
        address=next(iter(list_addresses(machine.world, machine.guest)), ""),
        is_control_plane=machine.is_control_plane,
        version=settings.kubelet_version(config, machine.version),
        system=f"Talos ({machine.version})",
        labels=tuple(sorted(settings.list_labels(config).items())),
        taints=tuple(settings.list_taints(config)),
    )
