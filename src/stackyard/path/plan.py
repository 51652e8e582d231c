"""Planning: what would change, and what the guard refuses."""

from __future__ import annotations

import asyncio
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
from stackyard.guard import Allowances, Permit
from stackyard.guard.destruction import ALLOW_DESTROY, FILES
from stackyard.guard.subjects import name_in, short_type
from stackyard.path.adjustments import adjustments
from stackyard.path.cluster_objects import with_objects
from stackyard.path.credentials.look import find_imports, look_at_credentials
from stackyard.path.credentials.rows import CredentialPlan
from stackyard.path.first_boot_data import data_notes, keep_images
from stackyard.path.judge import judge
from stackyard.path.known_state import read_known_state
from stackyard.path.owners import read_owners
from stackyard.path.planfile import Binding, PlanFile, PlanMovedError, open_encrypted
from stackyard.path.recreated import list_created_anyway, list_replaced
from stackyard.path.settle import ModelContext, settle
from stackyard.path.shared_files import Files, look_at_files
from stackyard.path.survey import survey
from stackyard.path.unfinished import find_unfinished
from stackyard.path.visibility import require_visible
from stackyard.sources.site.own_code.find import GUESTS_OUTPUT
from stackyard.state.managed import read_managed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from stackyard.desired import Desired
    from stackyard.engine.tofu import PlanMode
    from stackyard.guard import Cluster, Owners, Verdict
    from stackyard.path.known_state import KnownState
    from stackyard.path.migration import GuestMove
    from stackyard.path.run import Run
    from stackyard.path.settle import SettledModel

__all__ = ["Plan", "PlanInput", "PlanRequest", "changes_of", "load_plan", "make_binding", "make_plan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What the user asks for besides the plan itself.

    Attributes:
        mode: What the plan is for.
        allowances: What may happen, by name.
        accept_renames: Whether guests under a new key are moved in the state.
        adopt: Whether guests and other objects that nothing manages are taken over.
        unchanged: Whether resources to which nothing happens are wanted too, which costs a start of the
            engine where there are no others.
        targets: Addresses to plan for, with what they need; everything when empty.
        recreate: Names of guests to destroy and create again.
        has_login: Whether somebody logged in, who sets passwords.
    """

    mode: PlanMode = tofu.PlanMode.NORMAL
    allowances: Allowances = field(default_factory=Allowances)
    accept_renames: bool = False
    adopt: bool = False
    unchanged: bool = False
    targets: tuple[str, ...] = ()
    recreate: frozenset[str] = frozenset()
    has_login: bool = False


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

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing to apply."""
        is_empty = self.changes.is_empty and self.credentials.is_nothing
        return is_empty and self.staged is None and not self.migrations

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
        scene = await _look(run, wanted)
        run.lock.staged = scene.staged
        try:
            made = await _make(run, wanted, scene, path, scene.blocks)
            created = list_created_anyway(made.changes, made.verdict, wanted.recreate)
            if created:
                # What is created in any case is created from what the input says.
                scene = await _look(run, wanted, created)
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
        scene = await _look(run, plan_request)
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
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """What is known before an engine plans.

    Attributes:
        cluster: What the cluster has.
        owners: What other states have there.
        settled: The model, fitted to the guests that exist.
        staged: The state to plan with, where it is not the stored one.
        unfinished: The ids of guests that a killed run of ours was creating.
        blocks: What every plan of the target does besides: files under another name.
        credentials: What is done beside the engine.
    """

    cluster: Cluster
    owners: Owners
    settled: SettledModel
    staged: bytes | None
    unfinished: frozenset[int]
    blocks: Mapping[str, Any]
    credentials: CredentialPlan


async def _look(run: Run, plan_request: PlanRequest, created: frozenset[str] = frozenset()) -> PlanInput:
    """Look at everything that a plan depends on.

    Args:
        run: The target.
        plan_request: What the user asks for.
        created: Names of guests that will be created, whatever they were created from before.
    """
    nodes = {guest.node for guest in run.resolved.desired.guests}
    with events.step(run.emit, "survey", "Looking at the cluster"):
        known = await asyncio.to_thread(
            read_known_state, run.states, run.resolved.target.state_name, run.resolved.desired
        )
        cluster = await with_objects(run, await survey(run.client, nodes, known.vm_ids), known)
        await require_visible(run.client, known, cluster)
        # Read once: both the guests and the files of others come from it.
        managed = await asyncio.to_thread(read_managed, run.states, but=run.resolved.target.state_name)
        owners = await read_owners(run, cluster, managed)
        unfinished = await find_unfinished(run, cluster, owners)
        record = await asyncio.to_thread(run.states.targets.read, run.resolved.target.state_name)
        before = Files(known=known, cluster=cluster, record=record, managed=managed)
        files = await look_at_files(run, before, mode=plan_request.mode)
        credentials = await look_at_credentials(run, plan_request, record)
        imports = await find_imports(run, record, known)
    around = ModelContext(
        known=known,
        cluster=cluster,
        managed=owners.vm_ids,
        unfinished={entry.subject.name: entry.vm_id for entry in unfinished if entry.subject.name},
        permits=plan_request.allowances.permits,
    )
    settled = settle(files.desired, around)
    exists = {guest.vm_id for guest in cluster.guests}
    desired, notes = keep_images(settled.desired, known, exists, plan_request.recreate | created)
    notes = (*notes, *data_notes(desired, known, cluster, record))
    # A plan for some targets deletes no file of the others.
    forget = frozenset() if plan_request.targets else files.forget
    edit = dataclasses.replace(settled.edit, complete=_to_complete(known, plan_request), forget=forget)
    settled = dataclasses.replace(
        settled, desired=desired, notes=(*settled.notes, *files.notes, *notes), refused=files.refused
    )
    blocks = {"moved": [{"from": a, "to": b} for a, b in files.moves], "import": imports}
    return PlanInput(
        cluster=cluster,
        owners=owners,
        settled=settled,
        staged=known.edit(edit),
        unfinished=frozenset(entry.vm_id for entry in unfinished),
        blocks={name: entries for name, entries in blocks.items() if entries},
        credentials=credentials,
    )


def _to_complete(known: KnownState, plan_request: PlanRequest) -> frozenset[str]:
    """Return what is there but whose creation failed, unless the user lets it go; files are written again."""
    if plan_request.mode is not tofu.PlanMode.NORMAL:
        return frozenset()
    found = set()
    for address in known.list_tainted():
        instance = known.instances[address]
        kind = short_type(instance.type)
        if kind == instance.type:
            # An object of another system: whether it is whole, only its own provider can tell.
            continue
        name = name_in(kind, instance.attributes) or address.rpartition(".")[2]
        if (
            kind not in FILES
            and Permit(option=ALLOW_DESTROY, name=name) not in plan_request.allowances.permits
        ):
            found.add(address)
    return frozenset(found)


async def _make(
    run: Run,
    plan_request: PlanRequest,
    scene: PlanInput,
    path: Path,
    blocks: Mapping[str, Any] | None = None,
) -> Plan:
    options = tofu.PlanOptions(
        mode=plan_request.mode,
        targets=plan_request.targets,
        replace=list_replaced(scene.settled.desired, plan_request.recreate),
        parallelism=run.settings.parallelism,
    )
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
