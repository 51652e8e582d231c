"""The jobs of the GitOps server, and in which order they run.

What a webhook says is only where to look: a job names a pull request or a target, and what is true of it is
asked of the forge when the job runs. So the newest commit counts, and one job stands for many webhooks.
"""

from __future__ import annotations

import enum

from stackyard.clients.forge.model import EventKind, WebhookEvent
from stackyard.gitops.queue.protocol import NewJob

__all__ = ["JobKind", "apply_job", "drift_job", "job_for", "look_job", "reconcile_job", "report_job"]

# Applies of a repository run one after another, in the order of their merges: so do those of each target.
_APPLIES = "apply"


class JobKind(enum.StrEnum):
    """What is to be done."""

    LOOK = "look"
    APPLY = "apply"
    RECONCILE = "reconcile"
    DRIFT = "drift"
    REPORT = "report"


def look_job(number: int) -> NewJob:
    """Return the job that looks at a pull request: reads its comments, and plans it."""
    name = f"pull-{number}"
    return NewJob(kind=JobKind.LOOK, lock=name, key=f"look-{number}", args={"number": number})


def apply_job(number: int, targets: frozenset[str] | None = None) -> NewJob:
    """Return the job that applies what was reviewed of a pull request: of some targets, or of all."""
    names = None if targets is None else sorted(targets)
    key = f"apply-{number}" if names is None else f"apply-{number}-{','.join(names)}"
    return NewJob(kind=JobKind.APPLY, lock=_APPLIES, key=key, args={"number": number, "targets": names})


def reconcile_job() -> NewJob:
    """Return the job that finds what webhooks did not tell."""
    return NewJob(kind=JobKind.RECONCILE, lock="reconcile", key="reconcile")


def drift_job(target: str = "") -> NewJob:
    """Return the job that looks for drift of a target; without one, of all, each in a job of its own."""
    return NewJob(kind=JobKind.DRIFT, lock=f"drift-{target}", key=f"drift-{target}", args={"target": target})


def report_job() -> NewJob:
    """Return the job that reports newer versions of providers and modules."""
    return NewJob(kind=JobKind.REPORT, lock="report", key="report")


def job_for(event: WebhookEvent) -> NewJob | None:
    """Return what a webhook asks to be looked at; None where it tells of nothing of ours."""
    if event.kind in (EventKind.PULL_REQUEST, EventKind.REVIEW, EventKind.COMMENT) and event.number > 0:
        return look_job(event.number)
    # A push may move the base of any pull request.
    return reconcile_job() if event.kind is EventKind.PUSH else None
