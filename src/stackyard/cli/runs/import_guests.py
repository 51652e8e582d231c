"""The run of `stackyard import`, and what a human and a program see of it."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import UsageError
from stackyard.cli.result import Result
from stackyard.cli.runs.plan_options import settings_of
from stackyard.cli.unstored import warn_of_unstored_states
from stackyard.cli.views.changes import describe_finding
from stackyard.desired import Container
from stackyard.path.environment import EnvironmentSource
from stackyard.path.importing.handover import removed_blocks
from stackyard.path.importing.run import ImportRequest, import_guests
from stackyard.path.importing.selection import parse_filter
from stackyard.path.recording import RunSubject, recorded
from stackyard.path.target import Target, find_target

if TYPE_CHECKING:
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.path.importing.configuration import TranslatedGuest
    from stackyard.path.importing.handover import Released
    from stackyard.path.importing.other_states import OtherGuest
    from stackyard.path.importing.run import ImportResult

__all__ = ["list_changed_lines", "run_import"]


async def run_import(session: Session, values: dict[str, Any]) -> Result:
    """Import the guests that the options name."""
    if values["everything"]:
        raise UsageError("`--all` is for a hypervisor: `stackyard import hypervisor:NAME --all`.")
    source = EnvironmentSource.find(values["site"], emit=session.emit)
    nodes = [f"node={_node(node, source)}" for given in values["nodes"] for node in _words(given)]
    texts = [*([",".join(nodes)] if nodes else []), *values["filters"]]
    wanted = ImportRequest(
        env=_env(values["target"], source),
        host=values["host"],
        filters=tuple(parse_filter(text) for text in texts),
        left_alone=frozenset(key for given in values["leave"] for key in _words(given)),
        is_trial=values["dry_run"],
        from_states=tuple(map(Path, values["from_states"])),
        folders=(Path(), source.resolver.site.root),
    )
    warn_of_unstored_states(source.store.base, session)
    settings = settings_of(values, source.store)
    subject = RunSubject(
        verb="import",
        target=f"{source.kind}:{wanted.env}",
        state=Target(kind=source.kind, name=wanted.env, node=wanted.host or "cluster").state_name,
        store=source.store,
        redactor=source.resolver.site.redactor(),
        source=source.resolver.site.root,
    )
    async with recorded(subject, session.emit) as recording:
        done = await import_guests(source.resolver, wanted, settings, emit=recording.emit)
    return Result(document=_document(done, wanted), show=lambda writer: _show(writer, done, wanted))


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _node(name: str, source: EnvironmentSource) -> str:
    """Return what Proxmox calls a node that the user may call by its file."""
    known = source.resolver.site.nodes.get(name)
    return name if known is None else known.model.node or name


def _env(target: str, source: EnvironmentSource) -> str:
    """Return the env that is meant, which need not be there yet when its kind is said.

    Raises:
        UsageError: It is none.
    """
    kind, colon, name = target.partition(":")
    if colon and kind == source.kind and name:
        return name
    if colon:
        raise UsageError("Guests are imported into an env: say `env:NAME`. A cluster: `hypervisor:NAME`.")
    return find_target(target, {source.kind: source})[1]


def _document(done: ImportResult, wanted: ImportRequest) -> dict[str, Any]:
    written = done.written
    return {
        "target": done.target,
        "state": done.state,
        "dry_run": wanted.is_trial,
        "file": None if written is None else str(written.text.path),
        "imported": [
            {
                "name": one.name,
                "vm_id": one.vm_id,
                "type": _type(one),
                "node": one.node,
                "notes": list(one.notes),
                "entry": None if written is None else written.entries.get(one.vm_id),
            }
            for one in done.guests
        ],
        "foreseen": [describe_finding(finding) for finding in done.foreseen],
        "managed": [{"vm_id": vm_id, "state": state} for vm_id, state in sorted(done.managed.items())],
        "from_states": [_released_document(one) for one in done.released],
        "nearby_states": [
            {
                "file": str(one.path),
                "backend": one.backend or None,
                "guests": [_other_document(guest) for guest in one.guests],
            }
            for one in done.nearby
        ],
    }


def _released_document(one: Released) -> dict[str, Any]:
    return {
        "file": str(one.handover.state.path),
        "serial": one.serial,
        "backup": None if one.backup is None else str(one.backup),
        "removed": [_other_document(guest) for guest in one.handover.guests],
    }


def _other_document(guest: OtherGuest) -> dict[str, Any]:
    return {"address": guest.address, "name": guest.name, "vm_id": guest.vm_id, "node": guest.node}


def _type(one: TranslatedGuest) -> str:
    return "ct" if isinstance(one.guest, Container) else "vm"


def _show(writer: TextWriter, done: ImportResult, wanted: ImportRequest) -> None:
    written = done.written
    if written is None:
        writer.line("There is nothing to import: every guest that is meant is managed already.")
    else:
        if wanted.is_trial:
            for line in list_changed_lines(written.text.before or "", written.text.after):
                writer.line(line)
        rows = [(one.name, str(one.vm_id), _type(one), one.node) for one in done.guests]
        writer.table(("guest", "vm id", "type", "node"), rows)
        for one in done.guests:
            for note in one.notes:
                writer.line(f"{one.name} {note}.", style="yellow")
        for finding in done.foreseen:
            place = "" if finding.where is None else f"{finding.where}: "
            writer.line(f"An apply would meet this: {place}{finding.detail}", style="yellow")
        verb = "Would import" if wanted.is_trial else "Imported"
        guests = "1 guest" if len(done.guests) == 1 else f"{len(done.guests)} guests"
        writer.line(f"{verb} {guests} into {done.target}; the plan for them is empty.", style="green")
    for released in done.released:
        _show_released(writer, released)
    others = sum(state != done.state for state in done.managed.values())
    if others:
        writer.line(f"Left out, because other states have them: {others}.")


def _show_released(writer: TextWriter, released: Released) -> None:
    handover, backup = released.handover, released.backup
    writer.line()
    if backup is None:
        writer.line(f"Would remove from {handover.state.path}:")
    else:
        writer.line(f"Removed from {handover.state.path} (the state before: {backup.name}):")
    for guest in handover.guests:
        writer.line(f"  {guest.address}  ({guest.name or guest.kind} {guest.vm_id} on {guest.node})")
    if backup is not None:
        writer.line("Delete these resource blocks there: the next plan would create the guests again.")
        return
    writer.line("Or, where its state is in a backend, apply this there in place of the resource blocks:")
    for line in removed_blocks(handover):
        writer.line(f"  {line}")


def list_changed_lines(before: str, after: str) -> list[str]:
    """Return what a text gains and loses, with a few lines around."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]
