"""The run of `stackyard cluster up`: the VMs by the path, then the steps of the cold boot."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from stackyard.bootstrap.cold_boot import plan_talos_steps
from stackyard.bootstrap.kubernetes.input import make_kubernetes_plan
from stackyard.bootstrap.kubernetes.plan import plan_steps
from stackyard.bootstrap.run import run_steps
from stackyard.bootstrap.talos.access import TalosAccess
from stackyard.bootstrap.talos.kubeconfig import fetch_kubeconfig
from stackyard.cli.result import Result
from stackyard.cli.runs.clusters.infra import choose_cluster
from stackyard.cli.runs.stacks.apply_one import apply_stack
from stackyard.cli.runs.stacks.chosen import StackCommand
from stackyard.cli.runs.target import allowances
from stackyard.clients.kubernetes import KubernetesClient, parse_kubeconfig
from stackyard.path.clusters.configure import configure
from stackyard.path.clusters.keys import make_keyring
from stackyard.path.plan import PlanRequest
from stackyard.secrets.sops.age import recipient_of
from stackyard.sources.cluster.bootstrap_file import load_bootstrap
from stackyard.sources.cluster.kind import CLUSTER
from stackyard.sources.cluster.load import load_cluster
from stackyard.talosconfig.bundle_file import check_key, create_bundle, find_bundle, load_bundle

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.bootstrap.kubernetes.plan import KubernetesPlan
    from stackyard.bootstrap.run import Timeline
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.secrets import Keyring
    from stackyard.sources.cluster.model import Cluster
    from stackyard.talosconfig.bundle import SecretsBundle

__all__ = ["run_up"]


async def run_up(session: Session, values: dict[str, Any]) -> Result:
    """Bring the cluster up that the options name."""
    name, folder = choose_cluster(values["name"])
    keyring = make_keyring(folder)
    cluster = await asyncio.to_thread(load_cluster, folder, keyring=keyring)
    # Before any VM exists: without the key, nobody could use the cluster afterwards.
    await asyncio.to_thread(configure, cluster, keyring=keyring)
    bundle = await asyncio.to_thread(_open_bundle, folder, keyring)
    steps = plan_talos_steps(cluster, bundle, keyring)
    fields = await asyncio.to_thread(load_bootstrap, folder)
    # Charts and the repository of Flux as well: what is missing is said before any VM exists.
    plan = await make_kubernetes_plan(cluster, fields, keyring)
    await _make_vms(session, values, cluster)
    timeline = await run_steps(steps, emit=session.emit)
    timeline = timeline.join(await _run_kubernetes(session, cluster, bundle, plan))
    return Result(
        document={"cluster": name, "has_changes": timeline.has_changes, "steps": _documents(timeline)},
        show=lambda writer: _show(writer, name, timeline),
    )


def _open_bundle(folder: Path, keyring: Keyring) -> SecretsBundle:
    """Return the secrets of a cluster, made now if there are none."""
    if find_bundle(folder) is not None:
        return load_bundle(folder, keyring)
    own = recipient_of(keyring)
    recipients = () if own is None else (own,)
    check_key(folder, keyring, recipients)
    return create_bundle(folder, keyring, recipients)


async def _make_vms(session: Session, values: dict[str, Any], cluster: Cluster) -> None:
    """Create and change the VMs, through plan and guard.

    Raises:
        GuardRefusedError: The guard refuses the plan; nothing was changed.
        NotConfirmedError: The answer was no; nothing was changed.
    """
    if cluster.proxmox is None:
        return
    target = f"{CLUSTER}:{cluster.name}"
    options = {**values, "target": target, "plan_file": None, "dry_run": False, "engine_words": ()}
    command = StackCommand(session, options)
    await apply_stack(command, await command.choose(target), PlanRequest(allowances=allowances(values)))


async def _run_kubernetes(
    session: Session, cluster: Cluster, bundle: SecretsBundle, plan: KubernetesPlan
) -> Timeline:
    """Run the steps of Kubernetes, with a kubeconfig that is in memory alone."""
    kubeconfig = await fetch_kubeconfig(cluster.controllers, TalosAccess.of(bundle))
    async with KubernetesClient(parse_kubeconfig(kubeconfig)) as client:

        async def open_client() -> KubernetesClient:
            return client

        return await run_steps(plan_steps(open_client, plan), emit=session.emit)


def _documents(timeline: Timeline) -> list[dict[str, Any]]:
    return [
        {
            "step": row.name,
            "outcome": row.outcome,
            "began_s": round(row.began_s, 3),
            "elapsed_s": round(row.elapsed_s, 3),
            "is_critical": row.is_critical,
        }
        for row in timeline.rows
    ]


def _show(writer: TextWriter, name: str, timeline: Timeline) -> None:
    rows = [
        (
            row.name,
            row.outcome,
            f"{row.began_s:.1f} s",
            f"{row.elapsed_s:.1f} s",
            "*" if row.is_critical else "",
        )
        for row in timeline.rows
    ]
    writer.table(("step", "outcome", "began", "took", "critical"), rows)
    said = "is up" if timeline.has_changes else "is up already; nothing was changed"
    writer.line(f"The cluster {name} {said}.", style="green")
