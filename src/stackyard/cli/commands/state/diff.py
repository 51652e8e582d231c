"""`stackyard state diff`: what changed between two versions of a state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import ExitStatus, FileError, UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.state.store import StoreChoice, open_service, store_options
from stackyard.cli.commands.state.words import brief, plain
from stackyard.cli.completions import complete_states
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.state import StateService
    from stackyard.state.difference import StateDifference

__all__ = ["diff", "difference_document", "show_difference"]

_STYLES = {"added": ("+", "green"), "changed": ("~", "yellow"), "removed": ("-", "red")}


@click.command("diff", cls=Command)
@click.argument("name", shell_complete=complete_states)
@click.argument("before", required=False, metavar="[VERSION|FILE]")
@click.argument("after", required=False, metavar="[VERSION|FILE]")
@click.option("--detailed-exitcode", is_flag=True, help="Exit with status 2 if there are differences.")
@store_options
def diff(
    name: str, before: str | None, after: str | None, detailed_exitcode: bool, choice: StoreChoice
) -> Result:
    """Show the resources, attributes and outputs that differ between two versions.

    Without versions, this compares the current version with the one before it. With one version, it compares
    that version with the current one. A path that contains a slash or a dot is a state file. Secret values
    are compared but never shown.

    \b
    stackyard state diff env/dev/pve1                     what the last write changed
    stackyard state diff env/dev/pve1 12                  since version 12
    stackyard state diff env/dev/pve1 12 15               between these two
    stackyard state diff env/dev/pve1 errored.tfstate     between a file and the current version
    """  # noqa: D301 - click reads the control character
    from stackyard.state.difference import compare_states  # lazy: only when this verb runs

    with open_service(choice) as service:
        old_label, old = _content(service, name, before or _previous(service, name))
        new_label, new = _content(service, name, after)
    found = compare_states(old, new)
    is_changed = detailed_exitcode and not found.is_empty
    return Result(
        document={"name": name, "before": old_label, "after": new_label, **difference_document(found)},
        show=lambda writer: show_difference(writer, found, f"{name}: {old_label} -> {new_label}"),
        status=ExitStatus.CHANGES if is_changed else ExitStatus.DONE,
    )


def _previous(service: StateService, name: str) -> str:
    from stackyard.state import VersionMissingError  # lazy: only when this verb runs

    current = service.head(name).current
    if current is None or current.number == 1:
        raise VersionMissingError(f"{name} has no version before the current one.")
    return str(current.number - 1)


def _content(service: StateService, name: str, which: str | None) -> tuple[str, bytes]:
    """Return what to call a content, and the content."""
    from stackyard.state import VersionMissingError  # lazy: only when this verb runs

    if which is not None and not which.isdecimal():
        if "." not in which and "/" not in which:
            raise UsageError(f"{which!r} is neither the number of a version nor the path of a file.")
        try:
            return which, Path(which).read_bytes()
        except OSError as err:
            raise FileError.from_os_error(err, "read", which) from err
    current = service.head(name).current
    if current is None:
        raise VersionMissingError(f"Nothing was written to {name} yet.")
    version = current if which is None else service.versions.get(name, int(which))
    return f"version {version.number}", service.versions.read(name, version)


def difference_document(found: StateDifference) -> dict[str, Any]:
    """Return the JSON view of what differs between two states."""
    return {
        "has_changes": not found.is_empty,
        "is_other_lineage": found.is_other_lineage,
        "resources": [
            {
                "address": change.address,
                "type": change.type,
                "change": change.kind.value,
                "notes": list(change.notes),
                "attributes": [
                    {"name": one.name, "before": plain(one.before), "after": plain(one.after)}
                    for one in change.attributes
                ],
            }
            for change in found.resources
        ],
        "outputs": [
            {
                "name": change.name,
                "change": change.kind.value,
                "before": plain(change.before),
                "after": plain(change.after),
            }
            for change in found.outputs
        ],
    }


def show_difference(writer: TextWriter, found: StateDifference, heading: str) -> None:
    """Write what differs between two states."""
    from stackyard.state.difference import StateChangeKind  # lazy: only when this verb runs

    writer.line(heading)
    if found.is_other_lineage:
        writer.line("These are contents of two different states: their lineages differ.", style="yellow")
    if found.is_empty:
        writer.line("No difference.")
        return
    for change in found.resources:
        sign, style = _STYLES[change.kind]
        writer.line(f"{sign} {change.address}", style=style)
        for note in change.notes:
            writer.line(f"    {note}")
        # Of what came or went, the address says enough.
        for one in change.attributes if change.kind is StateChangeKind.CHANGED else ():
            writer.line(f"    {one.name}: {brief(one.before)} -> {brief(one.after)}")
    for output in found.outputs:
        sign, style = _STYLES[output.kind]
        writer.line(
            f"{sign} output {output.name}: {brief(output.before)} -> {brief(output.after)}", style=style
        )
    counts = (f"{found.count(kind)} {kind.value}" for kind in StateChangeKind)
    writer.line(f"Resources: {', '.join(counts)}.")
