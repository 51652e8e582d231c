"""`stackyard manifest`: look at manifests, without running them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base.diagnostics import Diagnostics
from stackyard.base.errors import ExitStatus, UsageError
from stackyard.cli.command import group
from stackyard.cli.commands.site import show_warnings, site_option
from stackyard.cli.operator_options import manifest_options, place_options, request_of, says_manifest
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.operator.status import StatusView
    from stackyard.sources.manifest.model import Manifest
    from stackyard.sources.site.load import Site

__all__ = ["manifest"]

_FORMS = ("tree", "mermaid", "dot")
_WRITTEN_AS = ("nodes", "levels")


@group("manifest")
def manifest() -> None:
    """Inspect manifests: guests, and guests inside guests, that are created and destroyed together."""


@manifest.command("list")
@site_option
def list_manifests(said: str | None) -> Result:
    """Show the names of all manifests."""
    from stackyard.sources.site.discovery import find_site  # lazy: only when this verb runs
    from stackyard.sources.site.names import list_names  # lazy: as above

    names = list_names(find_site(said))["manifests"]

    def show(writer: TextWriter) -> None:
        for name in names:
            writer.line(name)

    return Result(document={"manifests": names}, show=show)


@manifest.command("validate")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--file", "file", metavar="FILE", help="A manifest that is not in the site.")
@site_option
def validate(names: tuple[str, ...], file: str | None, said: str | None) -> Result:
    """Check the named manifests, or all manifests: their files, and their references to the site.

    This checks types and ranges, unknown keys, duplicate names and VM IDs, parents that are missing or cannot
    contain guests, cycles, presets, images, specs and hosts that the site does not have, and nodes that are
    larger than their parent. It reports each problem with file, line and column.
    """
    from stackyard.sources.manifest.read import (  # lazy: pydantic, only when this verb runs
        ManifestRequest,
        find_manifest,
    )
    from stackyard.sources.site.load import Site  # lazy: as above
    from stackyard.sources.site.names import list_names  # lazy: as above

    site = Site.open(said)
    if file is not None:
        if names:
            raise UsageError("--file goes without names.")
        checked = [find_manifest(site, ManifestRequest(file=file))]
        return _valid(checked, Diagnostics())
    checked, found = _check_manifests(site, names or tuple(list_names(site.root)["manifests"]))
    found.raise_errors("The manifest" if len(names) == 1 else "The manifests")
    return _valid(checked, found)


def _check_manifests(site: Site, names: tuple[str, ...]) -> tuple[list[Manifest], Diagnostics]:
    from stackyard.sources.manifest.read import (  # lazy: pydantic
        ManifestNotFoundError,
        check_damaged,
        read_manifest,
    )

    found, checked = Diagnostics(), []
    for name in names:
        if name in site.broken["manifests"]:
            found.extend(one for one in site.found.errors if one.where and _is_of(one.where.path, name))
            check_damaged(site, name, found)
        elif name not in site.manifests:
            raise ManifestNotFoundError(f"There is no manifest '{name}' in {site.root}.")
        else:
            read = read_manifest(site, site.manifests[name], found)
            checked += [] if read is None else [read]
    return checked, found


def _is_of(path: str, name: str) -> bool:
    return Path(path).parts[-2:] == ("manifests", f"{name}.yaml")


def _valid(checked: list[Manifest], found: Diagnostics) -> Result:
    def show(writer: TextWriter) -> None:
        show_warnings(writer, found.warnings)
        for one in checked:
            writer.line(f"{one.name}: {len(one.nodes)} {'node' if len(one.nodes) == 1 else 'nodes'}, valid.")

    return Result(
        document={
            "manifests": [{"name": one.name, "nodes": len(one.nodes)} for one in checked],
            "warnings": [finding.document() for finding in found.warnings],
        },
        show=show,
    )


@manifest.command("graph")
@click.argument("name")
@click.option("--format", "form", type=click.Choice(_FORMS), default=_FORMS[0], help="The output format.")
@site_option
def graph(name: str, form: str, said: str | None) -> Result:
    """Draw a manifest: what runs inside what, and what waits for what.

    \b
    stackyard manifest graph n2-quick
    stackyard manifest graph n2-quick --format mermaid
    stackyard manifest graph n2-quick --format dot | dot -Tsvg > n2-quick.svg
    """  # noqa: D301 - click reads the control character
    from stackyard.sources.manifest import diagram  # lazy: pydantic, only when this verb runs

    drawn = _find_manifest(name, said)
    draw = {"tree": diagram.as_tree, "mermaid": diagram.as_mermaid, "dot": diagram.as_dot}[form]
    lines = draw(drawn)

    def show(writer: TextWriter) -> None:
        for line in lines:
            writer.line(line)

    return Result(document=_graph_document(drawn, lines), show=show)


def _find_manifest(name: str, said: str | None) -> Manifest:
    from stackyard.sources.manifest.read import (  # lazy: pydantic, only when a verb runs
        ManifestRequest,
        find_manifest,
    )
    from stackyard.sources.site.load import Site  # lazy: as above

    return find_manifest(Site.open(said), ManifestRequest(name=name))


def _graph_document(drawn: Manifest, lines: list[str]) -> dict[str, Any]:
    return {
        "name": drawn.name,
        "nodes": [
            {
                "name": node.name,
                "type": node.type.value,
                "parent": node.parent,
                "host": node.scope.host,
                "depth": drawn.depth(node.name),
                "depends_on": node.depends_on,
                "mode": node.mode,
            }
            for node in drawn.nodes
        ],
        "create_order": [node.name for node in drawn.create_order],
        "drawing": "\n".join(lines),
    }


@manifest.command("convert")
@click.argument("name")
@click.option(
    "--to",
    "form",
    type=click.Choice(_WRITTEN_AS),
    default=_WRITTEN_AS[0],
    show_default=True,
    help="Nodes with parents (version 2), or levels inside each other (version 1).",
)
@click.option("--out", metavar="FILE", help="The file to write (default: standard output).")
@site_option
def convert(name: str, form: str, out: str | None, said: str | None) -> Result:
    """Convert a manifest of levels (version 1) to one of nodes (version 2), or the other way round.

    Levels are guests inside each other, each with a preset or a template. If a manifest contains more than
    that, the command refuses it and lists everything that levels cannot express.
    """
    import yaml  # lazy: for this text alone

    from stackyard.base.files import replace_file  # lazy: only when this verb runs
    from stackyard.sources.manifest.linear import as_levels  # lazy: as above
    from stackyard.sources.manifest.read import (  # lazy: pydantic, only when this verb runs
        ManifestRequest,
        find_manifest,
    )
    from stackyard.sources.site.load import Site  # lazy: as above

    site = Site.open(said)
    found = find_manifest(site, ManifestRequest(name=name))
    document = as_levels(found, site) if form == "levels" else found.document()
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    if out is not None:
        replace_file(Path(out), text.encode())

    def show(writer: TextWriter) -> None:
        for line in [f"Written to {out}."] if out is not None else text.splitlines():
            writer.line(line)

    return Result(document={"manifest": document, "file": out}, show=show)


@manifest.command("status")
@click.argument("name", required=False)
@manifest_options
@place_options
@click.option("--detailed-exitcode", is_flag=True, help="Exit with status 2 if there is drift.")
@pass_session
def status(session: Session, /, **values: Any) -> Result:
    """Show the nodes of a manifest: IDs, addresses, the progress of the last run, and drift.

    \b
    stackyard manifest status n1-basic -H lab

    This changes nothing. It also lists orphans: guests with the tag of the manifest that are in no state.
    """  # noqa: D301 - click reads the control character
    if values["name"] is not None:
        if says_manifest(values):
            raise UsageError("A manifest is named twice: say it once.")
        values = {**values, "manifest": values["name"]}
    return session.run(_status(session, values))


async def _status(session: Session, values: dict[str, Any]) -> Result:
    from stackyard.operator.manifest_run import ManifestRun  # lazy: as above
    from stackyard.operator.outcome import Verb  # lazy: only when this verb runs
    from stackyard.operator.status import look  # lazy: as above
    from stackyard.sources.site import ConfigResolver  # lazy: as above

    request = request_of(values)
    resolver = ConfigResolver(request.site, emit=session.emit)
    view = await look(ManifestRun.of(Verb.CREATE, request, resolver), session.emit)
    is_reported = view.has_drift and values["detailed_exitcode"]
    return Result(
        document=view.as_json(),
        show=lambda writer: _show_status(writer, view),
        status=ExitStatus.CHANGES if is_reported else ExitStatus.DONE,
    )


def _show_status(writer: TextWriter, view: StatusView) -> None:
    rows = [
        (
            "  " * node.depth + node.name,
            node.type,
            node.host,
            "-" if node.vm_id is None else str(node.vm_id),
            node.address or "-",
            node.status,
            node.power or "-",
            "-" if node.drift is None else ", ".join(node.drift) or "none",
        )
        for node in view.nodes
    ]
    writer.table(("node", "type", "on", "vm id", "address", "status", "power", "drift"), rows)
    for host, record in view.runs.items():
        writer.line(f"Last run on {host}: {record.verb}, {record.state} ({record.started_at}).")
        if record.error:
            writer.line(f"  {record.error}", style="red")
    if view.is_busy:
        writer.line("A run is at work, so that nothing was compared.", style="yellow")
    if view.orphans:
        writer.line(f"In no state, and with the tag of {view.manifest}: {', '.join(view.orphans)}.")
