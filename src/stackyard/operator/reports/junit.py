"""The report for build servers: JUnit XML, as the strictest of its readers takes it.

There is one suite for what was done for all nodes, and one for each node; each phase is a case of its suite.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.operator.outcome import NodeStatus, Phase, PhaseStatus
from stackyard.operator.reports.texts import as_xml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.operator.outcome import NodeOutcome
    from stackyard.operator.reports.model import Report

__all__ = ["as_junit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Suite:
    """Phases that are shown together."""

    name: str
    host: str
    phases: tuple[Phase, ...]
    properties: dict[str, str] = field(default_factory=dict)
    said: str = ""

    def count(self, status: PhaseStatus) -> int:
        return sum(phase.status is status for phase in self.phases)


def as_junit(report: Report) -> bytes:
    """Return a report as JUnit XML."""
    root = ET.Element("testsuites")
    for number, suite in enumerate(_suites(report)):
        root.append(_element(report, suite, number))
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()


def _suites(report: Report) -> Iterator[_Suite]:
    yield _Suite(
        name=report.title,
        host=report.host,
        phases=_run_phases(report),
        properties={"scenario": report.scenario, "manifest": report.subject},
        said="\n".join((*report.orphans, *report.logs)),
    )
    for node in report.nodes:
        properties = {
            "type": node.type,
            "status": node.status.value,
            "vm_id": str(node.vm_id or ""),
            "address": node.address or "",
            "depth": str(node.depth),
            "cause": node.cause or "",
        }
        yield _Suite(name=node.name, host=node.host, phases=_node_phases(node), properties=properties)


def _run_phases(report: Report) -> tuple[Phase, ...]:
    """Return the phases of the run itself; a failure that is in none of them is one of its own."""
    failed_within = report.count(PhaseStatus.FAILED) or any(_has_failed(node) for node in report.nodes)
    if report.success or failed_within:
        return report.phases
    why = Phase(name=report.scenario, status=PhaseStatus.FAILED, detail=report.error or "The run failed.")
    return (*report.phases, why)


def _node_phases(node: NodeOutcome) -> tuple[Phase, ...]:
    """Return the phases of a node; what no phase tells of its end is a phase of its own."""
    statuses = {phase.status for phase in node.phases}
    detail = node.error or f"The node is {node.status}."
    if node.cause is not None:
        detail += f"\nBecause of {node.cause}."
    if _has_failed(node):
        if PhaseStatus.FAILED in statuses:
            return node.phases
        return (*node.phases, Phase(name="node", status=PhaseStatus.FAILED, detail=detail))
    if node.status is NodeStatus.SKIPPED or (node.error is not None and not node.is_well):
        return (*node.phases, Phase(name="node", status=PhaseStatus.SKIPPED, detail=detail))
    return node.phases or (Phase(name="node"),)


def _has_failed(node: NodeOutcome) -> bool:
    return node.status is NodeStatus.FAILED


def _element(report: Report, suite: _Suite, number: int) -> ET.Element:
    element = ET.Element(
        "testsuite",
        {
            "id": str(number),
            "package": as_xml(f"stackyard.{report.scenario}"),
            "name": as_xml(suite.name),
            # Without a zone: readers of this form know none.
            "timestamp": report.began.strftime("%Y-%m-%dT%H:%M:%S"),
            "hostname": as_xml(suite.host),
            "tests": str(len(suite.phases)),
            "failures": str(suite.count(PhaseStatus.FAILED)),
            "errors": "0",
            "skipped": str(suite.count(PhaseStatus.SKIPPED)),
            "time": f"{sum(phase.took_s for phase in suite.phases):.3f}",
        },
    )
    properties = ET.SubElement(element, "properties")
    for name, value in suite.properties.items():
        if value:
            ET.SubElement(properties, "property", {"name": name, "value": as_xml(value)})
    for phase in suite.phases:
        element.append(_case(f"{report.subject or report.scenario}.{suite.name}", phase))
    ET.SubElement(element, "system-out").text = as_xml(suite.said)
    ET.SubElement(element, "system-err")
    return element


def _case(class_name: str, phase: Phase) -> ET.Element:
    case = ET.Element(
        "testcase",
        {"classname": as_xml(class_name), "name": as_xml(phase.name), "time": f"{phase.took_s:.3f}"},
    )
    detail = as_xml(phase.detail)
    first = detail.partition("\n")[0]
    if phase.status is PhaseStatus.FAILED:
        failure = ET.SubElement(case, "failure", {"type": "failed", "message": first})
        failure.text = detail
    elif phase.status is PhaseStatus.SKIPPED:
        ET.SubElement(case, "skipped", {"message": first} if first else {})
    return case
