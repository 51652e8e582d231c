"""The nodes and the system's workloads of a Kubernetes, as its machines see them, kept current by watches."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import aiohttp

from pvelab.kubernetes.problems import KubeStatusError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from pvelab.kubernetes.client import ControllerClient

__all__ = ["ClusterView", "is_ready"]

_PATHS = {
    "nodes": "/api/v1/nodes",
    "pods": "/api/v1/namespaces/kube-system/pods",
    "daemonsets": "/apis/apps/v1/namespaces/kube-system/daemonsets",
    "deployments": "/apis/apps/v1/namespaces/kube-system/deployments",
}


class ClusterView:
    """What was read last, by kind and name."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, Mapping[str, Any]]] = {kind: {} for kind in _PATHS}

    @property
    def nodes(self) -> Mapping[str, Mapping[str, Any]]:
        """The nodes that have joined."""
        return self._found["nodes"]

    @property
    def pods(self) -> Mapping[str, Mapping[str, Any]]:
        """The pods of kube-system."""
        return self._found["pods"]

    def find_node_problem(self, name: str) -> str | None:
        """Return why a node is not ready, None if it is."""
        if name not in self.nodes:
            return f'node "{name}" status is not available yet'
        return None if is_ready(self.nodes[name]) else f'node "{name}" status is not ready yet'

    def find_workload(self, kind: str, name: str) -> tuple[int, int] | None:
        """Return how many pods a workload of kube-system wants and how many are ready, None without one."""
        found = self._found[kind].get(name)
        if found is None:
            return None
        status = found.get("status") or {}
        if kind == "daemonsets":
            return int(status.get("desiredNumberScheduled", 0)), int(status.get("numberReady", 0))
        return int(found["spec"].get("replicas", 1)), int(status.get("readyReplicas", 0))

    def find_image(self, kind: str, name: str) -> str:
        """Return the image of a workload of kube-system."""
        return str(self._found[kind][name]["spec"]["template"]["spec"]["containers"][0]["image"])

    @contextlib.asynccontextmanager
    async def watch(self, client: ControllerClient, tell: Callable[[], None]) -> AsyncIterator[None]:
        """Follow the objects for the length of the block, and tell of every change."""
        tasks = [asyncio.create_task(self._follow(client, kind, tell)) for kind in _PATHS]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _follow(self, client: ControllerClient, kind: str, tell: Callable[[], None]) -> None:
        async for _ in client.watch(_PATHS[kind]):
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError, KubeStatusError):
                items = await client.list_items(_PATHS[kind])
                found: dict[str, Mapping[str, Any]] = {str(item["metadata"]["name"]): item for item in items}
                if found != self._found[kind]:
                    self._found[kind] = found
                    tell()


def is_ready(obj: Mapping[str, Any]) -> bool:
    """Return whether a node or a pod has the condition Ready."""
    rows = (obj.get("status") or {}).get("conditions") or ()
    return any(row.get("type") == "Ready" and row.get("status") == "True" for row in rows)
