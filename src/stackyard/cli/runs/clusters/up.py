"""The run of `stackyard cluster up`: the VMs by the path, then the steps of the cold boot."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import Location, UsageError
from stackyard.bootstrap.boot_record import BootRecord
from stackyard.bootstrap.cold_boot import BootSettings, NodePatience, plan_talos_steps
from stackyard.bootstrap.kubernetes.input import make_kubernetes_plan
from stackyard.bootstrap.kubernetes.plan import plan_steps
from stackyard.bootstrap.run import ColdBootError, Timeline, TimelineRow, run_steps
from stackyard.bootstrap.storage import plan_storage_steps
from stackyard.bootstrap.talos.access import TalosAccess
from stackyard.bootstrap.talos.kubeconfig import KUBERNETES, kubernetes_of
from stackyard.bootstrap.talos.members import ask_etcd, check_members
from stackyard.cli.runs.clusters.held import hold, state_of
from stackyard.cli.runs.clusters.infra import choose_cluster
from stackyard.cli.runs.clusters.timeline import timeline_result
from stackyard.cli.runs.plan_options import allowances
from stackyard.cli.runs.stacks.apply_one import apply_stack
from stackyard.cli.runs.stacks.chosen import StackCommand
from stackyard.path.clusters.configure import configure
from stackyard.path.clusters.keys import make_keyring
from stackyard.path.plan_request import PlanRequest
from stackyard.secrets.sops.age import recipient_of
from stackyard.sources.cluster.bootstrap_file import load_bootstrap
from stackyard.sources.cluster.kind import CLUSTER
from stackyard.sources.cluster.load import load_cluster
from stackyard.state import layout
from stackyard.talosconfig.bundle_file import (
    BUNDLE_FILES,
    BundleMissingError,
    check_key,
    create_bundle,
    find_bundle,
    load_bundle,
)

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.base.errors import StackyardError
    from stackyard.bootstrap.kubernetes.plan import KubernetesPlan
    from stackyard.bootstrap.run import PlannedStep
    from stackyard.cli.result import Result
    from stackyard.cli.session import Session
    from stackyard.clients.objects import Objects
    from stackyard.secrets import Keyring
    from stackyard.sources.cluster.model import Cluster
    from stackyard.talosconfig.bundle import SecretsBundle

__all__ = ["run_up"]

_VMS = "vms"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Boot:
    """A cluster that is to come up, with all that is known before anything is changed."""

    session: Session
    values: dict[str, Any]
    cluster: Cluster
    settings: BootSettings
    steps: tuple[PlannedStep, ...]
    storage: tuple[PlannedStep, ...]
    kubernetes: KubernetesPlan


async def run_up(session: Session, values: dict[str, Any]) -> Result:
    """Bring the cluster up that the options name."""
    name, folder = choose_cluster(values["name"])
    if values["new_etcd"] not in (None, name):
        raise UsageError(f"--new-etcd names {values['new_etcd']}, and the cluster is {name}.")
    async with hold(session, name, doing="cluster up", wait_s=values["lock_wait"]) as objects:
        boot = await _prepare(session, values, folder, objects)
        return await _run(boot)


async def _prepare(session: Session, values: dict[str, Any], folder: Path, objects: Objects) -> _Boot:
    """Read and check everything that can be known before anything is changed."""
    keyring = make_keyring(folder)
    cluster = await asyncio.to_thread(load_cluster, folder, keyring=keyring)
    # Before any VM exists: without the key, nobody could use the cluster afterwards.
    await asyncio.to_thread(configure, cluster, keyring=keyring)
    if values["new_etcd"] is None:
        await asyncio.to_thread(_require_bundle, folder, objects, cluster.name)
    bundle = await asyncio.to_thread(_open_bundle, folder, keyring)
    patience = NodePatience()
    if values["node_wait"] is not None:
        patience = NodePatience(appear_s=values["node_wait"], install_s=values["node_wait"])
    settings = BootSettings(
        access=TalosAccess.of(bundle),
        record=BootRecord(objects, state_of(cluster.name), bundle.cluster_id),
        patience=patience,
        may_form_again=values["new_etcd"] is not None,
    )
    fields = await asyncio.to_thread(load_bootstrap, folder)
    return _Boot(
        session=session,
        values=values,
        cluster=cluster,
        settings=settings,
        steps=plan_talos_steps(cluster, bundle, keyring, settings),
        storage=plan_storage_steps(cluster, fields.storage),
        # Charts and the repository of Flux as well: what is missing is said before any VM exists.
        kubernetes=await make_kubernetes_plan(cluster, fields, keyring),
    )


def _require_bundle(folder: Path, objects: Objects, name: str) -> None:
    """Refuse to make secrets for a cluster that was brought up with others.

    Raises:
        BundleMissingError: It was, and they are not here.
    """
    if find_bundle(folder) is None and objects.get(layout.cluster_etcd(state_of(name))) is not None:
        raise BundleMissingError(
            f"There is no {folder / BUNDLE_FILES[0]}, and {name} was brought up before, with secrets of its "
            "own. Nothing was changed.",
            where=Location(str(folder)),
            remedy=f"Restore {BUNDLE_FILES[0]} from git. If that cluster is gone, --new-etcd {name} makes "
            "new secrets and a new etcd.",
        )


def _open_bundle(folder: Path, keyring: Keyring) -> SecretsBundle:
    """Return the secrets of a cluster, made now if there are none."""
    if find_bundle(folder) is not None:
        return load_bundle(folder, keyring)
    own = recipient_of(keyring)
    recipients = () if own is None else (own,)
    check_key(folder, keyring, recipients)
    return create_bundle(folder, keyring, recipients)


async def _run(boot: _Boot) -> Result:
    """Do everything, and show how far it came."""
    await _check_members(boot)
    try:
        # Before any VM: whatever is wrong with the storage shows before anything else is made.
        prepared = await run_steps(boot.storage, emit=boot.session.emit)
    except ColdBootError as err:
        return timeline_result(boot.cluster.name, err.timeline, err)
    made, errors = await _make_vms(boot)
    timeline = prepared.join(made)
    try:
        timeline = timeline.join(await _run_steps(boot))
    except ColdBootError as err:
        timeline = timeline.join(err.timeline)
        errors = {**errors, **err.by_step}
    failure = ColdBootError(errors, timeline) if errors else None
    return timeline_result(boot.cluster.name, timeline, failure)


async def _check_members(boot: _Boot) -> None:
    """Check that no member of etcd is missing in the files, before its VM is destroyed; note etcd if it runs.

    Raises:
        RemovedMemberError: One is.
        EtcdSplitError: There are several etcds.
    """
    found = await ask_etcd(boot.cluster.controllers, boot.settings.access)
    if any(one.has_etcd for one in found):
        await boot.settings.record.note_formed(boot.cluster.controllers[0].name)
    check_members(found, is_before_change=True)


async def _make_vms(boot: _Boot) -> tuple[Timeline, dict[str, StackyardError]]:
    """Create and change the VMs, through plan and guard; return what became of them.

    Talos may answer on a VM that could not be seen to be up, so the steps that follow find out.

    Raises:
        GuardRefusedError: The guard refuses the plan; nothing was changed.
        NotConfirmedError: The answer was no; nothing was changed.
    """
    if boot.cluster.proxmox is None:
        return Timeline(rows=()), {}
    target = f"{CLUSTER}:{boot.cluster.name}"
    options = {**boot.values, "target": target, "plan_file": None, "dry_run": False, "engine_words": ()}
    command = StackCommand(boot.session, options)
    began = time.monotonic()
    request = PlanRequest(allowances=allowances(boot.values))
    applied = await apply_stack(command, await command.choose(target), request)
    problems = [*applied.down, *([] if applied.problem is None else [applied.problem])]
    row = TimelineRow(
        name=_VMS,
        outcome="failed" if problems else "present" if applied.applied is None else "done",
        elapsed_s=time.monotonic() - began,
        detail=" ".join(problem.detail for problem in problems),
        is_critical=True,
    )
    is_changed = applied.applied is not None
    return Timeline(rows=(row,), is_changed=is_changed), dict(
        zip(_name_problems(problems), problems, strict=True)
    )


def _name_problems(problems: list[StackyardError]) -> list[str]:
    return [_VMS if number == 1 else f"{_VMS} ({number})" for number in range(1, len(problems) + 1)]


async def _run_steps(boot: _Boot) -> Timeline:
    """Run the steps of Talos and Kubernetes as one graph.

    Raises:
        ColdBootError: Steps failed.
    """
    async with kubernetes_of(boot.cluster.controllers, boot.settings.access) as open_client:
        later = [
            one if one.after else replace(one, after=(KUBERNETES,))
            for one in plan_steps(open_client, boot.kubernetes)
        ]
        timeline = await run_steps((*boot.steps, *later), emit=boot.session.emit)
    # A cluster that an earlier version brought up, or another store, has no record yet.
    await boot.settings.record.note_formed(boot.cluster.controllers[0].name)
    return timeline
