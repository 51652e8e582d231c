"""Findings as SARIF 2.1.0, which code hosts show beside the code."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import stackyard
from stackyard.policy.model import Level

if TYPE_CHECKING:
    from stackyard.base.errors import Location
    from stackyard.policy.check import PolicyResult
    from stackyard.policy.exceptions import PolicyException
    from stackyard.policy.model import Finding

__all__ = ["make_sarif"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_VERSION = "2.1.0"
_LEVELS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "note"}
_BASE = "SRCROOT"
_FINGERPRINT = "stackyardPolicy/v1"


def make_sarif(result: PolicyResult) -> dict[str, Any]:
    """Return the document; paths are from the top of the git repository."""
    rules: list[dict[str, Any]] = [
        {
            "id": one.id,
            "shortDescription": {"text": f"{one.title}."},
            "fullDescription": {"text": one.why},
            "help": {"text": f"{one.title}. {one.why}", "markdown": f"**{one.title}**\n\n{one.why}"},
            "defaultConfiguration": {"level": "error"},
        }
        for one in result.rules
    ]
    known = {one["id"] for one in rules}
    findings = [(one, None) for one in result.findings]
    findings += [(one.finding, one.exception) for one in result.excepted]  # type: ignore[misc]
    for finding, _ in findings:
        if finding.rule not in known:
            known.add(finding.rule)
            rules.append(
                {"id": finding.rule, "shortDescription": {"text": "A rule of this repository in Rego."}}
            )
    order = {one["id"]: number for number, one in enumerate(rules)}
    seen: dict[str, int] = {}
    return {
        "$schema": _SCHEMA,
        "version": _VERSION,
        "runs": [
            {
                "tool": {"driver": {"name": "stackyard", "version": stackyard.__version__, "rules": rules}},
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {_BASE: {"description": {"text": "The top of the repository."}}},
                "invocations": [_invocation(result)],
                "results": [_result(one, exception, order, seen) for one, exception in findings],
            }
        ],
    }


def _invocation(result: PolicyResult) -> dict[str, Any]:
    notes = [
        {"level": "warning", "message": {"text": f"{one.rule} was not checked: {one.reason}."}}
        for one in result.skipped
    ]
    return {"executionSuccessful": True, "toolExecutionNotifications": notes}


def _result(
    finding: Finding, exception: PolicyException | None, order: dict[str, int], seen: dict[str, int]
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": order[finding.rule],
        "level": _LEVELS[finding.level],
        "message": {"text": f"{finding.detail} {finding.remedy}"},
        "locations": [_location(finding.where)],
        "partialFingerprints": {_FINGERPRINT: _fingerprint(finding, seen)},
    }
    if finding.also:
        found["relatedLocations"] = [_location(one) for one in finding.also]
    if exception is not None:
        reason = f"{exception.reason} (until {exception.until})"
        found["suppressions"] = [{"kind": "external", "status": "accepted", "justification": reason}]
    return found


def _location(where: Location) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(where.path or "."), "uriBaseId": _BASE},
            "region": {"startLine": where.line or 1},
        }
    }


def _fingerprint(finding: Finding, seen: dict[str, int]) -> str:
    """Return what stays the same while lines move; equal findings of a file are numbered."""
    text = f"{finding.rule}\n{finding.where.path}\n{finding.detail}"
    number = seen[text] = seen.get(text, 0) + 1
    return hashlib.sha256(f"{text}\n{number}".encode()).hexdigest()[:32]
