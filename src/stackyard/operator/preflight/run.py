"""Running all checks at once."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.base.diagnostics import Diagnostic
from stackyard.base.errors import StackyardError
from stackyard.clients import proxmox
from stackyard.operator.preflight import kinds
from stackyard.operator.preflight.api import check_certificate, check_clock, check_version, refusal
from stackyard.operator.preflight.capacity import (
    check_bridges,
    check_capacity,
    check_datastores,
    check_devices,
    check_node,
    check_processors,
)
from stackyard.operator.preflight.here import check_here
from stackyard.operator.preflight.images import check_images
from stackyard.operator.preflight.local import check_secrets, check_tools
from stackyard.operator.preflight.machine import check_nested, check_ssh, check_ssh_alone
from stackyard.operator.preflight.model import CheckResult, Observation, PreflightReport, Status
from stackyard.operator.preflight.network import check_network
from stackyard.operator.preflight.permissions import check_rights
from stackyard.operator.preflight.reachable_host import ReachableHost, open_scene
from stackyard.operator.preflight.subject import PreflightSubject, Purpose, subject_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from stackyard.base.redaction import Redactor
    from stackyard.path.target import Resolved
    from stackyard.sources.manifest.model import Manifest
    from stackyard.sources.site import ConfigResolver

__all__ = ["inspect", "preflight"]

# No one waits longer for a host that is not there.
_CALL_S = 15.0
_CHECK_S = 30.0
_KNOCK_S = 20.0
_FORBIDDEN = 403
_NOT_REACHED = (kinds.UNREACHABLE.code, kinds.UNTRUSTED.code)

_LOCAL: Mapping[str, Callable[[PreflightSubject], Coroutine[Any, Any, Observation]]] = {
    "secrets": check_secrets,
    "tools": check_tools,
}
_ALWAYS: Mapping[str, Callable[[ReachableHost], Coroutine[Any, Any, Observation]]] = {
    "version": check_version,
    "certificate": check_certificate,
    "rights": check_rights,
    "node": check_node,
    "clock": check_clock,
    "ssh": check_ssh,
}
_BEFORE_CREATE: Mapping[str, Callable[[ReachableHost], Coroutine[Any, Any, Observation]]] = {
    "datastores": check_datastores,
    "bridges": check_bridges,
    "images": check_images,
    "capacity": check_capacity,
    "processors": check_processors,
    "devices": check_devices,
    "network": check_network,
}
_ORDER = ("machine", "api", *_ALWAYS, *_BEFORE_CREATE, "nested", *_LOCAL)


async def preflight(
    resolver: ConfigResolver,
    manifest: Manifest | None,
    host: str,
    *,
    purpose: Purpose = Purpose.CREATE,
    emit: events.Emit = events.ignore,
) -> PreflightReport:
    """Look at a host before a run, and refuse the run when something is in its way.

    Args:
        resolver: The site.
        manifest: What is to be there; None for the host alone.
        host: The host.
        purpose: What follows.
        emit: Told of warnings.

    Raises:
        PreflightUnreachableError: The API of the host does not answer; the error has every finding.
        PreflightError: Something else is in the way; the error has every finding.
        InvalidInputError: The host is not known, or the manifest does not fit there.
    """
    report = await inspect(subject_of(resolver, host, manifest, purpose=purpose), emit=emit)
    report.raise_errors()
    for finding in report.warnings:
        emit(
            events.DiagnosticFound(
                severity=finding.kind.severity.value,
                code=finding.kind.code,
                summary=finding.kind.summary,
                detail=finding.detail,
            )
        )
    return report


async def inspect(subject: PreflightSubject, *, emit: events.Emit = events.ignore) -> PreflightReport:
    """Look at a host, everything at once, and say what was seen."""
    with events.step(emit, "preflight", f"Looking at {subject.host.name}"):
        async with asyncio.TaskGroup() as group:
            local = [group.create_task(_run(name, check(subject))) for name, check in _LOCAL.items()]
            remote = group.create_task(_remote(subject))
        results = [*(task.result() for task in local), *remote.result()]
    order = {name: place for place, name in enumerate(_ORDER)}
    ordered = sorted(results, key=lambda result: order[result.name])
    redactor = subject.site.redactor()
    return PreflightReport(
        host=subject.host.name,
        target=subject.target,
        is_reached=not any(finding.kind.code in _NOT_REACHED for one in ordered for finding in one.findings),
        checks=tuple(_redact(result, redactor) for result in ordered),
    )


async def _remote(subject: PreflightSubject) -> list[CheckResult]:
    """Ask the API for its version, then run every check that needs it."""
    if subject.is_here:
        return [await _run("machine", check_here(subject))]
    if subject.host.is_host_only:
        return [await _run("ssh", check_ssh_alone(subject))]
    checks = dict(_ALWAYS)
    if subject.purpose is Purpose.CREATE:
        checks |= _BEFORE_CREATE
        if subject.inner:
            checks["nested"] = check_nested
    if subject.resolved is None:
        return _make_skipped(["api", *checks], "there is no token")
    async with proxmox.Client(_shorten_timeouts(subject.resolved.connection)) as client:
        began_s = time.monotonic()
        try:
            async with asyncio.timeout(_KNOCK_S):
                reachable = await _open_host(subject, subject.resolved, client)
        except (StackyardError, TimeoutError) as err:
            seen = Observation(text="no answer", findings=(_make_unreachable_diagnostic(err, subject),))
            api = CheckResult.of("api", seen, took_s=time.monotonic() - began_s)
            return [api, *_make_skipped(checks, "the API did not answer")]
        seen = Observation(text=subject.resolved.connection.endpoint)
        api = CheckResult.of("api", seen, took_s=time.monotonic() - began_s)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_run(name, check(reachable))) for name, check in checks.items()]
        return [api, *(task.result() for task in tasks)]


async def _open_host(subject: PreflightSubject, resolved: Resolved, client: proxmox.Client) -> ReachableHost:
    answer = await client.get("/version")
    return await open_scene(subject, resolved, client, str((answer or {}).get("version", "")))


def _shorten_timeouts(connection: proxmox.Connection) -> proxmox.Connection:
    return dataclasses.replace(connection, timeout_s=_CALL_S, patience_s=0.0)


def _make_unreachable_diagnostic(err: StackyardError | TimeoutError, subject: PreflightSubject) -> Diagnostic:
    if isinstance(err, StackyardError):
        return refusal(err)
    detail = f"{subject.host.api_endpoint} did not answer within {_KNOCK_S:g} s."
    where = None if subject.resolved is None else subject.resolved.connection.origin.endpoint
    return Diagnostic(kind=kinds.UNREACHABLE, detail=detail, where=where)


def _make_skipped(names: Iterable[str], why: str) -> list[CheckResult]:
    return [CheckResult(name=name, status=Status.SKIPPED, text=why) for name in names]


async def _run(name: str, looking: Coroutine[Any, Any, Observation]) -> CheckResult:
    """Run a check to its end; what it cannot find out is a warning."""
    began_s = time.monotonic()
    try:
        async with asyncio.timeout(_CHECK_S):
            seen = await looking
    except proxmox.RefusedError as err:
        if err.status == _FORBIDDEN:
            # The check of rights names the privilege.
            return CheckResult(name=name, status=Status.SKIPPED, text="may not be looked at")
        seen = _unknown(err.detail)
    except StackyardError as err:
        seen = _unknown(err.detail)
    except TimeoutError:
        seen = _unknown(f"The check `{name}` was not done after {_CHECK_S:g} s.")
    return CheckResult.of(name, seen, took_s=time.monotonic() - began_s)


def _unknown(detail: str) -> Observation:
    return Observation(text="could not be checked", findings=(Diagnostic(kind=kinds.UNKNOWN, detail=detail),))


def _redact(result: CheckResult, redactor: Redactor) -> CheckResult:
    findings = tuple(dataclasses.replace(one, detail=redactor(one.detail)) for one in result.findings)
    return dataclasses.replace(result, text=redactor(result.text), findings=findings)
