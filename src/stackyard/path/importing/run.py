"""The whole of an import: what is there, who is meant, what can be said of them, and taking them over."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.clients import proxmox
from stackyard.path.importing.cluster import list_cluster, translate
from stackyard.path.importing.env_file import EnvWriter
from stackyard.path.importing.foreseen import foresee
from stackyard.path.importing.handover import Released, hold_states, list_handovers
from stackyard.path.importing.managed import managed_guests
from stackyard.path.importing.nearby import describe_nearby, find_nearby
from stackyard.path.importing.selection import choose
from stackyard.path.importing.takeover import take
from stackyard.path.importing.trial import prove
from stackyard.state import StateService

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from stackyard.guard import Finding
    from stackyard.path.importing.cluster import ClusterListing
    from stackyard.path.importing.configuration import TranslatedGuest
    from stackyard.path.importing.env_file import EnvFileText
    from stackyard.path.importing.handover import Handover, StateHolder
    from stackyard.path.importing.nearby import NearbyState
    from stackyard.path.importing.selection import Filter
    from stackyard.path.run import RunSettings
    from stackyard.sources.site import ConfigResolver

__all__ = ["ImportRequest", "ImportResult", "import_guests"]

MANAGED_ELSEWHERE = Kind(
    code="E-IMPORT-MANAGED",
    summary="A guest is managed already",
    remedy="Leave it out; or remove it from that state first: `stackyard state forget STATE ADDRESS`.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """What to import, and where to.

    Attributes:
        env: The env that gets the guests; it is made where there is none of that name.
        host: The node of the target, where the env names none.
        filters: Which guests; all that nothing manages when there is none.
        left_alone: Keys of configurations that stay outside of everything.
        is_trial: Whether nothing at all is written.
        from_states: State files of other configurations, whose guests alone are imported, and leave them.
        folders: Where to look for state files that may have the same guests.
    """

    env: str
    host: str | None = None
    filters: tuple[Filter, ...] = ()
    left_alone: frozenset[str] = frozenset()
    is_trial: bool = False
    from_states: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """What an import did, or would do.

    Attributes:
        target: The target that has the guests now.
        state: The name of its state.
        written: The file of the env with the entries; None where there was nothing to do.
        guests: The guests that were imported.
        managed: The states that have other guests that were meant, by vm id.
        foreseen: What Proxmox would refuse if the guests were changed or started.
        released: The state files that the guests left, or would leave.
        nearby: Other states that have some of the guests, or may have them.
    """

    target: str
    state: str
    written: EnvFileText | None
    guests: tuple[TranslatedGuest, ...]
    managed: Mapping[int, str]
    foreseen: tuple[Finding, ...] = ()
    released: tuple[Released, ...] = ()
    nearby: tuple[NearbyState, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Survey:
    """What an import found on the cluster.

    Attributes:
        found: The guests to import.
        managed: The states of the site that have guests of the choice, by vm id.
        handovers: The state files that guests of the choice leave.
        nearby: Other states that have guests of the choice.
    """

    found: tuple[TranslatedGuest, ...]
    managed: Mapping[int, str]
    handovers: tuple[Handover, ...]
    nearby: tuple[NearbyState, ...]


async def import_guests(
    resolver: ConfigResolver,
    wanted: ImportRequest,
    settings: RunSettings,
    *,
    emit: events.Emit = events.ignore,
) -> ImportResult:
    """Write entries and a state for guests that are there, so that the plan for them is empty.

    Args:
        resolver: The site.
        wanted: What to import.
        settings: How to run.
        emit: Takes the events.

    Raises:
        InvalidInputError: A filter means nobody, a guest is managed already, or something of it cannot be
            expressed; with everything of that kind at once, and nothing is written.
        ImportDiffersError: The plan is not empty; everything is as it was.
        StackyardError: The engine, the state or the cluster cannot be used.
    """
    writer = EnvWriter.of(resolver, wanted.env, wanted.host)
    with events.step(emit, "survey", "Looking at the cluster"):
        survey = await _survey(resolver, writer, wanted, settings)
    host = "" if wanted.host is None else f" -H {wanted.host}"
    _warn(survey.nearby, f"env:{wanted.env}{host}", emit)
    written = writer.write(survey.found) if survey.found else None
    foreseen: tuple[Finding, ...] = ()
    proven = None
    if written is not None:
        foreseen = await foresee(written.resolved, written.guests)
        proven = await prove(written.resolved, settings, written.guests, emit=emit)
    released = tuple(Released(handover=one, serial=one.state.serial + 1) for one in survey.handovers)
    if not wanted.is_trial:
        with hold_states(survey.handovers) as holder:
            if written is not None and proven is not None:
                await take(written.resolved, settings, written.text, proven, emit=emit)
            released = _release(survey.handovers, holder, emit)
    return ImportResult(
        target=f"env:{wanted.env}",
        state=writer.state_name,
        written=written,
        guests=survey.found,
        managed=survey.managed,
        foreseen=foreseen,
        released=released,
        nearby=survey.nearby,
    )


async def _survey(
    resolver: ConfigResolver, writer: EnvWriter, wanted: ImportRequest, settings: RunSettings
) -> _Survey:
    """Look at the cluster, at the states of the site, and at other state files."""
    connection = writer.resolved.connection
    async with proxmox.Client(connection) as client:
        listed = await list_cluster(client)
        handovers = list_handovers(wanted.from_states, listed)
        chosen = choose(listed.guests, wanted.filters)
        if wanted.from_states:
            leaving = frozenset[int]().union(*(one.vm_ids for one in handovers))
            chosen = [row for row in chosen if int(row["vmid"]) in leaving]
        managed = _list_managed(resolver, settings, listed, connection.endpoint)
        free = _list_unmanaged(chosen, managed, wanted, writer.state_name)
        found = await translate(client, listed, free, wanted.left_alone)
    ids = frozenset(int(row["vmid"]) for row in chosen)
    kept = (one.only(ids) for one in handovers)
    return _Survey(
        found=tuple(found),
        managed={vm_id: state for vm_id, state in managed.items() if vm_id in ids},
        handovers=tuple(one for one in kept if one.guests),
        nearby=() if wanted.from_states else find_nearby(wanted.folders, chosen, listed),
    )


def _warn(nearby: Sequence[NearbyState], target: str, emit: events.Emit) -> None:
    for state in nearby:
        text = describe_nearby(state, target)
        emit(events.LogLine(level=events.LogLevel.WARNING, source="import", text=text))


def _release(handovers: Sequence[Handover], holder: StateHolder, emit: events.Emit) -> tuple[Released, ...]:
    if not handovers:
        return ()
    count = sum(len(one.guests) for one in handovers)
    names = ", ".join(one.state.path.name for one in handovers)
    title = f"Removing {'1 guest' if count == 1 else f'{count} guests'} from {names}"
    with events.step(emit, "release", title):
        return tuple(holder.release(one) for one in handovers)


def _list_managed(
    resolver: ConfigResolver, settings: RunSettings, listed: ClusterListing, endpoint: str
) -> Mapping[int, str]:
    with contextlib.closing(settings.store.open()) as objects:
        return managed_guests(StateService(objects), resolver, listed.nodes, endpoint)


def _list_unmanaged(
    chosen: Sequence[Mapping[str, Any]], managed: Mapping[int, str], wanted: ImportRequest, own: str
) -> list[Mapping[str, Any]]:
    """Return the guests that no state has.

    Raises:
        InvalidInputError: Guests that were named, or all that were meant, are in other states.
    """
    free = [row for row in chosen if int(row["vmid"]) not in managed]
    elsewhere = [row for row in chosen if managed.get(int(row["vmid"]), own) != own]
    # A guest of a state file that is named is meant like one that is named itself.
    is_named = bool(wanted.filters or wanted.from_states)
    if (len(elsewhere) < len(chosen) or not is_named) and not wanted.from_states:
        elsewhere = [row for row in elsewhere if any(one.names(row) for one in wanted.filters)]
    found = Diagnostics()
    for row in elsewhere:
        state = managed[int(row["vmid"])]
        found.add(
            MANAGED_ELSEWHERE, f"{row.get('name')} ({row['vmid']} on {row['node']}) is in the state {state}."
        )
    found.raise_errors("The choice of guests")
    return free
