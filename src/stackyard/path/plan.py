"""Planning: what would change, and what the guard refuses."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import stackyard
from stackyard.base import events
from stackyard.engine import tofu
from stackyard.engine.changes import Changes, read_changes
from stackyard.engine.plan_archive import read_archive
from stackyard.engine.version import Flavour
from stackyard.path.adjustments import adjustments
from stackyard.path.credentials.rows import CredentialPlan
from stackyard.path.judge import find_missing, judge
from stackyard.path.plan_input import look
from stackyard.path.plan_request import PlanRequest
from stackyard.path.planfile import Binding, PlanFile, PlanMovedError, open_encrypted
from stackyard.path.recreated import list_created_anyway, list_replaced
from stackyard.sources.site.own_code.find import GUESTS_OUTPUT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from stackyard.desired import Desired
    from stackyard.engine.tofu import PlanMode
    from stackyard.guard import Cluster, Owners, Verdict
    from stackyard.path.handover import Handover
    from stackyard.path.migration import GuestMove
    from stackyard.path.plan_input import PlanInput
    from stackyard.path.run import Run

__all__ = ["Plan", "PlanRequest", "changes_of", "load_plan", "make_binding", "make_plan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A plan, what it does, and what the guard refuses.

    Attributes:
        path: The engine's file, encrypted where the engine can.
        changes: What it does.
        verdict: What the guard says.
        binding: What it was made for.
        cluster: What the cluster has.
        owners: What other states have there.
        desired: The model that it was made for, with the ids and nodes of the guests that exist.
        staged: The state that it was created on, where that is stored first.
        migrations: What is moved once it is applied.
        credentials: What is done beside the engine.
        handovers: What leaves other states, because it belongs to the target.
        is_planned: Whether an engine planned at all; else the verdict says why not.
    """

    path: Path
    changes: Changes
    verdict: Verdict
    binding: Binding
    cluster: Cluster
    owners: Owners
    desired: Desired
    staged: bytes | None = None
    migrations: tuple[GuestMove, ...] = ()
    credentials: CredentialPlan = field(default_factory=CredentialPlan)
    handovers: tuple[Handover, ...] = ()
    is_planned: bool = True

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing to apply."""
        is_empty = self.changes.is_empty and self.credentials.is_nothing
        return is_empty and self.staged is None and not self.migrations and not self.handovers

    @property
    def shown(self) -> Changes:
        """What a reader sees of it: what the engine does, and what is done beside it."""
        return dataclasses.replace(self.changes, planned=(*self.changes.planned, *self.credentials.changes))

    def saved(self, shown: Mapping[str, Any] | None = None) -> PlanFile:
        """Return it as it is saved.

        Args:
            shown: What a program is shown of it, with secrets masked.
        """
        return PlanFile(
            binding=self.binding,
            plan=self.path.read_bytes(),
            staged=self.staged,
            migrations=self.migrations,
            credentials=tuple(self.credentials.document()),
            shown=shown or {},
        )


@contextlib.asynccontextmanager
async def make_plan(run: Run, plan_request: PlanRequest | None = None) -> AsyncIterator[Plan]:
    """Plan; the engine's file is there for the length of the block. Nothing is changed, in the state neither.

    Raises:
        NotVisibleError: The cluster does not show what the state has.
        ProxmoxError: The cluster does not answer, or not to us.
        TofuError: Anything else that the engine reports.
    """
    wanted = plan_request or PlanRequest()
    with tempfile.TemporaryDirectory(prefix="stackyard-") as folder:
        path = Path(folder) / "plan"
        # Asked first: a wrong token or an unknown node is one clear error here, and many from the engine.
        scene = await look(run, wanted)
        if wanted.are_names_first and (missing := await find_missing(run, scene)).refused:
            yield _leave_unplanned(run, wanted, scene, path, missing)
            return
        run.lock.staged = scene.staged
        try:
            made = await _make(run, wanted, scene, path, scene.blocks)
            created = list_created_anyway(made.changes, made.verdict, wanted.recreate)
            if created:
                # What is created in any case is created from what the input says.
                scene = await look(run, wanted, created)
                made = await _make(run, wanted, scene, path, scene.blocks)
            blocks = adjustments(
                made.verdict, scene.blocks, accept_renames=wanted.accept_renames, adopt=wanted.adopt
            )
            if blocks != scene.blocks:
                made = await _make(run, wanted, scene, path, blocks)
            yield made
        finally:
            run.lock.staged = None


@contextlib.asynccontextmanager
async def load_plan(run: Run, saved: PlanFile, plan_request: PlanRequest) -> AsyncIterator[Plan]:
    """Open a saved plan; the engine's file is there for the length of the block.

    The guard judges what is in the file, on the cluster as it is now: a new plan might do less.

    Raises:
        PlanMovedError: Something that it was made for has moved.
        NotVisibleError: The cluster does not show what the state has.
        ProxmoxError: The cluster does not answer, or not to us.
        TofuError: The engine cannot read it.
    """
    saved.binding.require(make_binding(run, plan_request.mode))
    with tempfile.TemporaryDirectory(prefix="stackyard-") as folder:
        path = Path(folder) / "plan"
        path.touch(mode=0o600)
        path.write_bytes(saved.plan)
        scene = await look(run, plan_request)
        if (scene.staged, scene.settled.migrations) != (saved.staged, saved.migrations):
            raise PlanMovedError(
                "Since the plan was made, a guest was moved or a file came into use elsewhere; or the "
                "plan moves a guest, and --allow-migrate is not given again."
            )
        if tuple(scene.credentials.document()) != saved.credentials:
            raise PlanMovedError(
                "Since the plan was made, a token or a password changed; or the plan renews a token, and "
                "--renew-token is not given again."
            )
        with events.step(run.emit, "plan", f"Reading the plan of {run.resolved.target}"):
            changes = await changes_of(run, path)
        yield Plan(
            path=path,
            changes=changes,
            verdict=await judge(run, plan_request, changes, scene),
            binding=saved.binding,
            cluster=scene.cluster,
            owners=scene.owners,
            desired=scene.settled.desired,
            staged=saved.staged,
            migrations=saved.migrations,
            credentials=scene.credentials,
            handovers=scene.handovers,
        )


async def _make(
    run: Run,
    plan_request: PlanRequest,
    scene: PlanInput,
    path: Path,
    blocks: Mapping[str, Any] | None = None,
) -> Plan:
    options = _choose_options(run, plan_request, scene)
    with events.step(run.emit, "plan", f"Planning {run.resolved.target}"):
        run.configure(scene.settled.desired, blocks or {})
        if run.served is not None:
            run.served.begin()
        ended = await tofu.plan(run.workdir, path, options=options, emit=run.emit)
        if ended.outcome is tofu.PlanOutcome.NO_CHANGES and not plan_request.unchanged:
            changes = Changes(planned=())
        else:
            changes = await changes_of(run, path)
        binding = make_binding(run, plan_request.mode)
    return Plan(
        path=path,
        changes=changes,
        verdict=await judge(run, plan_request, changes, scene),
        binding=binding,
        cluster=scene.cluster,
        owners=scene.owners,
        desired=scene.settled.desired,
        staged=scene.staged,
        migrations=scene.settled.migrations,
        credentials=scene.credentials,
        handovers=scene.handovers,
    )


def _choose_options(run: Run, plan_request: PlanRequest, scene: PlanInput) -> tofu.PlanOptions:
    return tofu.PlanOptions(
        mode=plan_request.mode,
        targets=plan_request.targets,
        replace=list_replaced(scene.settled.desired, plan_request.recreate),
        parallelism=run.settings.parallelism,
    )


def _leave_unplanned(
    run: Run, plan_request: PlanRequest, scene: PlanInput, path: Path, verdict: Verdict
) -> Plan:
    """Return what there is to say of a target that no engine was asked about."""
    return Plan(
        path=path,
        changes=Changes(planned=()),
        verdict=verdict,
        binding=make_binding(run, plan_request.mode),
        cluster=scene.cluster,
        owners=scene.owners,
        desired=scene.settled.desired,
        handovers=scene.handovers,
        is_planned=False,
    )


async def changes_of(run: Run, path: Path) -> Changes:
    """Return what a plan does: from its file where the form of that is known, else as the engine tells."""
    document = _read_archive(run, path)
    read = read_changes(await tofu.show_plan(run.workdir, path) if document is None else document)
    # The addresses of guests change by themselves: that alone is nothing to apply.
    outputs = tuple(name for name in read.outputs if name != GUESTS_OUTPUT)
    return dataclasses.replace(read, outputs=outputs).redact(run.workdir.redactor)


def _read_archive(run: Run, path: Path) -> Mapping[str, Any] | None:
    if run.served is None or run.engine.flavour is not Flavour.TOFU:
        return None
    data = open_encrypted(path.read_bytes(), run.key)
    return None if data is None else read_archive(data, run.served.schemas)


def make_binding(run: Run, mode: PlanMode) -> Binding:
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
