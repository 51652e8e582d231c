"""Removing guests of a host: all that its state has, or some; and what no one's state has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import StackyardError
from stackyard.clients import ssh
from stackyard.desired import Desired
from stackyard.engine.changes import Action
from stackyard.engine.tofu import PlanMode
from stackyard.fields.guest import split_tags
from stackyard.guard import Allowances, GuardRefusedError
from stackyard.guard.destruction import ALLOW_DESTROY
from stackyard.guard.subjects import data_files, describe, is_guest, is_snippet, name_of, volume_of
from stackyard.operator.delegation.offer import forget_inner
from stackyard.path.apply import apply_plan
from stackyard.path.environment import resolve_on
from stackyard.path.importing.managed import managed_guests
from stackyard.path.manifests import KIND, first_boots_of, tag_of
from stackyard.path.plan import make_plan
from stackyard.path.plan_request import PlanRequest
from stackyard.path.run import open_run
from stackyard.path.ssh_login import known_hosts
from stackyard.path.target import Target
from stackyard.path.unfinished import sweep_unfinished
from stackyard.render.names import key_of
from stackyard.render.references import data_addresses

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from stackyard.clients import proxmox
    from stackyard.path.plan import Plan
    from stackyard.path.run import Run, RunSettings
    from stackyard.provider.journal import Entry
    from stackyard.sources.site import ConfigResolver
    from stackyard.state import StateService

__all__ = ["Removal", "Removed", "find_orphans"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """What a removal did.

    Attributes:
        names: Guests that are gone.
        errors: Why others are not.
        orphans: Guests with the tag of the manifest that are left, and in no state.
    """

    names: frozenset[str] = frozenset()
    errors: tuple[StackyardError, ...] = ()
    orphans: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Removal:
    """Removes what a manifest has on a host.

    Nothing of the manifest itself is needed for it: the state says what is there. So a manifest that was
    changed, broken or deleted since is not in the way.

    Attributes:
        resolver: The site.
        settings: How the engine is run.
        manifest: The manifest, by its name.
        host: The host.
        emit: Takes the events.
        confirmed: The guests that may be removed; all when absent.
    """

    resolver: ConfigResolver
    settings: RunSettings
    manifest: str
    host: str
    emit: events.Emit = events.ignore
    confirmed: Collection[str] | None = None

    async def all(self) -> Removed:
        """Remove everything that the state has, and what a killed run was making.

        Raises:
            GuardRefusedError: A guest is protected; nothing was removed.
            StackyardError: The host or the state cannot be used.
        """
        return await self._run(lambda entry: True)

    async def only(self, names: Collection[str]) -> Removed:
        """Remove some guests, with what was made for them alone.

        Raises:
            GuardRefusedError: A guest is protected, or others would have to go too; nothing was removed.
            StackyardError: The host or the state cannot be used.
        """
        return await self._run(lambda entry: entry.subject.name in names, names)

    async def _run(self, is_meant: Callable[[Entry], bool], names: Collection[str] | None = None) -> Removed:
        target = Target(kind=KIND, name=self.manifest, node=self.host)
        resolved = resolve_on(self.resolver, target, Desired())
        async with open_run(resolved, self.settings, emit=self.emit, may_be_empty=True) as run:
            swept = await sweep_unfinished(run, is_meant)
            plan_request = PlanRequest(mode=PlanMode.DESTROY, allowances=Allowances(everything=True))
            async with make_plan(run, plan_request) as made:
                targets = None if names is None else _targets(made, names)
                removed = await self._apply(run, made) if targets is None else Removed()
            if targets is not None and names is not None:
                removed = await self._some(run, targets, names)
            orphans = await find_orphans(run.client, run.states, self.resolver, self.manifest)
        gone = removed.names | {text.partition(" (")[0] for text in swept}
        self._forget(target, gone)
        return Removed(names=gone, errors=removed.errors, orphans=orphans)

    def _forget(self, target: Target, names: Collection[str]) -> None:
        """Forget the keys of guests that are no more, so that others of the same names can come."""
        if names:
            first_boots_of(self.resolver, target).forget(names)
            forget_inner(self.settings.store, self.manifest, self.host, names)
            aliases = [f"{target.state_name}/{name}" for name in names]
            ssh.forget_hosts(known_hosts(self.resolver.site), aliases)

    async def _some(self, run: Run, targets: tuple[str, ...], names: Collection[str]) -> Removed:
        if not targets:
            return Removed()
        allowances = Allowances(everything=True)
        plan_request = PlanRequest(mode=PlanMode.DESTROY, allowances=allowances, targets=targets)
        async with make_plan(run, plan_request) as made:
            others = [
                name_of(change)
                for change in made.changes.planned
                if is_guest(change) and change.destroys and name_of(change) not in names
            ]
            if others:
                # The engine takes what depends on a resource with it, and that was there before.
                raise GuardRefusedError(
                    f"Nothing is removed: {', '.join(sorted(others))} would have to go too.", ()
                )
            return await self._apply(run, made)

    def _require_confirmed(self, made: Plan) -> None:
        """Refuse to remove guests that the user was not asked about.

        Raises:
            GuardRefusedError: With their names.
        """
        if self.confirmed is None:
            return
        going = [change for change in made.changes.planned if is_guest(change) and change.destroys]
        others = [one for one in going if not {name_of(one), key_of(one.name)} & set(self.confirmed)]
        if others:
            names = ", ".join(sorted(describe(change) for change in others))
            raise GuardRefusedError(
                f"Nothing is removed: {names} would be destroyed too, and was not confirmed.", ()
            )

    async def _apply(self, run: Run, made: Plan) -> Removed:
        refused = tuple(
            finding
            for finding in made.verdict.refused
            if finding.permit is None or finding.permit.option != ALLOW_DESTROY
        )
        if refused:
            raise GuardRefusedError(f"{run.resolved.target} is not destroyed; nothing was changed.", refused)
        going = {
            change.address: name_of(change)
            for change in made.changes.planned
            if is_guest(change) and change.action is Action.DELETE
        }
        if made.is_nothing:
            return Removed()
        self._require_confirmed(made)
        gone: set[str] = set()

        def note_event(event: events.ResourceApplied) -> None:
            if event.phase is events.ApplyPhase.DONE and event.address in going:
                gone.add(going[event.address])

        try:
            await apply_plan(run, made, is_verified=False, on_resource=note_event)
        except StackyardError as err:
            return Removed(names=frozenset(gone), errors=(err,))
        return Removed(names=frozenset(going.values()))


def _targets(made: Plan, names: Collection[str]) -> tuple[str, ...] | None:
    """Return what to name to the engine; nothing where these guests are all that there are."""
    guests = [change for change in made.changes.planned if is_guest(change)]
    # What was made for a guest may be there without the guest itself.
    going = [change for change in guests if name_of(change) in names]
    if len(going) == len(guests):
        return None
    volumes = {volume for change in going for volume in data_files(change.before).values()}
    data = {address for name in names for address in data_addresses(name)}
    own = [
        change
        for change in made.changes.planned
        if change.address in data or (is_snippet(change) and volume_of(change) in volumes)
    ]
    return tuple(change.address for change in (*going, *own))


async def find_orphans(
    client: proxmox.Client, states: StateService, resolver: ConfigResolver, manifest: str
) -> tuple[str, ...]:
    """Return the guests that carry the tag of a manifest and are in no state of the site.

    Raises:
        ProxmoxError: The cluster does not answer.
    """
    tag = tag_of(manifest)
    rows = await client.get("/cluster/resources")
    tagged = [row for row in rows if row["type"] in ("qemu", "lxc") and tag in split_tags(row.get("tags"))]
    if not tagged:
        return ()
    nodes = {str(row["node"]) for row in rows if row["type"] == "node"}
    known = managed_guests(states, resolver, nodes, client.connection.endpoint)
    return tuple(
        f"{row.get('name') or 'a guest'} ({row['vmid']} on {row['node']})"
        for row in sorted(tagged, key=lambda row: int(row["vmid"]))
        if int(row["vmid"]) not in known
    )
