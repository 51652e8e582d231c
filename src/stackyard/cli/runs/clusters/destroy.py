"""The run of `stackyard cluster destroy`: the VMs through the guard, then the machines that are no VMs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.base.errors import ExitStatus, StackyardError
from stackyard.bootstrap.boot_record import BootRecord
from stackyard.bootstrap.changes.wipe import wipe_node
from stackyard.bootstrap.talos.access import TalosAccess
from stackyard.cli.result import Result
from stackyard.cli.runs.clusters.chosen_nodes import require_change_confirmed
from stackyard.cli.runs.clusters.held import hold, state_of
from stackyard.cli.runs.clusters.infra import choose_cluster
from stackyard.cli.runs.plan_options import repeat_with_permits
from stackyard.cli.runs.stacks.one import run_stack_destroy
from stackyard.guard import Permit
from stackyard.guard.addresses import split_names
from stackyard.guard.destruction import ALLOW_DESTROY
from stackyard.path.clusters.keys import make_keyring
from stackyard.sources.cluster.kind import CLUSTER
from stackyard.sources.cluster.load import load_cluster
from stackyard.talosconfig.bundle_file import load_bundle

if TYPE_CHECKING:
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.secrets import Keyring
    from stackyard.sources.cluster.model import Cluster, ClusterNode

__all__ = ["WipeNotAllowedError", "run_cluster_destroy"]


class WipeNotAllowedError(StackyardError):
    """Machines would be wiped that are not named."""

    code = "E-CLUSTER-WIPE"
    summary = "Machines would be wiped that are not named"
    default_remedy = "Name each machine that may be wiped in `--allow-destroy`."
    exit_status = ExitStatus.REFUSED


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wiped:
    """What became of a machine; `reason` says why it is not known to be wiped."""

    node: ClusterNode
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Destroyed:
    """What became of a cluster."""

    vms: Result | None
    machines: tuple[ClusterNode, ...]
    wiped: tuple[_Wiped, ...]
    is_dry: bool

    @property
    def left(self) -> tuple[_Wiped, ...]:
        return tuple(one for one in self.wiped if one.reason)

    @property
    def is_whole(self) -> bool:
        """Whether nothing of it is left."""
        are_vms_gone = self.vms is None or self.vms.status is ExitStatus.DONE
        return not self.is_dry and not self.left and are_vms_gone

    def result(self, name: str) -> Result:
        document = {
            "cluster": name,
            "vms": None if self.vms is None else self.vms.document,
            "machines": [node.name for node in self.machines],
            "not_wiped": [{"name": one.node.name, "reason": one.reason} for one in self.left],
        }
        status = ExitStatus.DONE if self.vms is None else self.vms.status
        return Result(
            document=document,
            show=lambda writer: _show(writer, self.vms, self.machines, self.wiped),
            status=ExitStatus.FAILED if self.left else status,
        )


async def run_cluster_destroy(session: Session, values: dict[str, Any]) -> Result:
    """Destroy a cluster. Nothing of it needs to answer; its secrets stay in their file.

    Raises:
        WipeNotAllowedError: Machines that are no VMs are not named; nothing was changed.
        GuardRefusedError: VMs are not named; nothing was changed.
        NotConfirmedError: The answer was no; nothing was changed.
    """
    name, folder = choose_cluster(values["name"])
    keyring = make_keyring(folder)
    cluster = await asyncio.to_thread(load_cluster, folder, keyring=keyring)
    _require_named(cluster, values)
    async with hold(session, name, doing="cluster destroy", wait_s=values["lock_wait"]) as objects:
        destroyed = await _destroy(session, values, cluster, keyring)
        if destroyed.is_whole:
            # What was destroyed by name is not missed: the next etcd is a new one.
            await BootRecord(objects, state_of(name), "").forget()
    return destroyed.result(name)


async def _destroy(
    session: Session, values: dict[str, Any], cluster: Cluster, keyring: Keyring
) -> _Destroyed:
    machines = _list_machines(cluster)
    is_dry = values["dry_run"]
    if machines and not values["yes"] and not is_dry:
        await require_change_confirmed(session, "Wipe them?", lambda writer: _show_question(writer, machines))
    vms: Result | None = None
    if cluster.proxmox is not None:
        options = {**values, "target": f"{CLUSTER}:{cluster.name}", "engine_words": ()}
        vms = await run_stack_destroy(session, options)
    wiped = () if is_dry else await _wipe(session, cluster, keyring, values["timeout_s"])
    return _Destroyed(vms=vms, machines=machines, wiped=wiped, is_dry=is_dry)


def _list_machines(cluster: Cluster) -> tuple[ClusterNode, ...]:
    return tuple(node for node in cluster.nodes if node.vm is None)


def _require_named(cluster: Cluster, values: dict[str, Any]) -> None:
    named = {one for given in values["allow_destroy"] for one in split_names(given)}
    missing = [node.name for node in _list_machines(cluster) if node.name not in named]
    if missing and not values["dry_run"]:
        permits = [Permit(option=ALLOW_DESTROY, name=node.name) for node in cluster.nodes]
        raise WipeNotAllowedError(
            f"This would wipe {', '.join(missing)}. Nothing was changed.", remedy=repeat_with_permits(permits)
        )


async def _wipe(session: Session, cluster: Cluster, keyring: Keyring, timeout_s: float) -> tuple[_Wiped, ...]:
    """Wipe all machines at the same time; those that cannot be reached are reported."""
    machines = _list_machines(cluster)
    if not machines:
        return ()
    try:
        access = TalosAccess.of(await asyncio.to_thread(load_bundle, cluster.folder, keyring))
    except StackyardError as err:
        return tuple(_Wiped(node=node, reason=err.detail) for node in machines)

    async def wipe(node: ClusterNode) -> _Wiped:
        with events.step(session.emit, f"wipe {node.name}", f"Wiping {node.name}") as running:
            reason = await wipe_node(node, access, running.waiting, timeout_s=timeout_s)
        return _Wiped(node=node, reason=reason)

    return tuple(await asyncio.gather(*map(wipe, machines)))


def _show_question(writer: TextWriter, machines: tuple[ClusterNode, ...]) -> None:
    for node in machines:
        writer.line(f"{node.name} ({node.address}) loses its configuration and all data.", style="red")


def _show(
    writer: TextWriter, vms: Result | None, machines: tuple[ClusterNode, ...], wiped: tuple[_Wiped, ...]
) -> None:
    if vms is not None and vms.show is not None:
        vms.show(writer)
    if not wiped:
        for node in machines:
            writer.line(f"{node.name} would be wiped.")
    for one in wiped:
        if one.reason:
            writer.line(f"{one.node.name} was not wiped: {one.reason}", style="red")
        else:
            writer.line(f"{one.node.name} was wiped, and is in maintenance mode.", style="green")
