"""`stackyard preflight`: whether a host is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.site import site_option
from stackyard.cli.completions import complete_hosts, complete_targets
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.operator.preflight import PreflightReport, PreflightSubject
    from stackyard.sources.site import ConfigResolver

__all__ = ["preflight"]


@click.command("preflight", cls=Command)
@click.argument("target", required=False, shell_complete=complete_targets)
@click.option(
    "-H",
    "--host",
    metavar="HOST",
    shell_complete=complete_hosts,
    help="The host (default: the only node of the site).",
)
@click.option("--local", is_flag=True, help="Check this machine, even if no file of the site names it.")
@click.option(
    "-M", "--manifest", "name", metavar="NAME", help="Check the host for this manifest of the site."
)
@click.option(
    "--manifest-file",
    "file",
    metavar="FILE",
    help="Check the host for a manifest file that is not in the site.",
)
@click.option("--manifest-json", "text", metavar="JSON", help="Check the host for a manifest as JSON text.")
@site_option
@pass_session
def preflight(session: Session, /, target: str | None, said: str | None, **values: Any) -> Result:
    """Check a host before a run, and report all problems that would stop the run.

    Without a TARGET (`env:dev`, `manifest:n2-quick`) or a manifest, this checks only the host: its API,
    certificate and token, the privileges that guests need, datastores and their content types, the bridge,
    SSH, clock, name servers and gateway, and the programs and secrets on this machine. With one, it also
    checks images, memory, processors and space for what the target adds, and nested virtualisation if there
    are nodes of type `pve`. This changes nothing.

    Exit status: 0 nothing would stop a run, 1 something would, 69 the API does not answer.

    \b
    stackyard preflight -H lab
    stackyard preflight -M n2-quick -H lab
    stackyard preflight env:dev --json
    stackyard preflight --local
    """  # noqa: D301 - click reads the control character
    from stackyard.operator.preflight import inspect  # lazy: pydantic and aiohttp, only when this verb runs
    from stackyard.sources.site import ConfigResolver  # lazy: as above

    subject = _subject(ConfigResolver(said, emit=session.emit), target, values)
    report = session.run(inspect(subject, emit=session.emit))
    return Result(
        document=report.document(), show=lambda writer: _show(writer, report), status=report.exit_status
    )


def _subject(resolver: ConfigResolver, target: str | None, values: dict[str, Any]) -> PreflightSubject:
    from stackyard.operator.preflight import subject_of, subject_of_env, subject_of_here  # lazy: as above
    from stackyard.path.environment import EnvironmentSource  # lazy: as above
    from stackyard.path.manifests import ManifestSource  # lazy: as above
    from stackyard.path.target import find_target  # lazy: as above
    from stackyard.sources.manifest.read import (  # lazy: pydantic, only when this verb runs
        ManifestRequest,
        find_manifest,
    )

    given = {key: values[key] for key in ("name", "file", "text") if values[key] is not None}
    if values["local"]:
        if target is not None or given or values["host"] is not None:
            raise UsageError("--local looks at this machine alone: say no target, manifest or host.")
        return subject_of_here(resolver)
    if target is not None and given:
        raise UsageError("Give a TARGET or a manifest, not both.")
    if target is not None:
        known = (EnvironmentSource(resolver), ManifestSource(resolver))
        source, name = find_target(target, {one.kind: one for one in known})
        if source.kind == "env":
            return subject_of_env(resolver, name, values["host"])
        given = {"name": name}
    manifest = find_manifest(resolver.site, ManifestRequest(**given)) if given else None
    only = None if manifest is None else manifest.only_host
    host = values["host"] or only or resolver.any_node()
    return subject_of(resolver, host, manifest)


def _show(writer: TextWriter, report: PreflightReport) -> None:
    writer.table(
        ("check", "", "seen"), [(check.name, check.status.value, check.text) for check in report.checks]
    )
    for finding in report.findings:
        style = "red" if finding in report.errors else "yellow"
        writer.line()
        place = f"{finding.where}: " if finding.where is not None else ""
        writer.line(f"{place}{finding.kind.summary} [{finding.kind.code}]", style=style)
        for line in (*finding.detail.splitlines(), finding.kind.remedy):
            writer.line(f"  {line}")
    writer.line()
    writer.line(report.summary, style="green" if report.is_ready else "red")
