"""Planning: what would change, and what the guard says to it."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import stackyard
from stackyard import events
from stackyard.engine import statefile, tofu
from stackyard.engine.changes import Changes, read_changes
from stackyard.engine.plan_archive import read_archive
from stackyard.engine.version import Flavour
from stackyard.guard import Allowances, Permit, Verdict, inspect, inspect_placement
from stackyard.guard.destruction import ALLOW_DESTROY, is_file
from stackyard.guard.subjects import name_of
from stackyard.path.planfile import Binding, PlanFile, open_encrypted
from stackyard.path.survey import survey

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from stackyard.engine.changes import Change
    from stackyard.engine.tofu import PlanMode
    from stackyard.guard import Cluster
    from stackyard.path.run import Run

__all__ = ["Made", "Wishes", "binding_of", "changes_of", "planned", "reopened"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the user asks for besides the plan itself.

    Attributes:
        mode: What the plan is for.
        allowances: What may happen, by name.
        accept_renames: Whether guests under a new key are moved in the state.
        adopt: Whether guests that nothing manages are taken over.
        resume: Whether what is there but whose making failed is completed, where nobody lets it go.
        unchanged: Whether resources to which nothing happens are wanted too, which costs a start of the
            engine where there are no others.
        targets: Addresses to plan for, with what they need; everything when empty.
    """

    mode: PlanMode = tofu.PlanMode.NORMAL
    allowances: Allowances = field(default_factory=Allowances)
    accept_renames: bool = False
    adopt: bool = False
    resume: bool = False
    unchanged: bool = False
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A plan, what it does, and what the guard says to it.

    Attributes:
        path: The engine's file, encrypted where the engine can.
        changes: What it does.
        verdict: What the guard says.
        binding: What it was made for.
        cluster: What the cluster has.
    """

    path: Path
    changes: Changes
    verdict: Verdict
    binding: Binding
    cluster: Cluster

    def save(self, run: Run, path: Path) -> None:
        """Save it as one encrypted file.

        Raises:
            FileError: It cannot be written.
        """
        PlanFile(binding=self.binding, plan=self.path.read_bytes()).save(path, run.key)


@contextlib.asynccontextmanager
async def planned(run: Run, wishes: Wishes | None = None) -> AsyncIterator[Made]:
    """Plan; the engine's file is there for the length of the block.

    Raises:
        StateLockedError: Another run holds the state.
        ProxmoxError: The cluster does not answer, or not to us.
        TofuError: Anything else that the engine reports.
    """
    wanted = wishes or Wishes()
    with tempfile.TemporaryDirectory(prefix="stackyard-") as folder:
        path = Path(folder) / "plan"
        # Asked first: a wrong token or an unknown node is one clear error here, and many from the engine.
        cluster = await _survey(run)
        made = await _make(run, wanted, cluster, path)
        if await _repair(run, wanted, made):
            made = await _make(run, wanted, await _survey(run), path)
        yield made


@contextlib.asynccontextmanager
async def reopened(run: Run, saved: PlanFile, wishes: Wishes) -> AsyncIterator[Made]:
    """Open a saved plan; the engine's file is there for the length of the block.

    The guard judges what is in the file, on the cluster as it is now: a new plan might do less.

    Raises:
        PlanMovedError: Something that it was made for has moved.
        ProxmoxError: The cluster does not answer, or not to us.
        TofuError: The engine cannot read it.
    """
    saved.binding.require(binding_of(run, wishes.mode))
    with tempfile.TemporaryDirectory(prefix="stackyard-") as folder:
        path = Path(folder) / "plan"
        path.touch(mode=0o600)
        path.write_bytes(saved.plan)
        cluster = await _survey(run)
        with events.step(run.emit, "plan", f"Reading the plan of {run.resolved.target}"):
            changes = await changes_of(run, path)
        verdict = _judge(run, wishes, changes, cluster)
        yield Made(path=path, changes=changes, verdict=verdict, binding=saved.binding, cluster=cluster)


async def _survey(run: Run) -> Cluster:
    nodes = {guest.node for guest in run.resolved.desired.guests}
    with events.step(run.emit, "survey", "Looking at the cluster"):
        return await survey(run.client, nodes)


async def _make(run: Run, wishes: Wishes, cluster: Cluster, path: Path) -> Made:
    options = tofu.PlanOptions(mode=wishes.mode, targets=wishes.targets, parallelism=run.settings.parallelism)
    with events.step(run.emit, "plan", f"Planning {run.resolved.target}"):
        if run.served is not None:
            run.served.begin()
        ended = await tofu.plan(run.workdir, path, options=options, emit=run.emit)
        if ended.outcome is tofu.PlanOutcome.NO_CHANGES and not wishes.unchanged:
            changes = Changes(planned=())
        else:
            changes = await changes_of(run, path)
        binding = binding_of(run, wishes.mode)
    verdict = _judge(run, wishes, changes, cluster)
    return Made(path=path, changes=changes, verdict=verdict, binding=binding, cluster=cluster)


async def changes_of(run: Run, path: Path) -> Changes:
    """Return what a plan does: from its file where the form of that is known, else as the engine tells."""
    document = _archived(run, path)
    return read_changes(await tofu.show_plan(run.workdir, path) if document is None else document)


def _archived(run: Run, path: Path) -> Mapping[str, Any] | None:
    if run.served is None or run.engine.flavour is not Flavour.TOFU:
        return None
    data = open_encrypted(path.read_bytes(), run.key)
    return None if data is None else read_archive(data, run.served.schemas)


def _judge(run: Run, wishes: Wishes, changes: Changes, cluster: Cluster) -> Verdict:
    verdict = inspect(changes, wishes.allowances, _without_unfinished(run, cluster))
    if wishes.mode is not tofu.PlanMode.NORMAL:
        return verdict
    return verdict.joined(inspect_placement(run.resolved.desired, changes, cluster))


def _without_unfinished(run: Run, cluster: Cluster) -> Cluster:
    """Return the cluster without what a killed run of ours was making: the provider takes that over."""
    if run.served is None:
        return cluster
    ours = {(entry.vm_id, entry.node) for entry in run.served.journal.entries}
    guests = tuple(guest for guest in cluster.guests if (guest.vm_id, guest.node) not in ours)
    return dataclasses.replace(cluster, guests=guests)


async def _repair(run: Run, wishes: Wishes, made: Made) -> bool:
    """Move renamed guests and take over strangers, where the user said so; tell whether anything was done."""
    did_something = False
    for change in _to_resume(made.changes, wishes) if wishes.resume else ():
        await statefile.untaint(run.workdir, change.address)
        did_something = True
    if wishes.accept_renames:
        for rename in made.verdict.renames:
            for source, destination in rename.moves:
                await statefile.state_mv(run.workdir, source, destination)
            did_something = True
    if wishes.adopt:
        for adoption in made.verdict.adoptions:
            await statefile.import_resource(run.workdir, adoption.address, adoption.import_id)
            did_something = True
    return did_something


def _to_resume(changes: Changes, wishes: Wishes) -> tuple[Change, ...]:
    """Return what is there but whose making failed, unless the user lets it go; files are made anew."""
    return tuple(
        change
        for change in changes.planned
        if change.is_unfinished
        and not is_file(change)
        and Permit(option=ALLOW_DESTROY, name=name_of(change)) not in wishes.allowances.permits
    )


def binding_of(run: Run, mode: PlanMode) -> Binding:
    """Return what a plan that is made now is made for."""
    return Binding(
        target=str(run.resolved.target),
        state_name=run.resolved.target.state_name,
        input=f"{run.input_digest} ({version})" if (version := run.resolved.version) else run.input_digest,
        state=run.state_version(),
        code=stackyard.__version__,
        engine=f"{run.engine.flavour.label} {run.engine.version}",
        provider=run.settings.provider.value,
        mode=mode.value,
    )
