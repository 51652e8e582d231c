"""`stackyard site`: the site as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.diagnostics import Diagnostics, Kind, Severity
from stackyard.cli.command import group
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.base.diagnostics import Diagnostic
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.sources.site.load import Site

__all__ = ["ENTITIES", "KINDS", "show_warnings", "site", "site_option"]

# What a site has and which of its files have a schema: the names that `sources.site` has, which is not loaded
# to show a help.
KINDS = ("hosts", "nodes", "templates", "presets", "postures", "specs", "envs", "manifests", "hypervisors")
ENTITIES = (
    "site",
    "secrets",
    "host",
    "node",
    "template",
    "preset",
    "posture",
    "env",
    "spec",
    "manifest",
    "hypervisor",
    "hypervisor-node",
    "stack",
    "repository",
)

STATE_WITHOUT_INPUT = Kind(
    code="W-SITE-STATE-WITHOUT-INPUT",
    summary="A state has no input any more",
    remedy="Bring the file back under its old name; or `stackyard destroy TARGET`, which needs no file.",
    severity=Severity.WARNING,
)

site_option = click.option(
    "--site",
    "said",
    metavar="DIR",
    help="The folder of the site (default: search from the current folder upwards).",
)


@group("site")
def site() -> None:
    """Inspect the site: the folder of YAML files that describes what should exist.

    The site is the folder that --site, STACKYARD_SITE or HOMESTAK_SITE_CONFIG names. Otherwise it is the
    current folder or the nearest parent folder with a site.yaml, else `site-config` beside it, else a folder
    of a system-wide installation.
    """


@site.command("validate")
@site_option
def validate(said: str | None) -> Result:
    """Check every file of the site and the references between them; report all problems at once.

    This reports unknown and duplicate keys, wrong types, broken references, IDs and addresses that are used
    twice or do not fit, undeclared images and missing tokens, each with file, line and column.

    \b
    stackyard site validate
    stackyard site validate --json | jq '.error.diagnostics[].detail'
    """  # noqa: D301 - click reads the control character
    from stackyard.path.shared_objects import check_two_places  # lazy: pydantic, only for this verb
    from stackyard.sources.manifest.read import (  # lazy: pydantic, only for this verb
        check_damaged,
        read_manifest,
    )
    from stackyard.sources.site.load import Site  # lazy: as above
    from stackyard.sources.site.resolver import ConfigResolver  # lazy: as above

    checked = Site.open(said)
    found = Diagnostics()
    found.extend(checked.found)
    for manifest in checked.manifests.values():
        read_manifest(checked, manifest, found)
    for name in checked.damaged.get("manifests", ()):
        check_damaged(checked, name, found)
    check_two_places(ConfigResolver(checked), found)
    if checked.hypervisors or checked.damaged.get("hypervisors"):
        from stackyard.path.provider_rules import check_provider_rules  # lazy: the provider, where needed

        check_provider_rules(checked, found)
    found.raise_errors(f"The site {checked.root}")
    _add_states_without_input(checked, found)
    warnings = found.warnings
    return Result(
        document={
            "site": str(checked.root),
            "counts": _counts(checked),
            "warnings": [finding.document() for finding in warnings],
        },
        show=lambda writer: _show_valid(writer, checked, warnings),
    )


def _add_states_without_input(checked: Site, found: Diagnostics) -> None:
    """Report the states that hold something although the site no longer has their files."""
    import contextlib  # lazy: only when this verb runs

    from stackyard.path.registry import find_without_input  # lazy: as above
    from stackyard.state import StateService  # lazy: as above

    with contextlib.closing(checked.store.read()) as objects:
        states = StateService(objects)
        inputs = ("env", checked.envs), ("manifest", checked.manifests), ("hypervisor", checked.hypervisors)
        for kind, names in inputs:
            for record, count in find_without_input(states, kind, names):
                held = "1 resource" if count == 1 else f"{count} resources"
                found.add(
                    STATE_WITHOUT_INPUT,
                    f"The state {record.state} holds {held} of {record.target}, which is not in the site.",
                )


def _counts(checked: Site) -> dict[str, int]:
    from stackyard.sources.site.names import list_names  # lazy: only when a verb runs

    counts = {kind: len(names) for kind, names in list_names(checked.root).items()}
    code = sum(len(folder.files) for folder in checked.code.folders)
    counts["guests"] = sum(len(checked.guests(env)) for env in checked.envs)
    return {**counts, "code files": code} if code else counts


def _show_valid(writer: TextWriter, checked: Site, warnings: Sequence[Diagnostic]) -> None:
    show_warnings(writer, warnings)
    counts = ", ".join(_format_count(kind, count) for kind, count in _counts(checked).items() if count)
    writer.line(f"{checked.root} is valid: {counts or 'nothing in it yet'}.", style="green")


def _format_count(kind: str, count: int) -> str:
    return f"1 {kind.removesuffix('s')}" if count == 1 else f"{count} {kind}"


def show_warnings(writer: TextWriter, warnings: Sequence[Diagnostic]) -> None:
    """Write findings that stop nothing."""
    for finding in warnings:
        place = f"{finding.where}: " if finding.where is not None else ""
        writer.line(f"{place}{finding.kind.summary} [{finding.kind.code}]", style="yellow")
        for line in (finding.detail, finding.kind.remedy):
            writer.line(f"    {line}")


@site.command("schema")
@click.argument("entity", type=click.Choice(ENTITIES))
def schema(entity: str) -> Result:
    """Print the JSON Schema of a kind of file, for editors that check YAML while you type.

    \b
    stackyard site schema env > env.schema.json
    # yaml-language-server: $schema=env.schema.json
    """  # noqa: D301 - click reads the control character
    from stackyard.sources.site.schema import schema_of  # lazy: pydantic, only when this verb runs

    document = schema_of(entity)

    def show(writer: TextWriter) -> None:
        import orjson  # lazy: for this text alone

        for line in orjson.dumps(document, option=orjson.OPT_INDENT_2).decode().splitlines():
            writer.line(line)

    return Result(document=document, show=show)


@site.command("list")
@click.argument("kind", type=click.Choice(KINDS), required=False)
@site_option
def list_site(kind: str | None, said: str | None) -> Result:
    """Show the names of everything in the site, or of one KIND.

    This reads only the names of files, and also works in a site with errors.
    """
    from stackyard.sources.site.discovery import find_site  # lazy: only when this verb runs
    from stackyard.sources.site.names import list_names  # lazy: as above

    root = find_site(said)
    names = list_names(root)
    shown = names if kind is None else {kind: names[kind]}
    document: dict[str, Any] = {"site": str(root), **shown}

    def show(writer: TextWriter) -> None:
        if kind is not None:
            for name in shown[kind]:
                writer.line(name)
            return
        rows = [(each, name) for each, found in shown.items() for name in found]
        writer.table(("kind", "name"), rows)

    return Result(document=document, show=show)
