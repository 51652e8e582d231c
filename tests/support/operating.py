"""The operator driven in this process against a lab, with hands whose work on guests a test decides."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import real_engine
from tests.support.path import Yard, make_yard

from stackyard import lab
from stackyard.base import events
from stackyard.clients.objects import open_objects
from stackyard.desired import Guest
from stackyard.engine.version import Flavour
from stackyard.operator.delegation.delegate import Delegated
from stackyard.operator.guest_actions import GuestActions, HandsFor
from stackyard.operator.outcome import NodeOutcome, NodeStatus, Phase, PhaseStatus, RunOutcome, Verb
from stackyard.operator.record import RunRecord
from stackyard.operator.record_store import RecordStore
from stackyard.operator.request import VerbRequest
from stackyard.operator.verbs import run_verb
from stackyard.path.target import Target
from stackyard.path.verify import GuestUp
from stackyard.sources.manifest.model import Manifest, Node
from stackyard.sources.store import ChosenStore
from stackyard.state import StateService
from stackyard.state.inside import read_view

__all__ = ["Ground", "Played", "guest", "laid_out", "manifest_text"]

# Where guests of a lab reach this machine.
GATEWAY = "10.31.0.1"
_SIZE = {"cores": 1, "memory": 512, "disk": 4}


def guest(name: str, vm_id: int, **more: Any) -> dict[str, Any]:
    """Return a node of a manifest that needs nothing of the site but an image."""
    return {"name": name, "type": "vm", "vmid": vm_id, "image": "debian-12", **_SIZE, **more}


def manifest_text(name: str, *nodes: dict[str, Any], **settings: Any) -> str:
    """Return a manifest."""
    document = {"schema_version": 2, "name": name, "nodes": list(nodes), "settings": settings}
    return json.dumps(document)


@dataclass
class Played:
    """Hands that take note of what they are asked for, and fail where a test says so.

    Attributes:
        fails: Nodes whose configuration fails.
        wrong: Nodes that are not what they should be when they are looked at.
        inside: What the operator inside of a node answers to a verb; everything is well when absent.
        log: What was asked for, in order.
        on_configure: Called before a node is configured.
    """

    fails: set[str] = field(default_factory=set)
    wrong: set[str] = field(default_factory=set)
    inside: Callable[[Verb, Manifest, VerbRequest], RunOutcome] | None = None
    log: list[tuple[str, ...]] = field(default_factory=list)
    on_configure: Callable[[str], Any] | None = None

    @contextlib.asynccontextmanager
    async def for_host(self, host: str) -> AsyncIterator[GuestActions]:
        del host
        yield self

    async def configure(self, node: Node, guest: Guest, up: GuestUp) -> tuple[Phase, ...]:
        del guest
        self.log.append(("configure", node.name, up.addresses[0]))
        if self.on_configure is not None:
            await self.on_configure(node.name)
        is_bad = node.name in self.fails
        return (Phase(name="apply_spec", status=_status(is_bad), detail="no room" if is_bad else ""),)

    async def inspect(self, node: Node, guest: Guest, up: GuestUp) -> tuple[Phase, ...]:
        del guest, up
        self.log.append(("inspect", node.name))
        is_bad = node.name in self.wrong
        return (Phase(name="verify_packages", status=_status(is_bad), detail="htop is missing"),)

    async def delegate(
        self, verb: Verb, node: Node, guest: Guest, up: GuestUp, *, subtree: Manifest, request: VerbRequest
    ) -> Delegated:
        del guest, up
        self.log.append((f"delegate {verb}", node.name, *request.targets))
        outcome = (self.inside or all_well)(verb, subtree, request)
        return Delegated(outcome=outcome, phases=(Phase(name="bootstrap_host"),))


def _status(is_bad: bool) -> PhaseStatus:
    return PhaseStatus.FAILED if is_bad else PhaseStatus.PASSED


def all_well(verb: Verb, subtree: Manifest, request: VerbRequest) -> RunOutcome:
    """Return what an inner operator says when everything went well."""
    wanted = set(request.targets) or set(subtree.by_name)
    status = NodeStatus.DESTROYED if verb is Verb.DESTROY else NodeStatus.COMPLETED
    nodes = tuple(
        NodeOutcome(
            name=node.name,
            type=node.type.value,
            status=status,
            host="inner",
            vm_id=node.entry.get("vmid"),
            address="10.9.9.9",
            depth=subtree.depth(node.name),
            created=verb is Verb.CREATE,
        )
        for node in subtree.nodes
        if node.name in wanted
    )
    return RunOutcome(
        verb=verb,
        manifest=subtree.name,
        host="inner",
        success=True,
        started_at="2026-01-01T00:00:00Z",
        duration_s=0.1,
        nodes=nodes,
    )


@dataclass(kw_only=True)
class Ground:
    """A site made for a lab, and the operator in this process.

    Attributes:
        yard: The site, and the program run in it.
        env: What it needs in the environment: the engine, and the home whose keys open the secrets.
    """

    yard: Yard
    env: dict[str, str]

    def enter(self, patch: pytest.MonkeyPatch) -> Ground:
        """Use it in a test, which begins with an environment of its own."""
        for name, value in self.env.items():
            patch.setenv(name, value)
        return self

    def run(
        self,
        verb: str,
        text: str,
        guest_actions: Played | None = None,
        *,
        emit: events.Emit = events.ignore,
        **plan_request: Any,
    ) -> RunOutcome:
        """Run a verb to its end."""
        return asyncio.run(self.running(verb, text, guest_actions, emit=emit, **plan_request))

    async def running(
        self,
        verb: str,
        text: str,
        guest_actions: Played | None = None,
        *,
        emit: events.Emit = events.ignore,
        **plan_request: Any,
    ) -> RunOutcome:
        """Run a verb."""
        said: dict[str, Any] = {"host": "lab", "skip_preflight": True, **plan_request}
        request = VerbRequest(text=text, site=str(self.yard.folder), **said)
        guest_actions_for: HandsFor = (guest_actions or Played()).for_host
        return await run_verb(Verb(verb), request, emit, guest_actions_for=guest_actions_for)

    def guests(self, *, above: int, below: int) -> dict[int, str]:
        """Return the names of the guests of the lab within a range of ids."""
        found = self.yard.guests()
        return {
            vm_id: one["config"].get("name", "") for vm_id, one in found.items() if above <= vm_id < below
        }

    def in_state(self, manifest: str, host: str = "lab") -> list[str]:
        """Return the addresses of what the state of a manifest has."""
        with contextlib.closing(open_objects(self.yard.folder / ".stackyard" / "state")) as objects:
            target = Target(kind="manifest", name=manifest, node=host)
            content = StateService(objects).contents.read(target.state_name)
        return [] if content is None else sorted(read_view(content.body.data).instances)

    def book(self, manifest: str, host: str = "lab") -> RecordStore:
        """Return where the record of a manifest is."""
        return RecordStore(ChosenStore(base=self.yard.folder / ".stackyard"), manifest, host)

    def record(self, manifest: str, host: str = "lab") -> RunRecord:
        """Return the record of a manifest."""
        found = self.book(manifest, host).read()
        assert found is not None
        return found


@contextlib.contextmanager
def laid_out(
    folder: Path, *nodes: str, guests: lab.Kind = lab.Kind.RECORDED, controller_port: int | None = None
) -> Iterator[Ground]:
    """Run a lab and make a site for it.

    Args:
        folder: Where.
        nodes: The nodes of the lab; one when absent.
        guests: What is inside of its guests.
        controller_port: A port of this machine that guests reach, to fetch their specs from.
    """
    engine = real_engine(Flavour.TOFU)
    home = folder / "home"
    home.mkdir()
    env = {"STACKYARD_TOFU": str(engine.path), "HOME": str(home)}
    env |= {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA", "STATE")}
    options: dict[str, Any] = {"nodes": nodes or ("pve1",), "ssh_port": 0, "guests": guests}
    if controller_port is not None:
        options["expose"] = (controller_port,)
    with lab.running(**options) as running:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in env.items():
                patch.setenv(name, value)
            yard = make_yard(running, folder / "site", **env)
        if controller_port is not None:
            node = yard.folder / "nodes" / "lab.yaml"
            said = f"controller_address: {GATEWAY}\ncontroller_port: {controller_port}\n"
            node.write_text(f"{node.read_text()}{said}")
        yield Ground(yard=yard, env=env)
