"""The report for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.operator.outcome import PhaseStatus
from stackyard.operator.reports.texts import as_block, as_cell, as_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stackyard.operator.outcome import NodeOutcome, Phase
    from stackyard.operator.reports.model import Report

__all__ = ["as_markdown"]

_MARKS = {PhaseStatus.PASSED: "✅", PhaseStatus.FAILED: "❌", PhaseStatus.SKIPPED: "⏭️"}


def as_markdown(report: Report) -> str:
    """Return a report as Markdown."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# {as_line(report.title)}: {report.verdict}"
    yield ""
    yield from _table(("", ""), [(name, as_cell(value)) for name, value in _facts(report)])
    if report.error is not None:
        yield from ("", "## Why it failed", "", *as_block(report.error))
    if report.phases:
        yield from ("", "## Phases", "", *_phases(report.phases))
    if report.nodes:
        yield from ("", "## Nodes", "", *_nodes(report.nodes))
        for node in report.nodes:
            yield from _node(node)
    if report.orphans:
        yield from ("", "## Left over", "", *(f"- {as_line(guest)}" for guest in report.orphans))
    if report.logs:
        yield from ("", "## Where more is written", "", *(f"- {as_line(log)}" for log in report.logs))


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    yield "Run", report.scenario
    if report.subject:
        yield "Manifest", report.subject
    yield "Host", report.host
    yield "Began", f"{report.began:%Y-%m-%d %H:%M:%S} UTC"
    yield "Took", _seconds(report.duration_s)
    counted = [(report.count(status), status.value) for status in PhaseStatus]
    yield "Phases", ", ".join(f"{count} {word}" for count, word in counted if count)


def _nodes(nodes: Sequence[NodeOutcome]) -> Iterator[str]:
    rows = [
        (
            as_cell(node.name),
            node.status.value,
            as_cell(str(node.vm_id or "")),
            as_cell(node.address or ""),
            as_cell(node.host),
            str(node.depth),
            _seconds(node.took_s),
        )
        for node in nodes
    ]
    yield from _table(("node", "status", "vm id", "address", "host", "depth", "took"), rows)


def _node(node: NodeOutcome) -> Iterator[str]:
    if not node.phases and node.error is None:
        return
    yield from ("", f"### {as_line(node.name)}")
    if node.error is not None:
        yield from ("", *as_block(node.error))
    if node.cause is not None:
        yield from ("", f"Because of {as_line(node.cause)}.")
    if node.phases:
        yield from ("", *_phases(node.phases))


def _phases(phases: Sequence[Phase]) -> Iterator[str]:
    rows = [
        (
            as_cell(phase.name),
            f"{_MARKS[phase.status]} {phase.status.value}",
            _seconds(phase.took_s),
            as_line(phase.detail),
        )
        for phase in phases
    ]
    yield from _table(("phase", "status", "took", "detail"), rows)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(headings)} |"
    yield f"|{'---|' * len(headings)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s"
