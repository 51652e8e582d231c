"""`stackyard cluster configure`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import ExitStatus
from stackyard.cli.command import Command
from stackyard.cli.commands.cluster.options import cluster_argument
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.path.clusters.configure import ConfigurationPlan, ConfigureReport
    from stackyard.secrets.keyring import Keyring
    from stackyard.sources.cluster.model import Cluster

__all__ = ["configure"]


@click.command("configure", cls=Command)
@cluster_argument
@click.option("--check", "is_check", is_flag=True, help="Write nothing; exit with 1 if files would change.")
@click.option(
    "--overwrite",
    metavar="FILE",
    multiple=True,
    help="Give up what was edited in FILE, a path or a pattern such as 'tofu/*'; repeatable.",
)
@click.option("--no-init", is_flag=True, help="Do not prepare OpenTofu afterwards.")
@pass_session
def configure(
    session: Session, /, name: str | None, is_check: bool, overwrite: tuple[str, ...], no_init: bool
) -> Result:
    """Write the files of a Talos cluster: infrastructure/, encrypted secrets, .gitignore.

    Only files that change are written. A file that was edited by hand is never overwritten unless
    --overwrite names it. Templates of your own in templates/config/infrastructure replace the built-in ones,
    file by file.

    Secrets are encrypted in memory. Values that did not change keep their encrypted form. Where the
    credentials of the state are known, `init` follows; if it fails, that is a warning.

    \b
    stackyard cluster configure
    stackyard cluster configure home --check
    stackyard cluster configure --overwrite infrastructure/tofu/main.tf
    """  # noqa: D301 - click reads the control character
    from stackyard.path.clusters.configure import (  # lazy: cryptography and templates, for this verb
        HandEditError,
        plan_configuration,
    )
    from stackyard.path.clusters.configure import configure as write_files  # lazy: as above

    cluster, keyring, said = _load(name)
    if is_check:
        plan = plan_configuration(cluster, overwrite=overwrite, keyring=keyring)
        if plan.conflicts:
            raise HandEditError.from_conflicts(plan.conflicts)
        return _check_result(cluster, plan, [*said, *plan.warnings])
    report = write_files(cluster, overwrite=overwrite, keyring=keyring)
    problem = None if no_init else _initialise(session, cluster, report)
    failed = [f"`init` failed: {problem}"] if problem else []
    return _report_result(cluster, report, [*said, *report.warnings, *failed])


def _load(name: str | None) -> tuple[Cluster, Keyring, list[str]]:
    """Return a cluster, the keys of the user, and a warning where git has secrets in clear."""
    from stackyard.base.diagnostics import Diagnostics  # lazy: as above
    from stackyard.path.clusters.keys import make_keyring  # lazy: as above
    from stackyard.sources.cluster import find_cluster, open_cluster  # lazy: as above
    from stackyard.sources.cluster.secret_place import check_secret_place  # lazy: as above

    folder = find_cluster(name).folder
    keyring, found = make_keyring(folder), Diagnostics()
    opened = open_cluster(folder, keyring=keyring)
    cluster = opened.require()
    if opened.read is not None:
        check_secret_place(opened.read, found)
    return cluster, keyring, [f"{one.detail} {one.kind.remedy}" for one in found.warnings]


def _initialise(session: Session, cluster: Cluster, report: ConfigureReport) -> str | None:
    from stackyard.path.clusters.initialise import initialise, needs_init  # lazy: as above

    return session.run(initialise(cluster, emit=session.emit)) if needs_init(cluster, report) else None


def _check_result(cluster: Cluster, plan: ConfigurationPlan, warnings: list[str]) -> Result:
    names = [one.name for one in plan.changes]

    def show(writer: TextWriter) -> None:
        for one in plan.changes:
            writer.line(f"would {'remove' if one.after is None else 'write'} {one.name}")
        files = "1 file" if len(names) == 1 else f"{len(names) or 'No'} files"
        writer.line(f"{files} would change.")
        _show_warnings(writer, warnings)

    document = {"cluster": cluster.name, "changes": names, "warnings": warnings}
    return Result(document=document, show=show, status=ExitStatus.FAILED if names else ExitStatus.DONE)


def _report_result(cluster: Cluster, report: ConfigureReport, warnings: list[str]) -> Result:
    def show(writer: TextWriter) -> None:
        for name in report.written:
            writer.line(f"wrote {name}")
        for name in report.removed:
            writer.line(f"removed {name}")
        if not report.has_changes:
            writer.line("Everything is up to date; nothing was written.")
        _show_warnings(writer, warnings)

    document: dict[str, Any] = {
        "cluster": cluster.name,
        "written": list(report.written),
        "removed": list(report.removed),
        "warnings": warnings,
    }
    return Result(document=document, show=show)


def _show_warnings(writer: TextWriter, warnings: list[str]) -> None:
    for warning in warnings:
        writer.line(f"warning: {warning}", style="yellow")
