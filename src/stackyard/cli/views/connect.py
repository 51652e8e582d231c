"""What `stackyard connect` shows: the plan before it is done, and what was done."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.operator.connect.model import Connected, ConnectPlan
    from stackyard.operator.preflight import PreflightReport

__all__ = ["describe_connected", "list_next_commands", "show_connected", "show_plan"]

_MOST_IMAGES = 5


def show_plan(writer: TextWriter, plan: ConnectPlan) -> None:
    """Write what is there and what will be done."""
    _show_cluster(writer, plan)
    writer.line()
    if plan.access is None:
        _show_given_token(writer, plan)
    else:
        writer.line(f"The token {plan.token_id} may do this, and nothing else:")
        writer.table(
            ("privilege", "feature", "to"),
            [(one.privilege, one.feature.value, one.why) for one in plan.privileges],
        )
    writer.line()
    if plan.contents and not plan.content_changes:
        for change in plan.contents:
            writer.line(f"For images and cloud-init data, {change.what}: --add-content does that.")
        writer.line()
    if plan.changes_nothing:
        writer.line("Everything is there already. Nothing will be changed.")
        return
    writer.line("This will be done:")
    for step in plan.steps:
        writer.line(f"  on the cluster  {step}")
    is_token_new = plan.token is not None or any(call.is_secret for call in plan.calls)
    if is_token_new:
        writer.line(f"  here            write the token to {plan.site.secrets_file} ({plan.site.token_key})")
    for line in _describe_files(plan):
        writer.line(f"  here            {line}")


def _show_cluster(writer: TextWriter, plan: ConnectPlan) -> None:
    seen = plan.cluster
    name = f"the cluster {seen.name}" if seen.name else "a node alone"
    writer.line(f"Proxmox VE {seen.version}, {name}, {seen.guests} guests, {len(seen.templates)} templates:")
    for node in seen.nodes:
        if node.name not in plan.endpoints:
            continue
        writer.line(f"  {node.name} at {plan.endpoints[node.name].url}")
        stores = [f"{one.name} ({', '.join(one.content)})" for one in node.datastores]
        writer.line(f"    datastores  {', '.join(stores) or 'none that can be seen'}")
        writer.line(f"    bridges     {', '.join(node.bridges) or 'none that can be seen'}")
        images = ", ".join(node.images[:_MOST_IMAGES]) or "none"
        more = len(node.images) - _MOST_IMAGES
        writer.line(f"    images      {images}{f' and {more} more' if more > 0 else ''}")
        if note := plan.endpoints[node.name].note:
            writer.line(f"    reached through another node: {note}")
    for line in seen.hidden:
        writer.line(f"  hidden from {plan.request.caller}: {line}")


def _show_given_token(writer: TextWriter, plan: ConnectPlan) -> None:
    writer.line(f"The token {plan.token_id} may not create another one, and is used itself.")
    lacking = {one.feature for one in plan.missing}
    for feature in plan.request.features:
        writer.line(f"  {feature.value:<12} {'not all of it' if feature in lacking else 'yes'}")
    for one in plan.missing:
        writer.line(f"  missing: {one.privilege}, to {one.why} ({one.feature.value})")
    writer.line(
        "It sees what it has privileges for: guests, datastores and pools outside of these are hidden."
    )


def _describe_files(plan: ConnectPlan) -> list[str]:
    edited = {one.path.relative_to(plan.site.root).as_posix(): one for one in plan.site.edited}
    lines = []
    if plan.site.is_new:
        lines.append(f"make a new site in {plan.site.root} ({len(plan.site.texts)} files)")
    for name, one in edited.items():
        if one.is_new:
            lines.append(f"write {name}")
        elif one.changed:
            lines.append(f"set {', '.join(one.changed)} in {name}")
        if one.kept:
            lines.append(f"keep {', '.join(one.kept)} in {name}, which differ")
    return lines


def list_next_commands(done: Connected) -> list[tuple[str, str]]:
    """Return the commands that follow, with what each does."""
    site = done.plan.site
    there = "" if str(site.root) == os.path.abspath(".") else f" --chdir {shlex.quote(str(site.root))}"
    host = next(iter(site.nodes.values()))
    following = []
    if done.plan.cluster.guests:
        command = f"stackyard{there} import env:existing -H {shlex.quote(host)}"
        what = f"manage those of the {done.plan.cluster.guests} guests that no env has; changes none"
        following.append((command, what))
    if (site.root / "envs" / "first.yaml").is_file():
        following.append((f"stackyard{there} plan first", "a first container; `apply first` creates it"))
    return following


def describe_connected(done: Connected, reports: Sequence[PreflightReport]) -> dict[str, Any]:
    """Return the JSON view."""
    return {
        **done.document(),
        "preflight": [report.document() for report in reports],
        "next": [command for command, _ in list_next_commands(done)],
    }


def show_connected(writer: TextWriter, done: Connected, reports: Sequence[PreflightReport]) -> None:
    """Write what was done, what the preflight found, and what follows."""
    plan = done.plan
    names = ", ".join(plan.site.nodes.values())
    writer.line(f"{plan.site.root} has {names}, with the token {plan.token_id}.", style="green")
    if done.written.files:
        writer.line(f"Written: {', '.join(done.written.files)}")
    else:
        writer.line("Nothing had to be written.")
    if done.written.new_key is not None:
        writer.line(
            f"Made an age key for you in {done.written.new_key}: back it up, only it decrypts your secrets."
        )
    if done.written.ssh_key is not None:
        writer.line(f"Made an SSH key for the site in {done.written.ssh_key}: it logs in to your guests.")
    for report in reports:
        writer.line()
        _show_report(writer, report)
    following = list_next_commands(done)
    if following:
        writer.line()
        writer.line("Next:")
    for command, what in following:
        writer.line(f"  {command}  # {what}")


def _show_report(writer: TextWriter, report: PreflightReport) -> None:
    writer.line(f"preflight: {report.summary}", style="green" if report.is_ready else "red")
    for finding in report.findings:
        writer.line(f"  {finding.kind.summary} [{finding.kind.code}]")
        for line in (*finding.detail.splitlines(), finding.kind.remedy):
            writer.line(f"    {line}")
