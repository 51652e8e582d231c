"""The one comment of a pull request: what would happen, what is lost first, and what is needed.

It is made of values, never of what an engine printed. Everything from outside is in spans and blocks of code.
"""

from __future__ import annotations

import html
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.visible import on_one_line
from stackyard.gitops.acknowledge import words_for
from stackyard.gitops.markdown import code, cut_middle, fence, fold
from stackyard.gitops.masking import Mask
from stackyard.gitops.model import TargetState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.gitops.model import PullPlan, TargetPlan

__all__ = ["CommentView", "count_changes", "render_comment"]

MARK = "<!-- stackyard: the plan of this pull request -->"
_SIGNS = {"delete": "-", "replace": "±", "forget": "x", "update": "~", "create": "+"}
_VERBS = {
    "delete": "destroy",
    "replace": "replace",
    "forget": "forget",
    "update": "change",
    "create": "create",
}
_LOST = ("delete", "replace")
_COLUMNS = ("create", "update", "replace", "delete")
# Rows and names that are shown before the rest is counted.
_MOST_ROWS = 60
_MOST_LOST = 60
_MOST_REFUSED = 20
_MOST_VALUE = 80
_LEAST_DETAIL = 400
# Who reads an error of the input can correct it; what an engine or a service said may be anything.
_INPUT_ERROR = 65
_LABELS = {
    TargetState.CHANGES: "to be applied",
    TargetState.UNCHANGED: "unchanged",
    TargetState.REFUSED: "refused",
    TargetState.WAITING: "waiting",
    TargetState.BLOCKED: "not planned",
    TargetState.FAILED: "failed",
    TargetState.APPLYING: "is being applied",
    TargetState.APPLIED: "applied",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentView:
    """What a comment shows besides the plan.

    Attributes:
        needs: By target what is still needed, as Markdown.
        places: By target why it waits for another pull request, as Markdown.
        link: Where the whole plan is; empty where there is no page.
        mask: Hides secrets.
        limit: How many characters the forge takes.
    """

    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    link: str = ""
    mask: Mask = field(default_factory=Mask)
    limit: int = 65_000


def count_changes(target: TargetPlan) -> Counter[str]:
    """Return how often each thing is done with a resource."""
    return Counter(change["action"] for change in _changes(target))


def render_comment(plan: PullPlan, view: CommentView) -> str:
    """Return the comment of a plan, no longer than the forge takes."""
    parts = [MARK, _title(plan), *_moved(plan), *_lost(plan, view), *_table(plan)]
    parts += [*_refused(plan, view), *_blocked(plan), *_needs(plan, view)]
    end = [*_unchanged(plan), _footer(plan, view)]
    used = sum(len(part) + 2 for part in (*parts, *end))
    shown = [one for one in plan.targets if _is_detailed(one)]
    room = (view.limit - used) // max(1, len(shown))
    details = [_detail(one, view, room) for one in shown] if room >= _LEAST_DETAIL else [_too_many(shown)]
    text = "\n\n".join([*parts, *filter(None, details), *end])
    return text if len(text) <= view.limit else _shorten(plan, view)


def _shorten(plan: PullPlan, view: CommentView) -> str:
    """Return the least that says what happens, for a forge with little room."""
    counts = _sum(plan)
    lost = f"{counts['delete']} destroyed, {counts['replace']} replaced"
    text = f"{MARK}\n\n{_title(plan)}\n\n{len(plan.targets)} targets; {lost}.\n\n{_footer(plan, view)}"
    return text[: view.limit]


def _changes(target: TargetPlan) -> list[Mapping[str, Any]]:
    return [one for one in target.document.get("changes", ()) if one["action"] in _SIGNS]


def _sum(plan: PullPlan) -> Counter[str]:
    found: Counter[str] = Counter()
    for one in plan.targets:
        found.update(count_changes(one))
    return found


def _title(plan: PullPlan) -> str:
    counts = _sum(plan)
    words = [f"{counts[action]} to {_VERBS[action]}" for action in _SIGNS if counts[action]]
    states = Counter(one.state for one in plan.targets)
    rest = [
        f"{states[state]} {_LABELS[state]}"
        for state in (TargetState.FAILED, TargetState.BLOCKED, TargetState.WAITING, TargetState.APPLIED)
        if states[state]
    ]
    if not plan.targets:
        return "### stackyard: no target changes"
    return f"### stackyard: {', '.join([*(words or ['nothing to change']), *rest])}"


def _moved(plan: PullPlan) -> Iterator[str]:
    for note in plan.notes:
        yield f"> {note}"
    if plan.moved:
        rows = "\n".join(f"- {one}" for one in plan.moved)
        yield f"**The plan that was shown before no longer fits, and is not applied:**\n\n{rows}"


def _lost(plan: PullPlan, view: CommentView) -> Iterator[str]:
    rows = [
        f"{_SIGNS[change['action']]} {_VERBS[change['action']]} {view.mask(change['subject'])}"
        f"  ({one.target}: {change['address']})"
        for action in _LOST
        for one in plan.targets
        for change in _changes(one)
        if change["action"] == action and one.state is not TargetState.APPLIED
    ]
    if rows:
        more = [f"… and {len(rows) - _MOST_LOST} more"] if len(rows) > _MOST_LOST else []
        yield "**Destroyed or replaced:**\n\n" + fence([*rows[:_MOST_LOST], *more], "diff")


def _table(plan: PullPlan) -> Iterator[str]:
    rows = [one for one in plan.targets if one.state is not TargetState.UNCHANGED]
    if not rows:
        return
    lines = ["| target | state | create | change | replace | destroy |", "|---|---|---|---|---|---|"]
    for one in sorted(rows[:_MOST_ROWS], key=_weight):
        counts = count_changes(one)
        numbers = " | ".join(
            str(counts[action] or "") for action in ("create", "update", "replace", "delete")
        )
        state = _LABELS[one.state] + (" (removed)" if one.is_removed else "")
        lines.append(f"| {code(one.target)} | {state} | {numbers} |")
    if len(rows) > _MOST_ROWS:
        lines.append(f"| … {len(rows) - _MOST_ROWS} more | | | | | |")
    yield "\n".join(lines)


def _weight(target: TargetPlan) -> tuple[int, str]:
    counts = count_changes(target)
    return (-counts["delete"] - counts["replace"], target.target)


def _refused(plan: PullPlan, view: CommentView) -> Iterator[str]:
    found = [(one, finding) for one in plan.targets for finding in _refusals(one)]
    if not found:
        return
    lines = [
        "**Refused**, until somebody who may writes one of these as a comment, or the code is corrected:"
    ]
    for one, finding in found[:_MOST_REFUSED]:
        lines.append(f"- {code(one.target)}: {code(view.mask(finding['detail']))}")
        if finding.get("permit"):
            lines.append(f"  - {code(words_for(finding['permit']))}")
        else:
            lines.append("  - nothing permits this: correct the code")
    if len(found) > _MOST_REFUSED:
        lines.append(f"- … {len(found) - _MOST_REFUSED} more")
    yield "\n".join(lines)


def _refusals(target: TargetPlan) -> list[Mapping[str, Any]]:
    if target.state is not TargetState.REFUSED:
        return []
    refused = list(target.document.get("guard", {}).get("refused", ()))
    if target.is_removed and refused and all(one.get("permit") for one in refused):
        # One word for all of it.
        detail = f"It is removed, and {len(refused)} of what it made would be destroyed."
        return [{"detail": detail, "permit": f"--allow-destroy {target.target}"}]
    return refused


def _blocked(plan: PullPlan) -> Iterator[str]:
    found = dict.fromkeys((finding, one.target) for one in plan.targets for finding in one.findings)
    rows = dict.fromkeys(finding for finding, _ in found)
    if not rows:
        return
    lines = ["**Not planned: this code could do more than plan.** Somebody who may allows this commit with"]
    lines.append(f"{code(f'stackyard allow code {plan.head}')}, after reading it:\n")
    for finding in list(rows)[:_MOST_REFUSED]:
        place = f"{finding.path}:{finding.line}" if finding.line else finding.path
        lines.append(f"- {code(place)} {finding.risk.value}: {code(finding.detail)}")
    if len(rows) > _MOST_REFUSED:
        lines.append(f"- … {len(rows) - _MOST_REFUSED} more")
    yield "\n".join(lines)


def _needs(plan: PullPlan, view: CommentView) -> Iterator[str]:
    lines = [
        f"- {code(one.target)}: {view.places[one.target]}"
        for one in plan.targets
        if one.target in view.places
    ]
    groups: dict[tuple[str, ...], list[str]] = {}
    for one in plan.targets:
        if view.needs.get(one.target):
            groups.setdefault(view.needs[one.target], []).append(code(one.target))
    for needs, names in groups.items():
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        lines.append(f"- {', '.join(names[:5])}{more}: {'; '.join(needs)}")
    if lines:
        yield "\n".join(["**Before it is applied, it needs:**", *lines])


def _is_detailed(target: TargetPlan) -> bool:
    return bool(_changes(target) or target.error or target.outcome or target.drift)


def _too_many(targets: list[TargetPlan]) -> str:
    return f"The details of {len(targets)} targets have no room here." if targets else ""


def _detail(target: TargetPlan, view: CommentView, room: int) -> str:
    lines: list[str] = []
    for reason in target.reasons:
        lines.append(f"why: {reason}")
    lines += _outcome(target)
    lines += _error(target)
    for change in sorted(_changes(target), key=lambda one: list(_SIGNS).index(one["action"])):
        lines += _change_lines(change)
    for change in target.drift:
        lines.append(f"! changed by hand since the last apply, and overwritten: {change['subject']}")
        lines += _differences(change)
    shown = [view.mask(line) for line in lines]
    title = f"<code>{html.escape(on_one_line(target.target))}</code>: {_LABELS[target.state]}"
    return fold(title, fence(cut_middle(shown, room - len(title) - 120), "diff"))


def _change_lines(change: Mapping[str, Any]) -> Iterator[str]:
    sign, verb = _SIGNS[change["action"]], _VERBS[change["action"]]
    yield f"{sign} {verb} {change['subject']}  {change['address']}"
    if change["action"] in ("update", "replace"):
        yield from _differences(change)


def _differences(change: Mapping[str, Any]) -> Iterator[str]:
    for one in change.get("differences", ()):
        forces = "  (forces the replacement)" if one.get("forces_replace") else ""
        yield f"      {one['attribute']}: {_value(one['before'])} -> {_value(one['after'])}{forces}"


def _value(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= _MOST_VALUE else f"{text[:_MOST_VALUE]}…"


def _error(target: TargetPlan) -> Iterator[str]:
    if not target.error:
        return
    yield f"{target.error.get('code')}: {target.error.get('summary')}"
    if target.error.get("exit_status") == _INPUT_ERROR or target.state is TargetState.WAITING:
        yield str(target.error.get("detail"))
        for one in list(target.error.get("diagnostics", ()))[:_MOST_REFUSED]:
            where = one.get("where") or {}
            yield f"  {where.get('file', '')}:{where.get('line') or ''} {one.get('detail')}"
    else:
        yield "What it said is in the record of the run: stackyard runs list"
    if target.error.get("remedy"):
        yield str(target.error["remedy"])


def _outcome(target: TargetPlan) -> Iterator[str]:
    applied = target.outcome.get("applied")
    if applied:
        yield f"applied: {applied['add']} created, {applied['change']} changed, {applied['remove']} destroyed"
    for guest in target.outcome.get("guests", ()):
        yield f"up: {guest['name']} ({guest['vm_id']} on {guest['node']}) {', '.join(guest['addresses'])}"
    inventory = target.outcome.get("inventory")
    if isinstance(inventory, dict) and inventory.get("error"):
        yield f"the inventory was not written: {inventory['error'].get('summary')}"


def _unchanged(plan: PullPlan) -> Iterator[str]:
    names = [one.target for one in plan.targets if one.state is TargetState.UNCHANGED]
    if names:
        lines = cut_middle(names, 3000)
        yield fold(f"{len(names)} unchanged", fence(lines))


def _footer(plan: PullPlan, view: CommentView) -> str:
    where = f"merged as {code(plan.merged[:12])}" if plan.merged else f"on {code(plan.base[:12])}"
    whole = f" [The whole plan]({view.link})" if view.link else " The whole plan: `stackyard gitops status`."
    return (
        f"Plan of {code(plan.head[:12])} {where} of {code(plan.base_branch)}, for the files "
        f"{code(plan.tree[:12])}.{whole}"
    )
