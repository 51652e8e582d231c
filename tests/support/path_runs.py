"""The path driven in this process against a lab, again and again from nothing, with something going wrong."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.lab_consistency import problems_in
from tests.support.path import Yard
from tests.support.site_store import pending

from pvelab.server.journal import Journal, JournalEntry
from stackyard import lab
from stackyard.base import events
from stackyard.base.errors import StackyardError
from stackyard.clients.objects import open_objects
from stackyard.engine.changes import Action, Changes
from stackyard.path.apply import apply_plan
from stackyard.path.environment import EnvironmentSource
from stackyard.path.plan import make_plan
from stackyard.path.run import RunSettings, open_run
from stackyard.path.target import Resolved
from stackyard.sources.store import ChosenStore
from stackyard.state import StateService

__all__ = ["DNS", "GUEST_TYPES", "WEB", "Rig", "WatchedJournal", "describe", "watch_calls"]

WEB: dict[str, Any] = {"name": "web", "vmid": 500, "preset": "vm-xsmall", "image": "debian-12"}
DNS: dict[str, Any] = {
    "name": "dns",
    "type": "ct",
    "vmid": 501,
    "image": "debian-13-ct",
    "cores": 1,
    "memory": 512,
    "disk": 4,
}
GUEST_TYPES = ("proxmox_virtual_environment_vm", "proxmox_virtual_environment_container")
_CREATES = ("qmcreate", "qmclone", "vzcreate", "vzclone")


class WatchedJournal(Journal):
    """A journal that tells somebody of each call, after its work and before its answer."""

    __slots__ = ("on_call",)

    def __init__(self) -> None:
        super().__init__()
        self.on_call: Callable[[JournalEntry], None] | None = None

    def add(self, **facts: Any) -> None:
        super().add(**facts)
        if self.on_call is not None:
            self.on_call(self.entries(self.count - 1)[0])


def watch_calls(running: lab.Running) -> WatchedJournal:
    """Let a lab keep its journal in one that can be watched; what it does runs in the lab's thread."""
    journal = WatchedJournal()
    # The world is frozen for the lab's own code; a test may look over its shoulder.
    running.on_loop(lambda: object.__setattr__(running.world, "journal", journal))
    return journal


@dataclass(kw_only=True)
class Rig:
    """One target, which is made from nothing in each case."""

    yard: Yard
    resolved: Resolved = field(init=False)

    def __post_init__(self) -> None:
        self.resolve()

    def resolve(self) -> None:
        """Read the site again."""
        self.resolved = EnvironmentSource.find(str(self.yard.folder)).resolve("t", None)

    @property
    def base(self) -> Path:
        return self.yard.folder / ".stackyard"

    def begin(self) -> None:
        """Make lab and state new; the folder in which the engine works stays prepared."""
        control(self.yard.running, "reset")
        for name in ("state", "journal"):
            shutil.rmtree(self.base / name, ignore_errors=True)

    def apply(self, *, verify: bool = False, emit: events.Emit = events.ignore) -> StackyardError | None:
        """Apply as the command does; return the error with which it ended."""

        async def main() -> None:
            async with (
                open_run(self.resolved, RunSettings(store=ChosenStore(base=self.base)), emit=emit) as run,
                make_plan(run) as made,
            ):
                made.verdict.raise_refusal("t")
                if not made.changes.is_empty:
                    await apply_plan(run, made, is_verified=verify)

        try:
            asyncio.run(main())
        except StackyardError as err:
            return err
        return None

    def plan(self) -> Changes:
        """Return what a plan would change."""

        async def main() -> Changes:
            async with (
                open_run(self.resolved, RunSettings(store=ChosenStore(base=self.base))) as run,
                make_plan(run) as made,
            ):
                return made.changes

        return asyncio.run(main())

    def in_state(self) -> list[int]:
        """Return the vm ids of the guests in the state."""
        objects = open_objects(self.base / "state")
        try:
            content = StateService(objects).contents.read(self.resolved.target.state_name)
        finally:
            objects.close()
        resources = json.loads(content.body.data)["resources"] if content is not None else []
        return sorted(
            int(instance["attributes"]["vm_id"])
            for resource in resources
            if resource["mode"] == "managed" and resource["type"] in GUEST_TYPES
            for instance in resource["instances"]
        )

    def creations(self) -> dict[int, int]:
        """Return how many guests were made for each vm id and not removed again by their own failure."""
        found: dict[int, int] = {}
        for entry in self.yard.running.world.journal.entries():
            parts = (entry.result or "").split(":")
            if len(parts) > 7 and parts[5] in _CREATES:
                found[int(parts[6])] = found.get(int(parts[6]), 0) + self._ended_well(entry.result or "")
        return found

    def _ended_well(self, upid: str) -> bool:
        return (self.yard.running.world.tasks.get(upid) or {}).get("status") == "OK"

    def settle(self) -> None:
        """Apply once more, and find exactly the wanted guests: each once, in the state, nothing to do."""
        error = self.apply()
        assert error is None, describe(error)
        wanted = sorted(guest.vm_id or 0 for guest in self.resolved.desired.guests)
        assert sorted(self.yard.guests()) == wanted
        assert self.in_state() == wanted
        assert {guest["status"] for guest in self.yard.guests().values()} == {"running"}
        changes = self.plan()
        assert changes.is_empty, [c.address for c in changes.planned if c.action is not Action.NOTHING]
        assert pending(self.base) == []
        assert self.yard.running.on_loop(lambda: problems_in(self.yard.running.world)) == []


def describe(error: StackyardError) -> str:
    """Return all that an error says."""
    findings = getattr(error, "findings", ())
    return "\n".join([f"{error.code} {error.detail}", *(str(found) for found in findings)])


def control(running: lab.Running, path: str, **values: Any) -> Any:
    """Call a control route of a lab from another thread than its own."""
    request = urllib.request.Request(
        f"{running.url}/_lab/{path}",
        data=json.dumps(values).encode(),
        headers={"Authorization": f"PVEAPIToken={running.api_token}", "Content-Type": "application/json"},
        method="POST",
    )
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with urllib.request.urlopen(request, context=context, timeout=60) as answer:
        return json.loads(answer.read())
