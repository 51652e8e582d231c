"""The run of `stackyard cluster remove-node`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.base.diagnostics import describe
from stackyard.base.errors import ExitStatus
from stackyard.bootstrap.changes.removal import NodeRemoval, find_removed
from stackyard.bootstrap.talos.kubeconfig import kubernetes_of
from stackyard.cli.result import Result
from stackyard.cli.runs.clusters.chosen_nodes import require_change_confirmed
from stackyard.cli.runs.clusters.held import hold
from stackyard.cli.runs.clusters.opened import open_talos_cluster
from stackyard.cli.runs.plan_options import allowances
from stackyard.cli.runs.stacks.apply_one import apply_stack
from stackyard.cli.runs.stacks.chosen import StackCommand
from stackyard.cli.views.failure import write_failure
from stackyard.path.clusters.configure import configure
from stackyard.path.plan_request import PlanRequest
from stackyard.sources.cluster.kind import CLUSTER

if TYPE_CHECKING:
    from stackyard.base.errors import StackyardError
    from stackyard.bootstrap.changes.removal import RemovedNode
    from stackyard.cli.runs.clusters.opened import TalosCluster
    from stackyard.cli.runs.stacks.apply_one import AppliedStack
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["make_result", "run_remove_node"]


async def run_remove_node(session: Session, values: dict[str, Any]) -> Result:
    """Remove nodes that the files no longer have.

    Raises:
        NodeDescribedError: The files have one of them; nothing was changed.
        UnhealthyError: etcd or Kubernetes cannot be asked, or another node is not well.
        GuardRefusedError: The files ask for more than these nodes; their VMs are still there.
        NotConfirmedError: The answer was no.
    """
    opened = open_talos_cluster(values["cluster"])
    cluster, access = opened.cluster, opened.access
    async with (
        hold(session, cluster.name, doing="cluster remove-node", wait_s=values["lock_wait"]),
        kubernetes_of(cluster.controllers, access) as open_client,
    ):
        found = [await find_removed(cluster, access, name) for name in dict.fromkeys(values["nodes"])]
        if not values["yes"]:
            await require_change_confirmed(
                session, f"Remove them from {cluster.name}?", lambda writer: _show_found(writer, found)
            )
        removal = NodeRemoval(
            cluster=cluster, access=access, open_client=open_client, timeout_s=values["timeout_s"]
        )
        await _leave_etcd(session, removal, found)
        applied = await _destroy_vms(session, values, opened)
        # Last: a node that still runs would register itself again.
        await _leave_kubernetes(session, removal, found)
    return make_result(cluster.name, found, applied)


def make_result(name: str, found: list[RemovedNode], applied: AppliedStack | None) -> Result:
    """Return what was removed, and what is wrong with the VMs that stay.

    Args:
        name: The cluster.
        found: The nodes that were removed.
        applied: What became of the VMs; None for a cluster without.
    """
    problems: list[StackyardError] = []
    if applied is not None:
        problems = [*applied.down, *([] if applied.problem is None else [applied.problem])]

    def show(writer: TextWriter) -> None:
        _show_removed(writer, found, name)
        for problem in problems:
            write_failure(writer, problem)

    return Result(
        document={
            "cluster": name,
            "removed": [_document(one) for one in found],
            "vms_changed": applied is not None and applied.applied is not None,
            "problems": [describe(problem) for problem in problems],
        },
        show=show,
        status=ExitStatus.FAILED if problems else ExitStatus.DONE,
    )


def _document(one: RemovedNode) -> dict[str, Any]:
    return {
        "name": one.name,
        "was_etcd_member": one.member is not None,
        "was_kubernetes_node": one.kubernetes is not None,
    }


def _show_removed(writer: TextWriter, found: list[RemovedNode], cluster: str) -> None:
    for one in found:
        if one.member is None and one.kubernetes is None:
            writer.line(f"{one.name} was no member of etcd and no node of Kubernetes.", style="yellow")
        else:
            writer.line(f"{one.name} was removed from {cluster}.", style="green")


async def _leave_etcd(session: Session, removal: NodeRemoval, found: list[RemovedNode]) -> None:
    """Let all leave etcd; those that do not answer go first: they count against the majority."""
    members = [one.member for one in found if one.member is not None]
    if not members:
        return
    silent = await removal.list_silent()
    for member in sorted(members, key=lambda one: one.number not in silent):
        title = f"Removing {member.name} from etcd"
        with events.step(session.emit, f"etcd {member.name}", title) as running:
            await removal.leave_etcd(member, running.waiting)


async def _leave_kubernetes(session: Session, removal: NodeRemoval, found: list[RemovedNode]) -> None:
    for one in found:
        if one.kubernetes is not None:
            title = f"Removing {one.name} from Kubernetes"
            with events.step(session.emit, f"kubernetes {one.name}", title) as running:
                await removal.leave_kubernetes(one.name, running.waiting)


def _show_found(writer: TextWriter, found: list[RemovedNode]) -> None:
    for one in found:
        parts = [
            *(["a member of etcd"] if one.member is not None else []),
            *(["a node of Kubernetes"] if one.kubernetes is not None else []),
        ]
        writer.line(f"{one.name}: {', '.join(parts) or 'no longer in etcd or Kubernetes'}")


async def _destroy_vms(session: Session, values: dict[str, Any], opened: TalosCluster) -> AppliedStack | None:
    """Plan the cluster without these nodes and apply that; None for a cluster without VMs."""
    cluster = opened.cluster
    if cluster.proxmox is None:
        return None
    await asyncio.to_thread(configure, cluster, keyring=opened.keyring)
    options = {
        **values,
        "target": f"{CLUSTER}:{cluster.name}",
        "plan_file": None,
        "dry_run": False,
        "engine_words": (),
        "allow_destroy": (*values["allow_destroy"], *values["nodes"]),
    }
    command = StackCommand(session, options)
    request = PlanRequest(allowances=allowances(options))
    return await apply_stack(command, await command.choose(options["target"]), request)
