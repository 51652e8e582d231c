"""The configuration of nodes that run: what differs from the files, and mending it node by node."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import StackyardError
from stackyard.bootstrap.changes.health import UnhealthyError, list_problems, wait_for_health
from stackyard.bootstrap.changes.images import keep_images
from stackyard.bootstrap.changes.one_node import (
    in_order,
    read_boot_id,
    read_running_config,
    require_quorum_without,
)
from stackyard.bootstrap.talos.wait import wait_for
from stackyard.clients.talos import TalosError, TalosUnreachableError
from stackyard.talosapi.messages import pb
from stackyard.talosconfig.difference import difference
from stackyard.talosconfig.generate import generate_config
from stackyard.talosconfig.patch_files import load_patches

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackyard.bootstrap.step import Report
    from stackyard.bootstrap.talos.access import TalosAccess
    from stackyard.secrets import Keyring
    from stackyard.sources.cluster.model import Cluster, ClusterNode
    from stackyard.talosconfig.bundle import SecretsBundle
    from stackyard.talosconfig.difference import ConfigChange
    from stackyard.talosconfig.documents import MachineConfig

__all__ = ["ConfigDrift", "ConfigMending", "NodeUnseenError", "WantedConfigs", "change_config", "read_drift"]

_APPLY = "/machine.MachineService/ApplyConfiguration"
_MODES = pb.ApplyConfigurationRequest.Mode


class NodeUnseenError(StackyardError):
    """The configuration of a node cannot be read, so that nothing can be said of it."""

    code = "E-CLUSTER-NODE-UNSEEN"
    summary = "A node cannot be asked for its configuration"
    default_remedy = (
        "`stackyard cluster nodes` shows its stage; `stackyard cluster up` configures a new node."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedConfigs:
    """Makes the configurations that the files of a cluster ask for.

    Attributes:
        cluster: The cluster.
        bundle: Its secrets.
        keyring: The keys that open encrypted patches.
    """

    cluster: Cluster
    bundle: SecretsBundle = field(repr=False)
    keyring: Keyring = field(repr=False)

    def make(self, node: ClusterNode, talos_version: str = "") -> MachineConfig:
        """Return the configuration of a node, in the form of a release; in that of the files when absent.

        Raises:
            InvalidInputError: A patch of the user cannot be applied.
        """
        patches = load_patches(self.cluster.folder, node, self.keyring)
        form = replace(self.cluster, talos_version=talos_version or self.cluster.talos_version)
        return generate_config(form, node.name, self.bundle, patches)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDrift:
    """How the configuration that a node runs with differs from its files.

    Attributes:
        node: The node.
        changes: What differs, with secrets masked; nothing if it could not be read.
        left: Which of these an upgrade of Kubernetes changes, and nothing else.
        config: The configuration that mends the others; None if nothing is to mend.
        mode: How Talos would take it: `NO_REBOOT` or `REBOOT`; empty if nothing is to mend.
        reason: Why it could not be read.
    """

    node: ClusterNode
    changes: tuple[ConfigChange, ...] = ()
    left: tuple[ConfigChange, ...] = ()
    config: MachineConfig | None = field(default=None, repr=False)
    mode: str = ""
    reason: str = ""


async def read_drift(wanted: WantedConfigs, node: ClusterNode, access: TalosAccess) -> ConfigDrift:
    """Compare the configuration that a node runs with with that of its files; nothing is changed.

    The files are taken in the form of the release that the node runs: one that is not upgraded yet does not
    know newer documents.

    Raises:
        InvalidInputError: A patch of the user cannot be applied.
        TalosRefusedError: The node refuses the configuration of the files, with its words.
    """
    try:
        async with access.open(node) as client:
            version = await client.read_version()
            running = await read_running_config(client)
    except TalosError as err:
        return ConfigDrift(node=node, reason=err.detail)
    made = wanted.make(node, version)
    changes = difference(running, made, made.redactor)
    mended = keep_images(made, running)
    mending = difference(running, mended, made.redactor)
    left = tuple(one for one in changes if one not in mending)
    if not mending:
        return ConfigDrift(node=node, changes=changes, left=left)
    mode = await _try(node, mended, access)
    return ConfigDrift(node=node, changes=changes, left=left, config=mended, mode=mode)


async def _try(node: ClusterNode, config: MachineConfig, access: TalosAccess) -> str:
    """Return how Talos would take a configuration. Its words about it are not shown: they have secrets."""
    request = pb.ApplyConfigurationRequest(data=config.text.encode(), mode=_MODES.AUTO, dry_run=True)
    async with access.open(node) as client:
        answer = await client.call(_APPLY, request, redactor=config.redactor)
    return str(_MODES.Name(answer.messages[0].mode))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigMending:
    """Gives nodes the configurations of their files, one after the other.

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

    async def run(self, drifts: Iterable[ConfigDrift], emit: events.Emit) -> tuple[str, ...]:
        """Mend the nodes that differ; return their names. The first node that does not get healthy ends it.

        Raises:
            UnhealthyError: Parts of the cluster are not healthy that this does not mend.
            BootTimeoutError: A node was changed, and the cluster did not get healthy after it.
            TalosError: A node refuses its configuration.
        """
        by_name = {one.node.name: one for one in drifts if one.config is not None}
        names = [node.name for node in in_order(self.cluster) if node.name in by_name]
        found = await list_problems(self.cluster, self.access, needs_kubernetes=self.needs_kubernetes)
        unrelated = [one for one in found if one.part not in by_name]
        if names and unrelated:
            raise UnhealthyError("\n".join(map(str, unrelated)))
        for number, name in enumerate(names):
            with events.step(emit, f"apply-config {name}", f"Configuring {name}") as running:
                await self._mend(by_name[name], running.waiting)
                await wait_for_health(
                    self.cluster,
                    self.access,
                    running.waiting,
                    timeout_s=self.timeout_s,
                    needs_kubernetes=self.needs_kubernetes,
                    ignored=frozenset(names[number + 1 :]),
                )
        return tuple(names)

    async def _mend(self, drift: ConfigDrift, report: Report) -> None:
        assert drift.config is not None, "only what differs is mended"  # noqa: S101
        if drift.mode == _MODES.Name(_MODES.REBOOT):
            await require_quorum_without(self.cluster, self.access, drift.node)
        await change_config(drift.node, drift.config, self.access, report, timeout_s=self.timeout_s)


