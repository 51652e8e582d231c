"""The run of `stackyard import hypervisor:NAME`, and what a human and a program see of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import UsageError
from stackyard.cli.result import Result
from stackyard.cli.runs.import_guests import list_changed_lines
from stackyard.cli.runs.plan_options import settings_of
from stackyard.cli.unstored import warn_of_unstored_states
from stackyard.clients import proxmox
from stackyard.path.environment import EnvironmentSource, resolve_by_state
from stackyard.path.importing.hypervisor.file import HypervisorWriter
from stackyard.path.importing.hypervisor.run import HypervisorImport, import_hypervisor
from stackyard.path.recording import RunSubject, recorded
from stackyard.path.target import Target
from stackyard.sources.site.hypervisor_owners import find_node_name

if TYPE_CHECKING:
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.path.importing.hypervisor.run import HypervisorImportResult

__all__ = ["run_import_hypervisor"]


async def run_import_hypervisor(session: Session, values: dict[str, Any]) -> Result:
    """Import the cluster or nodes that the options name."""
    _refuse_options_of_guests(values)
    source = EnvironmentSource.find(values["site"], emit=session.emit)
    warn_of_unstored_states(source.store.base, session)
    settings = settings_of(values, source.store)
    done: list[HypervisorImportResult] = []
    for wanted in await _list_wanted(source, values):
        # What one of them wrote is there for the next.
        fresh = EnvironmentSource.find(values["site"], emit=session.emit) if done else source
        subject = RunSubject(
            verb="import",
            target=f"hypervisor:{wanted.name}",
            state=Target(kind="hypervisor", name=wanted.name, node=wanted.name).state_name,
            store=source.store,
            redactor=source.resolver.site.redactor(),
            source=source.resolver.site.root,
        )
        async with recorded(subject, session.emit) as recording:
            done.append(await import_hypervisor(fresh.resolver, wanted, settings, emit=recording.emit))
    is_trial = bool(values["dry_run"])
    document = {"dry_run": is_trial, "targets": [_document(one) for one in done]}
    return Result(document=document, show=lambda writer: _show(writer, done, is_trial=is_trial))


def _refuse_options_of_guests(values: dict[str, Any]) -> None:
    for option, name in (("--filter", "filters"), ("--from-state", "from_states")):
        if values[name]:
            raise UsageError(f"`{option}` is for guests; a hypervisor is imported whole, but for --leave.")
    if len(_words(values["nodes"])) > 1 or (values["nodes"] and values["everything"]):
        raise UsageError("A file of hypervisors/ is of one node: name one with --node, or all with --all.")


def _words(given: tuple[str, ...]) -> list[str]:
    return [word.strip() for text in given for word in text.split(",") if word.strip()]


async def _list_wanted(source: EnvironmentSource, values: dict[str, Any]) -> list[HypervisorImport]:
    """Return what to import: one file, or those of a cluster and all of its nodes.

    Raises:
        UsageError: The cluster has the name of one of its nodes.
    """
    name = values["target"].partition(":")[2]
    resolver = source.resolver
    nodes = [_proxmox_name(source, node) for node in _words(values["nodes"])]
    first = HypervisorImport(
        name=name,
        node=nodes[0] if nodes else None,
        host=values["host"],
        left_alone=frozenset(_words(values["leave"])),
        is_trial=values["dry_run"],
    )
    if not values["everything"]:
        return [first]
    writer = HypervisorWriter.of(resolver, name, None, values["host"])
    if writer.node is not None:
        raise UsageError(f"`--all` needs the name of a cluster; hypervisors/{name}.yaml is {writer.node}'s.")
    resolved = resolve_by_state(resolver, "hypervisor", name, writer.host)
    async with proxmox.Client(resolved.connection) as client:
        rows = await client.get("/nodes")
    found = sorted(str(row["node"]) for row in rows if row.get("status") == "online")
    if name in found:
        raise UsageError(f"A node is called {name}; give the cluster another name: `hypervisor:NAME --all`.")
    return [first, *(replace(first, name=_file_of(source, node), node=node) for node in found)]


def _file_of(source: EnvironmentSource, node: str) -> str:
    """Return the file that a node has already, or the one that is made for it."""
    site = source.resolver.site
    return next((name for name, file in site.hypervisors.items() if find_node_name(site, file) == node), node)


def _proxmox_name(source: EnvironmentSource, name: str) -> str:
    """Return what Proxmox calls a node that the user may call by its file."""
    known = source.resolver.site.nodes.get(name)
    return name if known is None else known.model.node or name


def _document(done: HypervisorImportResult) -> dict[str, Any]:
    written = done.written
    return {
        "target": done.target,
        "state": done.state,
        "file": None if written is None else str(written.text.path),
        "imported": [
            {
                "object": one.label,
                "address": None if written is None else written.addresses[one.identity],
                "id": one.import_id,
                "entry": dict(one.entry),
            }
            for one in done.objects
        ],
        "left_out": [
            {"object": one.label, "reason": one.reason, "secrets": list(one.secrets)} for one in done.left_out
        ],
        "managed": [{"object": label, "state": state} for label, state in sorted(done.managed.items())],
    }


def _show(writer: TextWriter, done: list[HypervisorImportResult], *, is_trial: bool) -> None:
    for one in done:
        _show_one(writer, one, is_trial=is_trial)
    secrets = sorted({name for one in done for left in one.left_out for name in left.secrets})
    if secrets:
        writer.line()
        writer.line("Put these into secrets.yaml (`stackyard secrets edit`) and import again:")
        for name in secrets:
            writer.line(f"  {name}")


def _show_one(writer: TextWriter, done: HypervisorImportResult, *, is_trial: bool) -> None:
    written = done.written
    if written is None:
        writer.line(f"There is nothing to import into {done.target}: everything is managed already.")
    else:
        if is_trial:
            for line in list_changed_lines(written.text.before or "", written.text.after):
                writer.line(line)
        counts = Counter(one.section.name for one in done.objects)
        writer.table(("section", "objects"), [(name, str(count)) for name, count in counts.items()])
        verb = "Would import" if is_trial else "Imported"
        objects = "1 object" if len(done.objects) == 1 else f"{len(done.objects)} objects"
        writer.line(f"{verb} {objects} into {done.target}; the plan for them is empty.", style="green")
    for left in done.left_out:
        writer.line(f"Left out: {left.label}. {left.reason}", style="yellow")
    if done.managed:
        writer.line(f"Left out, because other states have them: {', '.join(sorted(done.managed))}.")
