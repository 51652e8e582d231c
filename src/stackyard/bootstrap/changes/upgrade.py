"""Upgrades of Talos: the image of the files on every node, one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import InvalidInputError, StackyardError
from stackyard.bootstrap.changes.health import UnhealthyError, list_problems, wait_for_health
from stackyard.bootstrap.changes.one_node import in_order, read_boot_id, require_quorum_without
from stackyard.bootstrap.talos.identity import require_boot
from stackyard.bootstrap.talos.wait import wait_for
from stackyard.clients.talos import TalosError, TalosUnreachableError
from stackyard.talosapi.messages import pb

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackyard.bootstrap.step import Report
    from stackyard.bootstrap.talos.access import TalosAccess
    from stackyard.clients.talos import TalosClient
    from stackyard.sources.cluster.model import Cluster, ClusterNode

__all__ = [
    "NodeSystem",
    "TalosUpgrade",
    "UpgradeFailedError",
    "UpgradePathError",
    "check_path",
    "read_system",
]

_UPGRADE = "/machine.MachineService/Upgrade"
_EXTENSIONS = ("ExtensionStatuses.runtime.talos.dev", "runtime")
# Images of a factory carry the id of their schematic as the version of this one.
_SCHEMATIC = "schematic"


class UpgradePathError(InvalidInputError):
    """There is no way from one version to another in one upgrade."""

    code = "E-CLUSTER-UPGRADE-PATH"
    summary = "There is no upgrade from one version to the other"
    default_remedy = "Name the newest patch release of the next minor version first, and upgrade to it."


class UpgradeFailedError(StackyardError):
    """A node booted again after an upgrade, and runs what it ran before."""

    code = "E-CLUSTER-UPGRADE"
    summary = "A node did not take its upgrade"
    default_remedy = (
        "Talos goes back to the former version where the new one does not boot. Look at the console of the "
        "node, correct what it names, and run the command again: it continues with this node."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSystem:
    """The Talos that a node runs.

    Attributes:
        node: The node.
        version: Its version, without `v`; empty where it cannot be asked.
        schematic: The schematic of its image; empty where the image is of no factory.
        reason: Why it cannot be asked.
    """

    node: ClusterNode
    version: str = ""
    schematic: str = ""
    reason: str = ""

    @property
    def is_wanted(self) -> bool:
        """Whether it runs the image of its files."""
        return not self.list_differences()

    def list_differences(self) -> tuple[str, ...]:
        """Return what an upgrade changes."""
        image, found = self.node.image, []
        if self.version != image.version:
            found.append(f"Talos {self.version} to {image.version}")
        if self.schematic and self.schematic != image.schematic_id:
            found.append(f"schematic {self.schematic[:12]} to {image.schematic_id[:12]}")
        return tuple(found)


async def read_system(node: ClusterNode, access: TalosAccess) -> NodeSystem:
    """Return the Talos that a node runs."""
    try:
        async with access.open(node) as client:
            version, schematic = await client.read_version(), await _read_schematic(client)
    except TalosError as err:
        return NodeSystem(node=node, reason=err.detail)
    return NodeSystem(node=node, version=version, schematic=schematic)


async def _read_schematic(client: TalosClient) -> str:
    rows = (found.get("metadata") or {} for found in (await client.list_resources(*_EXTENSIONS)).values())
    return next((str(row.get("version", "")) for row in rows if row.get("name") == _SCHEMATIC), "")


def check_path(before: str, after: str, what: str = "Talos") -> None:
    """Refuse an upgrade over more than one minor version, and one to an older minor version.

    Raises:
        UpgradePathError: There is no such upgrade.
    """
    old, new = _minor(before), _minor(after)
    if new[0] != old[0] or not 0 <= new[1] - old[1] <= 1:
        remedy = "Name the version that the nodes run." if new < old else None
        raise UpgradePathError(f"{what} {before} cannot be upgraded to {after} at once.", remedy=remedy)


def _minor(version: str) -> tuple[int, int]:
    first, second, *_ = version.split(".")
    return int(first), int(second)


@dataclass(frozen=True, slots=True, kw_only=True)
class TalosUpgrade:
    """Gives nodes the image of their files, one after the other.

    Attributes:
        cluster: The cluster.
        access: The API of its nodes.
        needs_kubernetes: Whether Kubernetes counts for the health between two nodes.
        timeout_s: How long a node may take.
    """

    cluster: Cluster
    access: TalosAccess = field(repr=False)
    needs_kubernetes: bool = True
    timeout_s: float = 900.0

    async def run(self, systems: Iterable[NodeSystem], emit: events.Emit) -> tuple[str, ...]:
        """Upgrade the nodes that need it; return their names. The first that does not get healthy ends it.

        Raises:
            UpgradePathError: One of them cannot be upgraded at once; nothing was changed.
            SecureBootError: One was booted in another way than its new image needs; nothing was changed.
            UnhealthyError: The cluster is not healthy; nothing was changed.
            UpgradeFailedError: A node did not take it.
            BootTimeoutError: A node did not come back, or the cluster did not get healthy after it.
        """
        by_name = {one.node.name: one for one in systems if not one.is_wanted}
        for one in by_name.values():
            check_path(one.version, one.node.image.version)
            async with self.access.open(one.node) as client:
                await require_boot(one.node, client)
        names = [node.name for node in in_order(self.cluster) if node.name in by_name]
        if names:
            found = await list_problems(self.cluster, self.access, needs_kubernetes=self.needs_kubernetes)
            if found:
                raise UnhealthyError("\n".join(map(str, found)))
        for name in names:
            node = by_name[name].node
            with events.step(
                emit, f"upgrade {name}", f"Upgrading {name} to Talos {node.image.version}"
            ) as running:
                await require_quorum_without(self.cluster, self.access, node)
                await self._upgrade(node, running.waiting)
                await wait_for_health(
                    self.cluster,
                    self.access,
                    running.waiting,
                    timeout_s=self.timeout_s,
                    needs_kubernetes=self.needs_kubernetes,
                )
        return tuple(names)

    async def _upgrade(self, node: ClusterNode, report: Report) -> None:
        request = pb.UpgradeRequest(image=node.image.installer, preserve=True)
        async with self.access.open(node) as client:
            before = await read_boot_id(client)
            try:
                # Talos pulls the image before it answers.
                await client.call(_UPGRADE, request, timeout_s=self.timeout_s)
            except TalosUnreachableError:
                # The answer was lost. What the node runs after its next boot shows whether it took it.
                report(f"{node.name} to answer again")

        async def runs_it() -> str:
            try:
                async with self.access.open(node) as again:
                    boot = await read_boot_id(again)
            except TalosError as err:
                return f"{node.name} to install and boot Talos {node.image.version}: {err.detail}"
            if boot == before:
                return f"{node.name} to reboot"
            system = await read_system(node, self.access)
            if system.reason:
                return system.reason
            if not system.is_wanted:
                raise UpgradeFailedError(
                    f"{node.name} booted again, and still needs: {', '.join(system.list_differences())}."
                )
            return ""

        await wait_for(runs_it, what=f"{node.name} to be upgraded", timeout_s=self.timeout_s, report=report)