async def change_config(
    node: ClusterNode, config: MachineConfig, access: TalosAccess, report: Report, *, timeout_s: float
) -> None:
    """Give a node that runs another configuration, and wait until it runs with it.

    Talos decides whether it needs a reboot. Then the node must have booted again: a node that answers with
    its new configuration may still be about to.

    Raises:
        TalosRefusedError: The node refuses it.
        BootTimeoutError: It does not run with it in time.
    """
    request = pb.ApplyConfigurationRequest(data=config.text.encode(), mode=_MODES.AUTO)
    async with access.open(node) as client:
        before = await read_boot_id(client)
        mode = _MODES.AUTO
        try:
            mode = (await client.call(_APPLY, request, redactor=config.redactor)).messages[0].mode
        except TalosUnreachableError:
            # The answer was lost. What the node runs with shows whether it took the configuration.
            report(f"{node.name} to answer again")

    async def has_it() -> str:
        try:
            async with access.open(node) as again:
                boot = await read_boot_id(again)
                running = await read_running_config(again)
        except TalosError as err:
            return f"{node.name} to run with its new configuration: {err.detail}"
        if mode == _MODES.REBOOT and boot == before:
            return f"{node.name} to reboot"
        return "" if not difference(running, config) else f"{node.name} to take its new configuration"

    await wait_for(
        has_it, what=f"{node.name} to run with its new configuration", timeout_s=timeout_s, report=report
    )
