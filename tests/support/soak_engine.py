"""Runs of stacks for long tests: real ones, or ones of the same rules in memory; each apply is judged.

An apply is judged by what the forge remembers, never by what the product recorded.
"""

from __future__ import annotations

import contextvars
import itertools
import random
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.repositories import git
from tests.support.soak_forge import Approval, SoakForge

from stackyard.gitops.context import GitopsContext
from stackyard.gitops.model import Checkout
from stackyard.gitops.runs import TargetRun, VerbAnswer, run_verb

__all__ = ["NUMBER", "Engine", "Planned", "wanted_in"]

# The pull request that is being worked on.
NUMBER: contextvars.ContextVar[int] = contextvars.ContextVar("number", default=0)
_SIGNS = {"delete": "- destroy", "update": "~ change", "create": "+ create", "replace": "± replace"}
_INPUT = re.compile(r'input = "(\w+)"')


def wanted_in(folder: Path) -> dict[str, str]:
    """Return the resources that the code of a stack has, with their input."""
    found = {}
    for path in sorted(folder.glob("n*.tf")):
        said = _INPUT.search(path.read_text())
        assert said is not None
        found[path.stem] = said.group(1)
    return found


@dataclass(frozen=True)
class Planned:
    """A saved plan."""

    target: str
    tree: str
    serial: int
    changes: tuple[tuple[str, str], ...]
    wanted: Mapping[str, str]


