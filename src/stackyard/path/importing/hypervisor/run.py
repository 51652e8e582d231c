"""The whole of an import of a cluster or a node: what is there, the file, the proof, and the state."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stackyard import bpg_schema
from stackyard.base import events
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.desired import Desired
from stackyard.path.environment import resolve_on
from stackyard.path.importing.hypervisor.file import HypervisorWriter
from stackyard.path.importing.hypervisor.survey import LeftOut, survey_objects
from stackyard.path.importing.hypervisor.tokens import list_left_tokens
from stackyard.path.importing.hypervisor.trial import prove_objects
from stackyard.path.importing.managed import is_elsewhere
from stackyard.path.importing.takeover import take
from stackyard.path.importing.trial import ImportDiffersError, describe_differences
from stackyard.path.target import Target
from stackyard.render.networks import APPLIER
from stackyard.render.objects import address_of_object
from stackyard.state import StateService
from stackyard.state.managed import read_managed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.path.importing.hypervisor.file import WrittenFile
    from stackyard.path.importing.hypervisor.survey import FoundObject
    from stackyard.path.importing.trial import ProvenState
    from stackyard.path.run import RunSettings
    from stackyard.path.target import Resolved
    from stackyard.sources.site import ConfigResolver

__all__ = ["HypervisorImport", "HypervisorImportResult", "import_hypervisor"]

# What tells an object from all others of a cluster: its kind, the node that it is on, and its id.
_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class HypervisorImport:
    """What to import, and where to.

    Attributes:
        name: The file of `hypervisors/`; it is made where there is none of that name.
        node: What Proxmox calls the node; None for a cluster, and where the file says it.
        host: The node whose API is used, by its file.
        left_alone: Sections and objects that stay outside of everything.
        is_trial: Whether nothing at all is written.
    """

    name: str
    node: str | None = None
    host: str | None = None
    left_alone: frozenset[str] = frozenset()
    is_trial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HypervisorImportResult:
    """What an import did, or would do.

    Attributes:
        target: The target that has the objects now.
        state: The name of its state.
        written: The file; None where there was nothing to do.
        objects: What was imported.
        left_out: What cannot be written into the file, and why not.
        managed: The states that have other objects, by what the user calls them.
    """

    target: str
    state: str
    written: WrittenFile | None
    objects: tuple[FoundObject, ...]
    left_out: tuple[LeftOut, ...]
    managed: Mapping[str, str]


async def import_hypervisor(
    resolver: ConfigResolver,
    wanted: HypervisorImport,
    settings: RunSettings,
    *,
    emit: events.Emit = events.ignore,
) -> HypervisorImportResult:
    """Write entries and a state for the objects of a cluster or a node, so that their plan is empty.

    Args:
        resolver: The site.
        wanted: What to import.
        settings: How to run.
        emit: Takes the events.

    Raises:
        UsageError: The file is one of something else.
        ImportDiffersError: The plan is not empty; everything is as it was.
        StackyardError: The engine, the state or the cluster cannot be used.
    """
    writer = HypervisorWriter.of(resolver, wanted.name, wanted.node, wanted.host)
    target = Target(kind="hypervisor", name=writer.name, node=writer.name)
    around = resolve_on(resolver, target, Desired(), node=writer.host)
    with events.step(emit, "survey", f"Looking at {writer.node or 'the cluster'}"):
        survey = await survey_objects(
            around.connection, writer.node, frozenset(resolver.secrets()), wanted.left_alone
        )
        tokens = await list_left_tokens(around.connection, writer, wanted.left_alone)
        held = _read_held(resolver, settings, around, survey.nodes)
    managed = {
        one.label: held.elsewhere[key] for one in survey.objects if (key := _key(one)) in held.elsewhere
    }
    free = [one for one in survey.objects if one.label not in managed]
    chosen = await _choose(writer, free, held, settings, emit)
    if chosen.proven is not None and not wanted.is_trial:
        await take(chosen.written.resolved, settings, chosen.written.text, chosen.proven, emit=emit)
    return HypervisorImportResult(
        target=str(target),
        state=target.state_name,
        written=chosen.written if chosen.objects else None,
        objects=chosen.objects,
        left_out=(*survey.left_out, *tokens, *chosen.left_out),
        managed=managed,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """The objects to import: the file with them, the proof, and what had to be left out."""

    objects: tuple[FoundObject, ...]
    written: WrittenFile
    proven: ProvenState | None
    left_out: tuple[LeftOut, ...]


async def _choose(
    writer: HypervisorWriter,
    free: Sequence[FoundObject],
    held: _Held,
    settings: RunSettings,
    emit: events.Emit,
) -> _Chosen:
    """Prove that the plan for objects is empty; one that no entry can describe is left out of the file."""
    left_out: list[LeftOut] = []
    while True:
        written = writer.write(free)
        objects = _list_new(free, written, held)
        import_ids = {written.addresses[one.identity]: one.import_id for one in objects}
        trial = _only(written.resolved, import_ids)
        try:
            proven = await prove_objects(trial, settings, import_ids, emit=emit) if objects else None
        except ImportDiffersError as err:
            # What applies changes of the SDN only does so because of others.
            changes = [change for change in err.changes if change.kind != APPLIER]
            differing = {one.address: " ".join(describe_differences(one)) for one in changes}
            new = {written.addresses[one.identity]: one for one in written.new}
            if not differing or not differing.keys() <= new.keys():
                # An entry of the user's is not for us to remove.
                raise
            left_out += [LeftOut(label=new[one].label, reason=reason) for one, reason in differing.items()]
            free = [one for one in free if written.addresses.get(one.identity) not in differing]
        else:
            return _Chosen(
                objects=objects, written=written, proven=proven, left_out=(*left_out, *written.misfits)
            )


def _list_new(free: Sequence[FoundObject], written: WrittenFile, held: _Held) -> tuple[FoundObject, ...]:
    """Return the objects that the state does not have, or whose entries are new."""
    misfits = {one.label for one in written.misfits}
    return tuple(
        one
        for one in free
        if one.label not in misfits
        and (one in written.new or written.addresses[one.identity] not in held.own)
    )


def _only(resolved: Resolved, addresses: Mapping[str, str]) -> Resolved:
    """Return a target with some of its objects alone."""
    kept = [one for one in resolved.desired.objects if address_of_object(one.key) in addresses]
    keys = {one.key for one in kept}
    alone = (one.model_copy(update={"after": tuple(key for key in one.after if key in keys)}) for one in kept)
    return replace(resolved, desired=Desired(objects=tuple(alone)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """What states have: the addresses in that of the target, and the states that have other objects."""

    own: frozenset[str]
    elsewhere: Mapping[_Key, str]


def _read_held(
    resolver: ConfigResolver, settings: RunSettings, around: Resolved, nodes: frozenset[str]
) -> _Held:
    name = around.target.state_name
    with contextlib.closing(settings.store.open()) as objects:
        states = StateService(objects)
        content = states.contents.read(name)
        rows = [] if content is None else parse_json(content.body.data, LARGE).get("resources", ())
        managed = read_managed(states, but=(name,))
    kinds = bpg_schema.load_index().resources
    elsewhere = {
        (kinds[type_].kind, node, id_): state
        for state, held in managed.holdings.items()
        if not is_elsewhere(_with_node(state, resolver), resolver, nodes, around.connection.endpoint)
        for type_, node, id_ in held
        if type_ in kinds
    }
    return _Held(own=frozenset(_list_addresses(rows)), elsewhere=elsewhere)


def _list_addresses(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [f"{row['type']}.{row['name']}" for row in rows if row.get("mode") == "managed"]


def _with_node(state: str, resolver: ConfigResolver) -> str:
    """Return the name of a state with the node whose API it is for, in place of a file of `hypervisors/`."""
    kind, _, rest = state.partition("/")
    file = resolver.site.hypervisors.get(rest.rpartition("/")[2]) if kind == "hypervisor" else None
    if file is None:
        return state
    said = getattr(file.model, "api", None) or getattr(file.model, "node", None)
    return f"{kind}/{resolver.find_node(said) or said or ''}"


def _key(one: FoundObject) -> _Key:
    return one.kind, one.node, one.id
