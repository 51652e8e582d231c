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
from stackyard.path.importing.managed import managed_guests
from stackyard.path.importing.selection import choose
from stackyard.path.importing.takeover import take
from stackyard.path.importing.trial import prove
from stackyard.state import StateService

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.guard import Finding
    from stackyard.path.importing.cluster import ClusterListing
    from stackyard.path.importing.configuration import TranslatedGuest
    from stackyard.path.importing.env_file import EnvFileText
    from stackyard.path.importing.selection import Filter
    from stackyard.path.run import RunSettings
    from stackyard.sources.site import ConfigResolver

__all__ = ["ImportRequest", "ImportResult", "import_guests"]

MANAGED_ELSEWHERE = Kind(
    code="E-IMPORT-MANAGED",
    summary="A guest is managed already",
    remedy="Leave it out; or take it out of the state that has it first.",
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
    """

    env: str
    host: str | None = None
    filters: tuple[Filter, ...] = ()
    left_alone: frozenset[str] = frozenset()
    is_trial: bool = False


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
    """

    target: str
    state: str
    written: EnvFileText | None
    guests: tuple[TranslatedGuest, ...]
    managed: Mapping[int, str]
    foreseen: tuple[Finding, ...] = ()


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
    connection = writer.resolved.connection
    async with proxmox.Client(connection) as client:
        with events.step(emit, "survey", "Looking at the cluster"):
            listed = await list_cluster(client)
            chosen = choose(listed.guests, wanted.filters)
            managed = _list_managed(resolver, settings, listed, connection.endpoint)
            free = _list_unmanaged(chosen, managed, wanted.filters, writer.state_name)
            found = await translate(client, listed, free, wanted.left_alone)
    known = {int(row["vmid"]): managed[int(row["vmid"])] for row in chosen if int(row["vmid"]) in managed}
    written = writer.write(found) if found else None
    foreseen: tuple[Finding, ...] = ()
    if written is not None:
        foreseen = await foresee(written.resolved, written.guests)
        proven = await prove(written.resolved, settings, written.guests, emit=emit)
        if not wanted.is_trial:
            await take(written.resolved, settings, written.text, proven, emit=emit)
    return ImportResult(
        target=f"env:{wanted.env}",
        state=writer.state_name,
        written=written,
        guests=tuple(found),
        managed=known,
        foreseen=foreseen,
    )


def _list_managed(
    resolver: ConfigResolver, settings: RunSettings, listed: ClusterListing, endpoint: str
) -> Mapping[int, str]:
    with contextlib.closing(settings.store.open()) as objects:
        return managed_guests(StateService(objects), resolver, listed.nodes, endpoint)


def _list_unmanaged(
    chosen: Sequence[Mapping[str, Any]], managed: Mapping[int, str], filters: Sequence[Filter], own: str
) -> list[Mapping[str, Any]]:
    """Return the guests that no state has.

    Raises:
        InvalidInputError: Guests that were named, or all that were meant, are in other states.
    """
    free = [row for row in chosen if int(row["vmid"]) not in managed]
    elsewhere = [row for row in chosen if managed.get(int(row["vmid"]), own) != own]
    if len(elsewhere) < len(chosen):
        elsewhere = [row for row in elsewhere if any(one.names(row) for one in filters)]
    found = Diagnostics()
    for row in elsewhere:
        state = managed[int(row["vmid"])]
        found.add(
            MANAGED_ELSEWHERE, f"{row.get('name')} ({row['vmid']} on {row['node']}) is in the state {state}."
        )
    found.raise_errors("The choice of guests")
    return free