@dataclass
class Engine:
    """Plans and applies stacks, and says what is wrong with an apply.

    Attributes:
        is_real: Whether the runs are the real ones.
        wrong: What should not have happened.
        states: By target, what is there.
        serials: By target, how often it was changed.
        applied_by: By pull request, what it applied.
        applied: Saved plans, in the order in which they were applied.
    """

    forge: SoakForge
    chance: random.Random
    is_real: bool = False
    wrong: list[str] = field(default_factory=list)
    states: dict[str, dict[str, str]] = field(default_factory=dict)
    serials: Counter[str] = field(default_factory=Counter)
    plans: dict[str, Planned] = field(default_factory=dict)
    applied: list[str] = field(default_factory=list)
    positions: dict[str, int] = field(default_factory=dict)
    applied_by: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    counts: Counter[str] = field(default_factory=Counter)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    async def run(self, context: GitopsContext, checkout: Checkout, run: TargetRun) -> VerbAnswer:
        """Stand in for the run of a verb."""
        self.forge.maybe_die()
        if run.verb == "plan":
            answer = await self._plan(context, checkout, run)
        else:
            answer = await self._apply(context, checkout, run)
        # The work is done, and nobody recorded it yet.
        self.forge.maybe_die()
        return answer

    async def _plan(self, context: GitopsContext, checkout: Checkout, run: TargetRun) -> VerbAnswer:
        self.counts["plans"] += 1
        wanted = wanted_in(checkout.folder / "stacks" / run.target.removeprefix("stack:"))
        if self.is_real:
            answer = await run_verb(context, checkout, run)
        else:
            answer = self._play_plan(run, wanted)
        if plan := answer.document.get("plan"):
            listed = [
                (one["action"], one["address"])
                for one in answer.document["changes"]
                if one["action"] in _SIGNS
            ]
            self.plans[plan] = Planned(
                target=run.target,
                tree=checkout.tree,
                serial=self.serials[run.target],
                changes=tuple(listed),
                wanted=wanted,
            )
        return answer

    def _play_plan(self, run: TargetRun, wanted: Mapping[str, str]) -> VerbAnswer:
        there = self.states.get(run.target, {})
        changes, refused = [], []
        allowed = _allowed_in(run)
        for name in sorted({*there, *wanted}):
            address = f"terraform_data.{name}"
            action = "create" if name not in there else "delete" if name not in wanted else "update"
            if there.get(name) == wanted.get(name):
                continue
            changes.append({"action": action, "address": address, "subject": address, "differences": []})
            if action == "delete" and not allowed & {address, run.target}:
                refused.append({"detail": f"{address} would go", "permit": f"--allow-destroy {address}"})
        document = {
            "changes": changes,
            "has_changes": bool(changes),
            "guard": {"refused": refused},
            "plan": f"store:p{next(self.numbers)}",
            "bound_to": {"state": str(self.serials[run.target])},
        }
        return VerbAnswer(status=3 if refused else 0, document=document)

    async def _apply(self, context: GitopsContext, checkout: Checkout, run: TargetRun) -> VerbAnswer:
        name = run.words[run.words.index("--plan") + 1]
        plan = self.plans[name]
        self._judge(checkout, name, plan)
        if self.is_real:
            answer = await run_verb(context, checkout, run)
        else:
            answer = self._play_apply(context, checkout, plan)
        self.counts[str(answer.error.get("code", "applies"))] += 1
        if not answer.error and answer.status == 0:
            self._note(checkout, name, plan)
        return answer

    def _play_apply(self, context: GitopsContext, checkout: Checkout, plan: Planned) -> VerbAnswer:
        folder = f"stacks/{plan.target.removeprefix('stack:')}"
        tip = git(checkout.folder, "rev-parse", "refs/remotes/origin/main").stdout.strip()
        is_merged = bool(tip and self.forge.all_pulls[NUMBER.get()].merge_commit)
        if is_merged and git(checkout.folder, "diff", "--quiet", "HEAD", tip, "--", folder).returncode:
            return VerbAnswer(status=65, error={"code": "E-STACK-OUTDATED", "detail": "newer files"})
        if plan.serial != self.serials[plan.target] or plan.tree != checkout.tree:
            return VerbAnswer(status=75, error={"code": "E-PLAN-MOVED", "detail": "the state moved"})
        self.states[plan.target] = dict(plan.wanted)
        return VerbAnswer(status=0, document={"applied": {"add": 1, "change": 0, "remove": 0}})

    def _note(self, checkout: Checkout, name: str, plan: Planned) -> None:
        self.serials[plan.target] += 1
        self.applied_by[NUMBER.get()].add(plan.target)
        self.states[plan.target] = dict(plan.wanted)
        if name in self.applied:
            self.wrong.append(f"{name} of {plan.target} was applied twice")
        self.applied.append(name)
        if checkout.commit not in self.forge.run("rev-list", "main").split():
            return
        position = int(self.forge.run("rev-list", "--count", "--first-parent", checkout.commit))
        if position < self.positions.get(plan.target, 0):
            self.wrong.append(f"{plan.target} was applied out of order: {position}")
        self.positions[plan.target] = position

    # --- What is right

    def _judge(self, checkout: Checkout, name: str, plan: Planned) -> None:
        number = NUMBER.get()
        where = f"pull request {number}, {plan.target}, {name}"
        if plan.tree != checkout.tree:
            self.wrong.append(f"{where}: it is applied with other files than it was made of")
        good = [one for one in self.forge.approvals if self._is_good(one, number, plan)]
        if not good:
            self.wrong.append(f"{where}: nobody approved what is applied")
        allowed = self.forge.allowed.get(number, set())
        lost = {address for action, address in plan.changes if action in ("delete", "replace")}
        if lost - allowed and plan.target not in allowed:
            self.wrong.append(f"{where}: nobody allowed to destroy {sorted(lost - allowed)}")

    def _is_good(self, one: Approval, number: int, plan: Planned) -> bool:
        pull = self.forge.all_pulls[number]
        may = one.number == number and one.login not in (pull.author, "eve") and not one.is_taken_back
        if not may or one.head not in ("", pull.head) or one.target not in ("", plan.target):
            return False
        rows = [f"{_SIGNS[action]} {address}  {address}" for action, address in plan.changes]
        files = f"for the files `{plan.tree[:12]}`"
        return plan.target in one.body and files in one.body and all(row in one.body for row in rows)


def _allowed_in(run: TargetRun) -> set[str]:
    if "--allow-destroy" not in run.words:
        return set()
    return set(run.words[run.words.index("--allow-destroy") + 1].split(","))
