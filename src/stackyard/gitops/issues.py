"""The text of issues about drift: made of values, in blocks of code, masked; never what an engine printed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from stackyard.gitops.markdown import code, cut_middle, fence
from stackyard.gitops.masking import Mask

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["describe_drift", "describe_end", "issue_mark"]

_SIGNS = {"delete": "-", "replace": "±", "forget": "x", "update": "~", "create": "+"}
_MOST_CHARS = 30_000
_MOST_VALUE = 80


def issue_mark(target: str) -> str:
    """Return what the issue of a target is found by; no target has two dashes and a bracket in its name."""
    return f"<!-- stackyard: drift of {target} -->"


def describe_drift(
    target: str, document: Mapping[str, Any], commit: str, secrets: tuple[str, ...]
) -> tuple[str, str]:
    """Return the title and the text of the issue of a target that drifted.

    Args:
        target: The target.
        document: What `plan --json` printed of it.
        commit: The commit that it was planned on.
        secrets: The values that the plan logged in with.
    """
    mask = Mask(secrets)
    changes = [one for one in document.get("changes", ()) if one["action"] in _SIGNS]
    counts = Counter(str(one["action"]) for one in changes)
    numbers = ", ".join(f"{counts[action]} to {action}" for action in _SIGNS if counts[action])
    lines = [mask(line) for change in changes for line in _lines(change)]
    by_hand = [mask(line) for change in document.get("overwrites", ()) for line in _lines(change)]
    parts = [
        issue_mark(target),
        f"{code(target)} is not as the base branch says at {code(commit[:12])}: {numbers or 'outputs only'}.",
        "The plan that would mend it:",
        fence(cut_middle(lines, _MOST_CHARS), "diff"),
    ]
    if by_hand:
        parts += [
            "Changed by hand since the last apply:",
            fence(cut_middle(by_hand, _MOST_CHARS // 2), "diff"),
        ]
    parts += [
        f"{code(f'stackyard apply {target}')} applies it where the base branch is checked out. If what is"
        " there is what you want, change the code with a pull request. This issue is closed by itself."
    ]
    return f"Drift: {target}", "\n\n".join(parts)


def describe_end(target: str, commit: str) -> tuple[str, str]:
    """Return the title and the text of the issue of a target that is as it should be again."""
    text = f"{code(target)} is as the base branch says at {code(commit[:12])}."
    return f"Drift: {target}", f"{issue_mark(target)}\n\n{text}"


def _lines(change: Mapping[str, Any]) -> Iterator[str]:
    action = str(change["action"])
    yield f"{_SIGNS.get(action, '~')} {action} {change['subject']}  {change['address']}"
    if action in ("update", "replace"):
        for one in change.get("differences", ()):
            yield f"      {one['attribute']}: {_value(one['before'])} -> {_value(one['after'])}"


def _value(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= _MOST_VALUE else f"{text[:_MOST_VALUE]}…"
