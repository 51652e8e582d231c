"""The controllers of a cluster of the lab, as clients of its API, real or double.

Each controller looks at everything that it is about whenever one of its objects changes, and does what is
missing. None of them knows stackyard, and stackyard never sets what they set.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aiohttp

from pvelab.kubernetes.client import ControllerClient
from pvelab.kubernetes.flux import FluxControllers
from pvelab.kubernetes.problems import KubeStatusError
from pvelab.kubernetes.workloads import LabNode, finish_namespaces, join_nodes, roll_out

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
    from pathlib import Path

    from pvelab.kubernetes.running import RunningKubernetes

__all__ = ["Controllers", "LabNode", "run_controllers"]

_WORKLOADS = tuple(f"/apis/apps/v1/{plural}" for plural in ("daemonsets", "deployments", "statefulsets"))
_SOURCES = "/apis/source.toolkit.fluxcd.io/v1/gitrepositories"
_KUSTOMIZATIONS = "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations"
# The objects of Flux, what opens its sources, and what it waits for.
_OF_FLUX = (_SOURCES, _KUSTOMIZATIONS, "/api/v1/secrets", *_WORKLOADS)


@dataclass(slots=True)
class Controllers:
    """What the controllers work with.

    Attributes:
        nodes: The machines that join; more may join later.
        failures: What went wrong in a controller, for tests.
    """

    nodes: tuple[LabNode, ...] = ()
    failures: list[str] = field(default_factory=list)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def join(self, node: LabNode) -> None:
        """Let a further node join."""
        self.set_nodes((*self.nodes, node))

    def set_nodes(self, nodes: tuple[LabNode, ...]) -> None:
        """Let these be the nodes; one that has joined and is no longer among them is not ready."""
        if nodes != self.nodes:
            self.nodes = nodes
            self._wake.set()

    def leave(self, name: str) -> None:
        """Let a node stop, as one that was reset or lost; its object stays until somebody deletes it."""
        self.nodes = tuple(node for node in self.nodes if node.name != name)
        self._wake.set()


@contextlib.asynccontextmanager
async def run_controllers(
    kube: RunningKubernetes, nodes: tuple[LabNode, ...] = (), *, folder: Path
) -> AsyncIterator[Controllers]:
    """Run the controllers of a cluster until the end of the block.

    Args:
        kube: The API of the cluster.
        nodes: The machines that join.
        folder: A folder of ours, for what Flux fetches.
    """
    controllers = Controllers(nodes=nodes)
    async with contextlib.AsyncExitStack() as stack:
        names = ("kube-controller-manager", "source-controller", "kustomize-controller")
        clients = [await stack.enter_async_context(ControllerClient(kube, name)) for name in names]
        manager, sources, kustomize = clients
        loops = _list_loops(controllers, manager, FluxControllers(sources, kustomize, folder))
        tasks = [asyncio.create_task(loop) for loop in loops]
        try:
            yield controllers
            # A defect of a controller ends the block with its traceback.
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _list_loops(
    controllers: Controllers,
    manager: ControllerClient,
    flux: FluxControllers,
) -> list[Coroutine[Any, Any, None]]:
    async def tend_nodes() -> None:
        await join_nodes(manager, controllers.nodes)
        await roll_out(manager)

    async def tend_namespaces() -> None:
        await finish_namespaces(manager)

    async def tend_flux() -> float | None:
        await flux.fetch_sources()
        await flux.apply_kustomizations()
        return flux.next_due_s()

    return [
        _run(controllers, manager, ("/api/v1/nodes", *_WORKLOADS), tend_nodes),
        _run(controllers, manager, ("/api/v1/namespaces",), tend_namespaces),
        _run(controllers, flux.sources, _OF_FLUX, tend_flux),
    ]


async def _run(
    controllers: Controllers,
    client: ControllerClient,
    paths: tuple[str, ...],
    tend: Callable[[], Awaitable[float | None]],
) -> None:
    """Do what is missing, at the beginning and after every change of what is at some paths.

    A controller that must look again without a change, as one that fetches from elsewhere, returns when.
    """
    changed = asyncio.Event()

    async def watch(path: str) -> None:
        async for _ in client.watch(path):
            changed.set()

    async def pass_on() -> None:
        while True:
            await controllers._wake.wait()
            controllers._wake.clear()
            changed.set()

    due_s: float | None = None
    async with asyncio.TaskGroup() as group:
        for path in paths:
            group.create_task(watch(path))
        group.create_task(pass_on())
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(due_s):
                    await changed.wait()
            changed.clear()
            try:
                due_s = await tend()
            # The API may be away, or an object may change under our hands: the next change brings us back.
            except (KubeStatusError, aiohttp.ClientError, TimeoutError, OSError) as err:
                controllers.failures.append(f"{type(err).__name__}: {err}")
