"""`stackyard preflight`: whether a host is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.site import site_option
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session
from stackyard.errors import UsageError

if TYPE_CHECKING:
    from stackyard.cli.views.paper import Paper
    from stackyard.operator.preflight import Report, Subject
    from stackyard.site import ConfigResolver

__all__ = ["preflight"]


@click.command("preflight", cls=Command)
@click.argument("target", required=False)
@click.option("-H", "--host", metavar="HOST", help="The host; the only node of the site when absent.")
@click.option("--local", is_flag=True, help="This machine, also where no file of the site names it.")
@click.option("-M", "--manifest", "name", metavar="NAME", help="What the host is to carry: a manifest.")
@click.option("--manifest-file", "file", metavar="FILE", help="The same as a file that is not in the site.")
@click.option("--manifest-json", "text", metavar="JSON", help="The same as JSON.")
@site_option
@pass_session
def preflight(session: Session, /, target: str | None, said: str | None, **values: Any) -> Result:
    """Look at a host before anything is asked of it: everything that would stop a run, at once.

    Without a TARGET (`env:dev`, `manifest:n2-quick`) or a manifest, the host alone is looked at: its API,
    certificate and token, the privileges that guests need, datastores and what they take, the bridge, SSH,
    clock, name servers and gateway, programs and secrets here. With one, also images, memory, processors and
    room for what it adds, and nested virtualisation where it has nodes of type `pve`. Nothing is changed.

    Ends with 0 when nothing stands in the way, 1 when something does, 69 when the API does not answer.

    \b
    stackyard preflight -H lab
    stackyard preflight -M n2-quick -H lab
    stackyard preflight env:dev --json
    stackyard preflight --local
    """  # noqa: D301 - click reads the control character
    from stackyard.operator.preflight import inspect  # lazy: pydantic and aiohttp, only when this verb runs
    from stackyard.site import ConfigResolver  # lazy: as above

    subject = _subject(ConfigResolver(said, emit=session.emit), target, values)
    report = session.run(inspect(subject, emit=session.emit))
    return Result(
        document=report.document(), show=lambda paper: _show(paper, report), status=report.exit_status
    )


def _subject(resolver: ConfigResolver, target: str | None, values: dict[str, Any]) -> Subject:
    from stackyard.manifest.reading import Wanted, find_manifest  # lazy: pydantic, only when this verb runs
    from stackyard.operator.preflight import subject_of, subject_of_env, subject_of_here  # lazy: as above
    from stackyard.path.environment import EnvironmentSource  # lazy: as above
    from stackyard.path.manifests import ManifestSource  # lazy: as above
    from stackyard.path.target import find_target  # lazy: as above

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
    manifest = find_manifest(resolver.site, Wanted(**given)) if given else None
    only = None if manifest is None else manifest.only_host
    host = values["host"] or only or resolver.any_node()
    return subject_of(resolver, host, manifest)


def _show(paper: Paper, report: Report) -> None:
    paper.table(
        ("check", "", "seen"), [(check.name, check.status.value, check.text) for check in report.checks]
    )
    for finding in report.findings:
        style = "red" if finding in report.errors else "yellow"
        paper.line()
        place = f"{finding.where}: " if finding.where is not None else ""
        paper.line(f"{place}{finding.kind.summary} [{finding.kind.code}]", style=style)
        for line in (*finding.detail.splitlines(), finding.kind.remedy):
            paper.line(f"  {line}")
    paper.line()
    paper.line(report.summary, style="green" if report.is_ready else "red")
