"""Planning the targets of a pull request, each by a run of its own on the merge result."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base import schedule
from stackyard.base.dag import Graph
from stackyard.base.diagnostics import describe
from stackyard.base.errors import StackyardError
from stackyard.gitops.model import Credentials, TargetPlan, TargetState
from stackyard.gitops.runs import TargetRun, run_verb

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stackyard.gitops.context import GitopsContext
    from stackyard.gitops.model import ChangedTarget, Checkout, CodeFinding, PullPlan
    from stackyard.gitops.record import Acknowledgement
    from stackyard.gitops.runs import VerbAnswer

__all__ = ["PlanOrder", "fingerprint_of", "is_open", "permit_words", "plan_targets"]

# What a run says that needs what another one has not made yet.
_WAITING = "E-STACK-WAITING"
_IN_STORE = "store:"
# What is at its end, and is not planned again for the same files.
_SETTLED = (TargetState.APPLIED, TargetState.APPLYING)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOrder:
    """What is to be planned.

    Attributes:
        targets: The targets, in their order.
        takes_outputs: By target, those that it takes outputs from.
        findings: By target, what in its code has to be allowed first.
        acknowledged: What people named that may happen.
        credentials: Which credentials the runs get.
        known: Plans that still fit, by target; they are not made again.
    """

    targets: Sequence[ChangedTarget]
    takes_outputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    findings: Mapping[str, tuple[CodeFinding, ...]] = field(default_factory=dict)
    acknowledged: tuple[Acknowledgement, ...] = ()
    credentials: Credentials = Credentials.PLAN
    known: Mapping[str, TargetPlan] = field(default_factory=dict)


def is_open(plan: TargetPlan) -> bool:
    """Return whether something of a target is still to be applied, or may be."""
    return plan.state not in (TargetState.UNCHANGED, TargetState.APPLIED)


async def plan_targets(
    context: GitopsContext, checkout: Checkout, order: PlanOrder
) -> tuple[TargetPlan, ...]:
    """Plan targets, several at the same time, and return what is known of each, in their order.

    What takes outputs of a target that is still to be applied has no plan yet: nothing is made up for it.

    Args:
        context: What the work needs.
        checkout: The files of the merge.
        order: What to plan.

    Raises:
        StackyardError: The store or a checkout cannot be used; what fails for one target is in its plan.
    """
    takes = {one.target: [name for name in order.takes_outputs.get(one.target, ())] for one in order.targets}
    graph = Graph.from_dependencies({one.target: takes[one.target] for one in order.targets})
    by_name = {one.target: one for one in order.targets}
    done: dict[str, TargetPlan] = {}

    async def work(name: str) -> None:
        waits_for = tuple(first for first in takes[name] if first in done and is_open(done[first]))
        done[name] = await _plan_one(context, checkout, order, by_name[name], waits_for)

    results = await schedule.walk(graph, work, parallel=context.at_once)
    for settled in results.settled.values():
        if isinstance(settled, schedule.Failed):
            raise settled.error
    return tuple(done[one.target] for one in order.targets)


async def _plan_one(
    context: GitopsContext,
    checkout: Checkout,
    order: PlanOrder,
    changed: ChangedTarget,
    waits_for: tuple[str, ...],
) -> TargetPlan:
    known = order.known.get(changed.target)
    if known is not None:
        return replace(known, reasons=changed.reasons, after=changed.after)
    begun = TargetPlan(
        target=changed.target,
        state=TargetState.WAITING,
        reasons=changed.reasons,
        after=changed.after,
        is_removed=changed.is_removed,
        allowed=_allowed(order.acknowledged),
        host=changed.host,
    )
    if findings := order.findings.get(changed.target, ()):
        return replace(begun, state=TargetState.BLOCKED, findings=findings)
    if waits_for:
        return replace(begun, waits_for=waits_for)
    try:
        answer = await run_verb(context, checkout, _make_run(order, changed))
    except StackyardError as err:
        return replace(begun, state=TargetState.FAILED, error=describe(err))
    return _read_answer(begun, answer)


def _make_run(order: PlanOrder, changed: ChangedTarget) -> TargetRun:
    is_saved = order.credentials is not Credentials.NONE
    saving = ("--out", _IN_STORE) if is_saved else ()
    verb, dry = ("destroy", ("--dry-run",)) if changed.is_removed else ("plan", ())
    words = (*dry, *saving, *permit_words(order.acknowledged))
    return TargetRun(
        verb=verb, target=changed.target, host=changed.host, words=words, credentials=order.credentials
    )


def _read_answer(begun: TargetPlan, answer: VerbAnswer) -> TargetPlan:
    if answer.error:
        if answer.error.get("code") == _WAITING:
            return replace(begun, error=answer.error)
        return replace(begun, state=TargetState.FAILED, error=answer.error)
    document = answer.document
    state = TargetState.CHANGES if document.get("has_changes") else TargetState.UNCHANGED
    if document.get("guard", {}).get("refused"):
        state = TargetState.REFUSED
    return replace(
        begun,
        state=state,
        document=document,
        plan=document.get("plan") or "",
        drift=tuple(document.get("overwrites", ())),
    )


def permit_words(acknowledged: Iterable[Acknowledgement]) -> tuple[str, ...]:
    """Return the options that permit what people named."""
    names: dict[str, list[str]] = {}
    for one in acknowledged:
        if one.what != "code":
            names.setdefault(f"--allow-{one.what}", []).append(one.name)
    return tuple(word for option, given in names.items() for word in (option, ",".join(sorted(set(given)))))


def _allowed(acknowledged: Iterable[Acknowledgement]) -> tuple[str, ...]:
    return tuple(sorted({f"{one.what} {one.name}" for one in acknowledged if one.what != "code"}))


def fingerprint_of(plan: PullPlan, target: TargetPlan) -> str:
    """Return what tells the plan of a target from every other one.

    The commit, the tree of the merge, the state, the input, the code and the provider are in it, and
    everything that is shown of it, so that an approval counts for nothing else.
    """
    said: dict[str, Any] = {
        "head": plan.head,
        "tree": plan.tree,
        "target": target.target,
        "is_removed": target.is_removed,
        "state": "planned" if target.document else target.state.value,
        "drift": list(target.drift),
        "findings": [one.detail for one in target.findings],
        **{name: target.document.get(name) for name in ("changes", "outputs", "bound_to", "takes_over")},
    }
    return hashlib.sha256(orjson.dumps(said, option=orjson.OPT_SORT_KEYS)).hexdigest()
