"""Waiting for objects: what is expected of one, and why it is not so yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.clients.kubernetes.failures import WaitTimeoutError
from stackyard.clients.kubernetes.watch import WatchChange

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.clients.kubernetes.references import KubernetesObject, ObjectReference
    from stackyard.clients.kubernetes.watch import WatchEvent

__all__ = [
    "Expectation",
    "OnWaiting",
    "has_condition",
    "ignore_waiting",
    "is_established",
    "is_gone",
    "is_present",
    "is_rolled_out",
    "is_settled",
    "wait_until",
]

OnWaiting = Callable[[str], None]

_WORKLOADS = ("Deployment", "DaemonSet", "StatefulSet")


@dataclass(frozen=True, slots=True)
class Expectation:
    """What an object is to be.

    Attributes:
        awaited: That in words, after "is not" and "to be": `ready`, `rolled out`.
        judge: Says why an object is not so yet, empty if it is; its argument is None where there is none.
    """

    awaited: str
    judge: Callable[[KubernetesObject | None], str]


def ignore_waiting(reason: str) -> None:
    """Report nothing."""


def has_condition(kind: str, *, revision: str = "") -> Expectation:
    """Expect a condition that is True, and was set for the object as it is now.

    Args:
        kind: The type of the condition, such as `Ready`.
        revision: A part of the revision that the object must have applied or fetched, for objects of Flux.
    """

    def judge(obj: KubernetesObject | None) -> str:
        if obj is None:
            return "it does not exist"
        return _judge_condition(obj, kind) or _judge_revision(obj, revision)

    return Expectation(kind.lower() if kind == "Ready" else f"in the condition {kind}", judge)


def is_present() -> Expectation:
    """Expect that an object exists."""
    return Expectation("present", lambda obj: "it does not exist" if obj is None else "")


def is_gone() -> Expectation:
    """Expect that an object does not exist."""

    def judge(obj: KubernetesObject | None) -> str:
        if obj is None:
            return ""
        finalizers = obj.get("metadata", {}).get("finalizers") or ()
        return f"it waits for {', '.join(map(str, finalizers))}" if finalizers else "it still exists"

    return Expectation("gone", judge)


def is_established() -> Expectation:
    """Expect that a CustomResourceDefinition is served."""

    def judge(obj: KubernetesObject | None) -> str:
        return "it does not exist" if obj is None else _judge_condition(obj, "Established")

    return Expectation("established", judge)


def is_rolled_out() -> Expectation:
    """Expect that every pod of a Deployment, DaemonSet or StatefulSet is of the present version and ready."""
    return Expectation("rolled out", lambda obj: "it does not exist" if obj is None else _judge_rollout(obj))


def is_settled() -> Expectation:
    """Expect of any object what its kind can say: rolled out, ready, or merely present."""

    def judge(obj: KubernetesObject | None) -> str:
        if obj is None:
            return "it does not exist"
        if obj.get("kind") in _WORKLOADS:
            return _judge_rollout(obj)
        if obj.get("kind") == "CustomResourceDefinition":
            return _judge_condition(obj, "Established")
        has_ready = any(row.get("type") == "Ready" for row in _conditions(obj))
        return _judge_condition(obj, "Ready") if has_ready else ""

    return Expectation("ready", judge)


async def wait_until(
    events: AsyncIterator[WatchEvent],
    reference: ObjectReference,
    expectation: Expectation,
    *,
    timeout_s: float,
    on_waiting: OnWaiting = ignore_waiting,
) -> dict[str, Any]:
    """Follow the events of one object until it is as expected; see `KubernetesClient.wait_until`."""
    reason = "the API server has not answered"
    seen: KubernetesObject | None = None
    try:
        async with asyncio.timeout(timeout_s):
            async for event in events:
                if event.change is not WatchChange.LISTED:
                    seen = None if event.change is WatchChange.DELETED else event.object
                judged = expectation.judge(seen)
                if not judged:
                    return dict(seen or {})
                if judged != reason:
                    reason = judged
                    on_waiting(f"{reference} to be {expectation.awaited}: {reason}")
    except TimeoutError:
        raise WaitTimeoutError(reference, expectation.awaited, reason, timeout_s) from None
    raise AssertionError("a watch has no end")


def _conditions(obj: KubernetesObject) -> list[Mapping[str, Any]]:
    status = obj.get("status")
    rows = status.get("conditions") if isinstance(status, Mapping) else None
    return [row for row in rows or () if isinstance(row, Mapping)]


def _judge_condition(obj: KubernetesObject, kind: str) -> str:
    row = next((row for row in _conditions(obj) if row.get("type") == kind), None)
    if row is None:
        return f"the condition {kind} is not set yet"
    wanted = obj.get("metadata", {}).get("generation")
    seen = row.get("observedGeneration", (obj.get("status") or {}).get("observedGeneration"))
    if row.get("status") != "True":
        said = ": ".join(str(row[key]) for key in ("reason", "message") if row.get(key))
        return said or f"the condition {kind} is {row.get('status')}"
    if isinstance(seen, int) and isinstance(wanted, int) and seen < wanted:
        return f"the condition {kind} is of an earlier version of it"
    return ""


def _judge_revision(obj: KubernetesObject, revision: str) -> str:
    status = obj.get("status") or {}
    artifact = status.get("artifact") or {}
    found = str(status.get("lastAppliedRevision") or artifact.get("revision") or "")
    if not revision or revision in found:
        return ""
    return f"it is at the revision {found or 'none'}, not at {revision}"


def _judge_rollout(obj: KubernetesObject) -> str:
    status, spec = obj.get("status") or {}, obj.get("spec") or {}
    if int(status.get("observedGeneration") or 0) < int(obj.get("metadata", {}).get("generation") or 0):
        return "its controller has not seen this version yet"
    if obj.get("kind") == "DaemonSet":
        wanted = int(status.get("desiredNumberScheduled") or 0)
        updated, ready = status.get("updatedNumberScheduled"), status.get("numberAvailable")
    else:
        wanted = int(spec.get("replicas", 1))
        updated, ready = status.get("updatedReplicas"), status.get("readyReplicas")
    failed = [row for row in _conditions(obj) if row.get("reason") == "ProgressDeadlineExceeded"]
    if failed:
        return str(failed[0].get("message") or "its progress deadline is exceeded")
    if int(updated or 0) < wanted:
        return f"{updated or 0} of {wanted} pods are of the present version"
    return "" if int(ready or 0) >= wanted else f"{ready or 0} of {wanted} pods are ready"
