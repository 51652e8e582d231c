"""Faults: calls, tasks and agents that go wrong because a test asked for it.

Dispatch asks at three points: before it knows who calls, before the work and after the work. Tasks ask at
each step of their work and at its end, agents when they are to answer. A rule says which calls (or tasks, or
guests) it strikes (method, path pattern, node, the nth one, a probability, how often at most) and what
happens.
"""

from __future__ import annotations

import enum
import fnmatch
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pvelab.world.upid import Upid

__all__ = ["FaultRule", "Faults", "Point", "Strike"]


class Point(enum.StrEnum):
    """Where a fault strikes a call."""

    BEFORE_AUTH = "before-auth"
    BEFORE_WORK = "before-work"
    AFTER_WORK = "after-work"
    TASK = "task"
    AGENT = "agent"
    FACTORY = "factory"
    TALOS = "talos"
    TRUENAS = "truenas"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """What happens to a struck call: a delay, then an answer or a dropped connection. Or a failing task."""

    delay_s: float = 0.0
    status: int | None = None
    reason: str = ""
    drop: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRule:
    """Which calls (or tasks) are struck, and how.

    Attributes:
        point: Where the fault strikes.
        strike: What happens.
        method: Only this method, `*` for any. For tasks: only this type.
        path: Only paths that fit this shell pattern, as under /api2/json. For tasks and agents: only this id.
        node: Only calls to (or tasks on) this node, `*` for any.
        nth: Only the nth call that fits, from one; 0 for every one.
        probability: How likely a fitting call is struck.
        times: How many calls are struck before the rule is spent; 0 for no end.
        step: For tasks: which step of the work fails, from one; 0 lets all of it be done first.
    """

    point: Point
    strike: Strike
    method: str = "*"
    path: str = "*"
    node: str = "*"
    nth: int = 0
    probability: float = 1.0
    times: int = 0
    step: int = 1


@dataclass(slots=True)
class _FaultCounts:
    seen: int = 0
    struck: int = 0
    # Tasks that the rule has met, and whether it strikes them: it decides once for each.
    tasks: dict[str, bool] = field(default_factory=dict)


@dataclass(slots=True)
class Faults:
    """The rules in force, by name."""

    randomness: random.Random = field(default_factory=random.SystemRandom)
    _rules: dict[str, FaultRule] = field(default_factory=dict)
    _counts: dict[str, _FaultCounts] = field(default_factory=dict)

    def add(self, name: str, rule: FaultRule) -> None:
        """Put a rule in force, in place of one of the same name."""
        self._rules[name] = rule
        self._counts[name] = _FaultCounts()

    def remove(self, name: str) -> bool:
        """Take a rule out of force; False if there is none of that name."""
        self._counts.pop(name, None)
        return self._rules.pop(name, None) is not None

    def clear(self) -> None:
        """Take all rules out of force."""
        self._rules.clear()
        self._counts.clear()

    def rules(self) -> dict[str, tuple[FaultRule, int, int]]:
        """Return every rule with how many calls it has seen and struck."""
        return {
            name: (rule, self._counts[name].seen, self._counts[name].struck)
            for name, rule in self._rules.items()
        }

    def strike(self, point: Point, method: str, path: str, node: str) -> Strike | None:
        """Return what happens to a call at a point, None for nothing."""
        for name, rule in self._rules.items():
            if rule.point is point and _fits(rule, method, path, node) and self._counts_in(name, rule):
                return rule.strike
        return None

    def task_problem(self, upid: Upid, step: int) -> str | None:
        """Return the text with which a task is to fail now, or None.

        Args:
            upid: The task.
            step: How many steps of its work it has begun, 0 when all of it is done.
        """
        for name, rule in self._rules.items():
            if rule.point is not Point.TASK or not _fits(rule, upid.type, upid.id, upid.node):
                continue
            decided, key = self._counts[name].tasks, str(upid)
            if key not in decided:
                decided[key] = self._counts_in(name, rule)
            # A task with fewer steps fails at its end.
            if decided[key] and step in (rule.step, 0):
                decided[key] = False
                return rule.strike.reason
        return None

    def task_ended(self, upid: Upid) -> None:
        """Forget a task."""
        for counts in self._counts.values():
            counts.tasks.pop(str(upid), None)

    def silences(self, vmid: int, node: str) -> bool:
        """Return whether the agent of a guest is not to answer."""
        return self.strike(Point.AGENT, "*", str(vmid), node) is not None

    def _counts_in(self, name: str, rule: FaultRule) -> bool:
        counts = self._counts[name]
        counts.seen += 1
        if rule.nth and counts.seen != rule.nth:
            return False
        if rule.times and counts.struck >= rule.times:
            return False
        if self.randomness.random() >= rule.probability:
            return False
        counts.struck += 1
        return True


def _fits(rule: FaultRule, method: str, path: str, node: str) -> bool:
    return (
        rule.method in ("*", method)
        and rule.node in ("*", node)
        and (rule.path == "*" or fnmatch.fnmatchcase(path, rule.path))
    )
