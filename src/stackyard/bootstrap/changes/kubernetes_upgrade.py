"""Upgrades of Kubernetes: component by component, node by node, through the configurations of the nodes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import StackyardError
from stackyard.bootstrap.changes.configuration import NodeUnseenError, change_config
from stackyard.bootstrap.changes.health import UnhealthyError, list_problems, wait_for_health
from stackyard.bootstrap.changes.images import (
    KUBELET,
    SERVERS,
    find_image,
    image_version,
    replace_image,
)
from stackyard.bootstrap.changes.one_node import in_order, read_running_config
from stackyard.bootstrap.changes.upgrade import check_path
from stackyard.bootstrap.talos.wait import wait_for
from stackyard.clients.kubernetes import ObjectReference
from stackyard.clients.talos import TalosError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from stackyard.bootstrap.step import Report
    from stackyard.bootstrap.talos.access import TalosAccess
    from stackyard.clients.kubernetes import KubernetesClient
    from stackyard.sources.cluster.model import Cluster, ClusterNode
    from stackyard.talosconfig.documents import MachineConfig

__all__ = ["KubernetesUpgrade", "NodeComponents", "read_components"]

_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")
_SYSTEM = "kube-system"
# Talos runs these as static pods, of which Kubernetes shows what really runs.
_STATIC = SERVERS[:3]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeComponents:
    """The versions of Kubernetes in the configuration that a node runs with, by component, without `v`."""

    node: ClusterNode
    versions: dict[str, str]

    def find_outdated(self, version: str) -> tuple[str, ...]:
        """Return the components of another version."""
        return tuple(name for name, found in self.versions.items() if found != version)


async def read_components(cluster: Cluster, access: TalosAccess) -> tuple[NodeComponents, ...]:
    """Return what each node runs of Kubernetes, in the order of an upgrade.

    Raises:
        NodeUnseenError: A node cannot be asked.
    """
    found = []
    for node in in_order(cluster):
        config = await _read_config(node, access)
        names = (*SERVERS, KUBELET) if node.is_controller else (KUBELET,)
        versions = {name: image_version(find_image(config, name)) for name in names}
        found.append(NodeComponents(node=node, versions={name: one for name, one in versions.items() if one}))
    return tuple(found)


async def _read_config(node: ClusterNode, access: TalosAccess) -> MachineConfig:
    try:
        async with access.open(node) as client:
            return await read_running_config(client)
    except TalosError as err:
        raise NodeUnseenError(f"{node.name}: {err.detail}") from err


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesUpgrade:
    """Gives a cluster the version of Kubernetes of its files: the API servers first, the kubelets last.

    Attributes:
        cluster: The cluster.
        access: The API of its nodes.
        open_client: Opens the Kubernetes API.
        timeout_s: How long one component of a node may take.
    """

    cluster: Cluster
    access: TalosAccess = field(repr=False)
    open_client: Callable[[], Awaitable[KubernetesClient]] = field(repr=False)
    timeout_s: float = 900.0

    async def run(self, found: tuple[NodeComponents, ...], emit: events.Emit) -> tuple[str, ...]:
        """Upgrade what is outdated; return it as `NODE COMPONENT`. The first that does not get well ends it.

        Raises:
            UpgradePathError: A component cannot be upgraded at once; nothing was changed.
            UnhealthyError: The cluster is not healthy; nothing was changed.
            BootTimeoutError: A component did not come back in its new version.
        """
        version = self.cluster.kubernetes_version
        for before in sorted({one for row in found for one in row.versions.values()}):
            check_path(before, version, "Kubernetes")
        work = [
            (row.node, component)
            for component in (*SERVERS, KUBELET)
            for row in found
            if component in row.find_outdated(version)
        ]
        if work:
            problems = await list_problems(self.cluster, self.access)
            if problems:
                raise UnhealthyError("\n".join(map(str, problems)))
        for node, component in work:
            name = f"upgrade {component} {node.name}"
            with events.step(emit, name, f"Upgrading {component} of {node.name} to {version}") as running:
                await self._upgrade(node, component, running.waiting)
                await wait_for_health(self.cluster, self.access, running.waiting, timeout_s=self.timeout_s)
        return tuple(f"{node.name} {component}" for node, component in work)

    async def _upgrade(self, node: ClusterNode, component: str, report: Report) -> None:
        """Replace the image of one component; everything else of the running configuration stays."""
        running = await _read_config(node, self.access)
        before = _DIGEST.sub("", find_image(running, component) or "")
        image = f"{before.rpartition(':')[0]}:v{self.cluster.kubernetes_version}"
        config = replace_image(running, component, image)
        await change_config(node, config, self.access, report, timeout_s=self.timeout_s)

        async def runs_it() -> str:
            return await self._look(node, component)

        what = f"{component} of {node.name} to run in its new version"
        await wait_for(runs_it, what=what, timeout_s=self.timeout_s, report=report)

    async def _look(self, node: ClusterNode, component: str) -> str:
        """Return why Kubernetes does not show a component in its new version, empty if it does."""
        version = self.cluster.kubernetes_version
        try:
            client = await self.open_client()
            if component == KUBELET:
                found = await client.get(ObjectReference("v1", "Node", node.name))
                runs = str(found["status"]["nodeInfo"]["kubeletVersion"]).removeprefix("v")
            elif component in _STATIC:
                pod = f"{component}-{node.name}"
                found = await client.get(ObjectReference("v1", "Pod", pod, _SYSTEM))
                runs = image_version(str(found["spec"]["containers"][0]["image"]))
            else:
                # Its image in the configuration is for the next cluster: what runs is a DaemonSet.
                return ""
        except StackyardError as err:
            return f"{component} of {node.name} to answer: {err.detail}"
        return "" if runs == version else f"{component} of {node.name}, which is {runs}"
