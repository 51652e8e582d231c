"""Random histories of pull requests, played on the server of GitOps and held against a model."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from tests.support.soak_engine import NUMBER, Engine, wanted_in
from tests.support.soak_forge import SoakForge

from stackyard.clients.forge.model import MergeMethod, PullState
from stackyard.gitops.actions import FlowActions
from stackyard.gitops.checkout import open_checkouts
from stackyard.gitops.context import GitopsContext
from stackyard.gitops.jobs import look_job, reconcile_job
from stackyard.gitops.model import TargetState
from stackyard.gitops.record import PullRecords
from stackyard.gitops.serve import GitopsService, ServicePlan, gitops_service
from stackyard.sources.store import ChosenStore

__all__ = ["History", "play"]

STACKS = ("a", "b", "c")
PATIENCE_S = 240.0
_ALLOW = re.compile(r"`(stackyard allow destroy [^`]+)`")
_DONE = (TargetState.APPLIED, TargetState.UNCHANGED)
_OURS = 'terraform {\n  backend "http" {}\n}\n'


class _Actions(FlowActions):
    """The work of the server, which says whose it is."""

    async def apply(self, number: int, targets: frozenset[str] | None) -> None:
        NUMBER.set(number)
        await super().apply(number, targets)


@dataclass
class History:
    """One history.

    Attributes:
        counts: What happened how often.
        wrong: What differs from the model.
    """

    seed: int
    folder: Path
    is_real: bool = False
    is_before_merge: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.forge = SoakForge(folder=self.folder / "origin")
        self.engine = Engine(self.forge, self.chance, is_real=self.is_real)
        self.store = ChosenStore(base=self.folder / "control" / ".stackyard")
        self.told: list[str] = []
        self.deliveries = 0
        self.torn: set[str] = set()

    # --- The server

    @contextlib.asynccontextmanager
    async def _server(self) -> AsyncIterator[GitopsService]:
        url = self.forge.clone_access.url
        checkouts = open_checkouts(url, cache=self.folder / "cache", may_be_local=True)
        context = GitopsContext(forge=self.forge, checkouts=checkouts, store=self.store)
        plan = ServicePlan(
            repository=self.forge.name,
            forge=self.forge,
            store=self.store,
            actions=_Actions(context),
            secrets=("s",),
            emit=lambda event: self.told.append(str(event)),
            reconcile_every_s=3600.0,
            first_pause_s=0.02,
        )
        self.forge.was_killed = False
        async with gitops_service(plan) as service:
            yield service

    async def _hint(self, service: GitopsService, number: int, *, may_be_lost: bool = True) -> None:
        """Send the webhook of a change, lose it, or send it twice."""
        self.deliveries += 1
        lot = self.chance.random() if may_be_lost else 0.5
        if lot < 0.15:
            self.counts["lost webhooks"] += 1
            return
        for _ in range(2 if lot > 0.9 else 1):
            await service.queue.put(look_job(number), delivery=f"d-{self.deliveries}")

    async def _idle(self, service: GitopsService) -> bool:
        """Wait until nothing is left to do; return whether the worker lived until then."""
        end = time.monotonic() + PATIENCE_S
        while await service.queue.pending():
            if self.forge.was_killed:
                return False
            if time.monotonic() > end:
                raise AssertionError(f"seed {self.seed}: never idle: {self.told[-5:]}")
            await asyncio.sleep(0.01)
        return not self.forge.was_killed

    # --- The history

    async def play(self) -> None:
        rules = "gitops: {apply: before-merge}\n" if self.is_before_merge else "gitops: {approvals: 1}\n"
        files: dict[str, str | None] = {f"stacks/{one}/main.tf": _OURS for one in STACKS}
        self.forge.begin({**files, "stackyard.yaml": rules})
        with (
            mock.patch("stackyard.gitops.plan.run_verb", self.engine.run),
            mock.patch("stackyard.gitops.apply.run_verb", self.engine.run),
        ):
            left = self.chance.randint(10, 18)
            while left:
                async with self._server() as service:
                    while left and not self.forge.was_killed:
                        left -= 1
                        await self._step(service)
                        if self.chance.random() < 0.6 and not await self._idle(service):
                            break
                    await self._idle(service)
                self.counts["kills"] += self.forge.was_killed
            await self._settle()
        self.counts.update(self.engine.counts)
        self.wrong += self.engine.wrong

    async def _step(self, service: GitopsService) -> None:
        numbers = [one.number for one in self.forge.all_pulls.values() if one.state is PullState.OPEN]
        merged = [one.number for one in self.forge.all_pulls.values() if one.state is PullState.MERGED]
        if not numbers or self.chance.random() < 0.15:
            number, what = len(self.forge.all_pulls) + 1, "opened"
        else:
            number = self.chance.choice(numbers)
            what = self.chance.choices(*zip(*_WEIGHTS.items(), strict=True))[0]
        if what == "said" and merged and self.chance.random() < 0.5:
            number = self.chance.choice(merged)
        self.counts[what] += 1
        if what == "dismissed" and not await self._idle(service):
            return
        await self._do(what, number)
        await self._hint(service, number)

    async def _do(self, what: str, number: int) -> None:
        forge, chance = self.forge, self.chance
        match what:
            case "opened" | "pushed" | "force-pushed":
                # What it applied before, and no longer changes, is left to the check for drift.
                self.torn.update(self.engine.applied_by[number] if self.is_before_merge else ())
                forge.push(number, self._change(), is_forced=what == "force-pushed")
            case "base moved":
                forge.move_base({f"note{chance.randint(1, 9)}": str(chance.random())})
            case "approved":
                forge.approve(number, chance.choice(("bob", "bob", "bob", "ann", "eve")))
            case "dismissed":
                forge.take_back(number, "bob")
            case "said":
                self._say(number)
            case "merged":
                if not forge.join(number, chance.choice(list(MergeMethod))):
                    self.counts["conflicts"] += 1
            case "closed":
                self._close(number)
            case "comment lost":
                forge.lose_comment(number)
            case "killed":
                forge.kill_in = chance.randint(1, 25)
            case "away":
                forge.away_in = chance.randint(1, 15)

    def _change(self) -> dict[str, str | None]:
        found: dict[str, str | None] = {}
        for _ in range(self.chance.randint(1, 2)):
            stack, name = self.chance.choice(STACKS), f"n{self.chance.randint(1, 4)}"
            value = f"v{self.chance.randint(1, 99)}"
            text = f'resource "terraform_data" "{name}" {{\n  input = "{value}"\n}}\n'
            found[f"stacks/{stack}/{name}.tf"] = text if self.chance.random() < 0.75 else None
        return found

    def _say(self, number: int) -> None:
        asked = [f"stackyard apply stack:{self.chance.choice(STACKS)}", "stackyard apply", "stackyard unlock"]
        asked += ["stackyard plan", *_ALLOW.findall(self.forge.shown(number))]
        self.forge.say(number, self.chance.choice(("bob", "bob", "ann", "eve")), self.chance.choice(asked))

    def _close(self, number: int) -> None:
        """Close it; what it applied before is then nobody's."""
        self.forge.change(number, state=PullState.CLOSED)
        if self.is_before_merge:
            self.torn.update(f"stack:{one}" for one in STACKS)

    # --- The end: everything is merged, approved and applied, and nothing may be missing

    async def _settle(self) -> None:
        self.forge.kill_in = self.forge.away_in = 0
        for number, pull in list(self.forge.all_pulls.items()):
            if pull.state is PullState.OPEN and not self.forge.join(number, MergeMethod.MERGE):
                self.torn.update(f"stack:{one}" for one in STACKS if self.is_before_merge)
                self.forge.change(number, state=PullState.CLOSED)
        async with self._server() as service:
            # What no webhook told of is found.
            await service.queue.put(reconcile_job())
            await self._idle(service)
            for _ in range(8):
                unsettled = self._unsettled()
                if not unsettled:
                    break
                for number in unsettled:
                    await self._press(service, number)
        self._compare()

    async def _press(self, service: GitopsService, number: int) -> None:
        """Do what the comment of a merged pull request asks for."""
        shown = self.forge.shown(number)
        said = _ALLOW.findall(shown)
        said += ["stackyard plan"] if "`stackyard plan`" in shown else []
        for text in [*dict.fromkeys(said), "stackyard apply"]:
            self.forge.say(number, "bob", text)
            await self._hint(service, number, may_be_lost=False)
            await self._idle(service)

    def _unsettled(self) -> list[int]:
        """Return the merged pull requests with something that is not applied; none may be unknown."""
        records, found = PullRecords(self.store, self.forge.name), []
        for number, pull in self.forge.all_pulls.items():
            if pull.state is not PullState.MERGED:
                continue
            record = records.get(number)
            if record is None or any(one.state not in _DONE for one in record.plan.targets):
                found.append(number)
        return found

    def _compare(self) -> None:
        records = PullRecords(self.store, self.forge.name)
        for number in self._unsettled():
            record = records.get(number)
            states = record and {one.target: (one.state.value, one.error) for one in record.plan.targets}
            self.wrong.append(f"pull request {number} never ends: {states}\n{self.forge.shown(number)}")
        self.forge.run("checkout", "--quiet", "main")
        for stack in STACKS:
            wanted = wanted_in(self.forge.folder / "stacks" / stack)
            there = self.engine.states.get(f"stack:{stack}", {})
            if wanted != there and f"stack:{stack}" not in self.torn:
                self.wrong.append(f"stack:{stack} is {there}, and main says {wanted}")


_WEIGHTS = {
    "pushed": 3,
    "force-pushed": 2,
    "base moved": 1,
    "approved": 7,
    "dismissed": 1,
    "said": 5,
    "merged": 5,
    "closed": 1,
    "comment lost": 1,
    "killed": 3,
    "away": 2,
}


async def play(seed: int, folder: Path, *, is_real: bool = False) -> History:
    """Play the history of a seed; every fourth one applies before the merge."""
    history = History(seed=seed, folder=folder, is_real=is_real, is_before_merge=seed % 4 == 3)
    await history.play()
    return history
