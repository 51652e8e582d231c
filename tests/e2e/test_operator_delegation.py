"""Delegation to an inner Proxmox node over real SSH, with a stackyard of its own there."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.delegation import INNER, Rig, delegation_rig
from tests.support.lab_nested import PASSWORD

from pvelab.faults.kinds import add_fault
from stackyard.base import events
from stackyard.clients.ssh.shell import connect
from stackyard.operator.delegation.children_needs import make_bridge
from stackyard.operator.delegation.credentials import PRIVILEGES
from stackyard.operator.delegation.inner_host import InnerHost
from stackyard.operator.outcome import NodeStatus
from stackyard.operator.record import RunState

# A machine with two cores does all of it: both ends of SSH, the engine, and the lab itself.
pytestmark = [pytest.mark.tofu, pytest.mark.timeout(600)]

LEAVES = ({"name": "leaf1", "image": "debian-13", "spec": "base"}, {"name": "leaf2", "image": "debian-13"})
SITE = f"/var/lib/stackyard/sites/{INNER}"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with delegation_rig(tmp_path_factory.mktemp("delegation") / "site") as rig:
        with pytest.MonkeyPatch.context() as patch:
            rig.enter(patch)
            ended = rig.run(rig.delegate("create", *LEAVES))
        assert ended.outcome.success, (ended.outcome.error, ended.outcome.nodes)
        yield rig


@pytest.fixture
def rig(shared: Rig, monkeypatch: pytest.MonkeyPatch) -> Rig:
    return shared.enter(monkeypatch)


@pytest.fixture
def alone(rig: Rig) -> Iterator[Rig]:
    """The rig for a test that changes what is there, which is then as it was before."""
    yield rig
    rig.run(rig.delegate("destroy", *LEAVES))
    assert rig.guests() == {}
    assert rig.run(rig.delegate("create", *LEAVES)).outcome.success


def _lines(rig: Rig) -> list[str]:
    return [event.text for event in rig.seen if isinstance(event, events.LogLine)]


def _finds_everything_there_and_changes_nothing(rig: Rig) -> None:
    token = rig.run(rig.said(f"cat {SITE}/secrets.yaml"))
    ended = rig.run(rig.delegate("create", *LEAVES))
    assert ended.outcome.success
    nodes = {node.name: node for node in ended.outcome.nodes}
    assert set(nodes) == {"leaf1", "leaf2"}
    for node in nodes.values():
        assert (node.status, node.created, node.host) == (NodeStatus.COMPLETED, False, INNER)
        assert node.address
        assert rig.guests()[node.vm_id or 0] == node.name
    for line in ("It is there already.", "The one that it has is valid.", "Nothing of it has changed."):
        assert line in _lines(rig)
    assert not any(line.startswith("Copied") for line in _lines(rig))
    assert rig.run(rig.said(f"cat {SITE}/secrets.yaml")) == token
    counted = [event for event in rig.seen if isinstance(event, events.PlanCounted)]
    assert [(plan.add, plan.change, plan.remove) for plan in counted] == [(0, 0, 0)]
    names = [phase.name for phase in ended.phases]
    # What the guests need is made while stackyard is on its way.
    assert sorted(names[1:5]) == ["copy_images", "make_bridge", "send_archive", "unpack_archive"]
    assert [names[0], *names[5:]] == ["check_host", "make_key", "create_token", "send_site"]


def _has_what_its_subtree_needs_and_nothing_else_of_the_site(rig: Rig) -> None:
    files = rig.run(rig.said(f"cd {SITE}; find . -type f ! -path './.stackyard/*' -printf '%m %P\\n' | sort"))
    names = ["nodes/inner100.yaml", "postures/dev.yaml", "presets/small.yaml", "secrets.yaml", "site.yaml"]
    assert files.split("\n")[:-1] == [f"600 {name}" for name in (*names, "specs/base.yaml")]
    everything = rig.run(rig.said(f"cat {SITE}/*.yaml {SITE}/*/*.yaml"))
    for secret in ("outer-token", "outer-password", "strange-token", "ab" * 32):
        assert secret not in everything
    assert "$6$salt$hash" in everything
    assert "PRIVATE KEY" not in everything
    keys = rig.run(
        rig.said("grep -l 'PRIVATE KEY' /root/.ssh/* /root/* /var/lib/stackyard/* 2>/dev/null || :")
    )
    assert keys.split() == ["/var/lib/stackyard/key"]


def _has_a_token_with_privileges_of_its_own_and_no_more_than_needed(rig: Rig) -> None:
    [token] = rig.run(rig.inner.get("/access/users/stackyard@pve/token"))
    assert (token["tokenid"], token["privsep"]) == ("operator", 1)
    held = rig.run(rig.inner.get("/access/permissions", userid="stackyard@pve!operator", path="/"))["/"]
    assert set(held) <= set(PRIVILEGES)
    assert not {"Permissions.Modify", "User.Modify", "Sys.Console", "Sys.PowerMgmt"} & set(held)


def _gets_a_bridge_that_is_missing_once(rig: Rig) -> None:
    async def make() -> tuple[str, ...]:
        async with connect(rig.host(rig.port, PASSWORD)) as shell:
            return await make_bridge(InnerHost(name=INNER, shell=shell), INNER, ("vmbr0", "vmbr7"))

    assert rig.run(make()) == ("vmbr7",)
    assert rig.run(make()) == ()
    cards = rig.run(rig.inner.get(f"/nodes/{INNER}/network"))
    [bridge] = [card for card in cards if card["iface"] == "vmbr7"]
    assert (bridge["type"], bridge["active"]) == ("bridge", 1)


# One test, so that the lab and the inner host are made once, whoever else takes over tests of this file.
def test_an_inner_host_is_made_ready_once_with_what_its_subtree_needs_and_nothing_more(rig: Rig) -> None:
    _has_what_its_subtree_needs_and_nothing_else_of_the_site(rig)
    _has_a_token_with_privileges_of_its_own_and_no_more_than_needed(rig)
    _finds_everything_there_and_changes_nothing(rig)
    _gets_a_bridge_that_is_missing_once(rig)


@pytest.mark.soak
def test_a_token_that_is_no_longer_valid_is_made_anew(rig: Rig) -> None:
    before = rig.run(rig.said(f"grep operator= {SITE}/secrets.yaml"))
    rig.run(rig.inner.delete("/access/users/stackyard@pve/token/operator"))
    assert rig.run(rig.delegate("create", *LEAVES)).outcome.success
    assert rig.run(rig.said(f"grep operator= {SITE}/secrets.yaml")) != before


class _Once:
    """Does something when the engine begins to make a guest."""

    def __init__(self, name: str, deed: Callable[[], Any]) -> None:
        self._name = f"vm.{name}"
        self._deed: Callable[[], Any] | None = deed

    def __call__(self, event: events.Event) -> None:
        if not isinstance(event, events.ResourceApplied) or self._deed is None:
            return
        if event.phase is events.ApplyPhase.STARTED and self._name in event.address:
            deed, self._deed = self._deed, None
            deed()


def _slow_down(rig: Rig, seconds: float) -> None:
    fault = {"kind": "delay", "seconds": seconds, "method": "POST", "path": "/nodes/*/qemu", "times": 1}

    world = rig.inner.world

    async def add() -> None:
        with world.store.transaction():
            add_fault(world, fault)

    rig.run(add())


async def _until_nobody_runs(rig: Rig) -> None:
    """Wait until no inner run is left: it ends by itself, a moment after whoever asked for it."""
    while "inner-run" in await rig.said("cat /proc/[0-9]*/cmdline | tr '\\0' ' '"):
        await asyncio.sleep(0.2)


@pytest.mark.soak
def test_a_connection_that_is_cut_in_the_middle_is_taken_up_and_nothing_is_made_twice(alone: Rig) -> None:
    rig = alone
    _slow_down(rig, 2.0)
    cut = _Once("leaf3", rig.proxy.cut)
    ended = rig.run(rig.delegate("create", *LEAVES, {"name": "leaf3", "image": "debian-13"}, on_event=cut))
    assert ended.outcome.success
    assert "wait_host" in {phase.name for phase in ended.phases}
    assert sorted(rig.guests().values()) == ["leaf1", "leaf2", "leaf3"]
    rig.run(_until_nobody_runs(rig))


@pytest.mark.soak
@pytest.mark.parametrize("victim", ["outer", "inner"])
def test_the_same_command_ends_well_after_a_run_was_killed(alone: Rig, tmp_path: Path, victim: str) -> None:
    rig, leaf = alone, {"name": "leaf6", "image": "debian-13"}
    _slow_down(rig, 2.0)
    outer = rig.outer(*LEAVES, leaf)
    program = outer.begin(tmp_path / "said", {})
    # No program that looks for itself finds itself.
    kill_inner = "kill -9 $(grep -l 'inner[-]run' /proc/[0-9]*/cmdline | cut -d/ -f3)"

    def strike() -> None:
        if victim == "outer":
            program.kill()
        else:
            asyncio.run_coroutine_threadsafe(rig.said(kill_inner), rig.loop)

    with rig.when_a_guest_is_made(strike):
        status = program.wait()
    assert status == (-signal.SIGKILL if victim == "outer" else 0), (tmp_path / "said").read_text()
    again = outer.begin(tmp_path / "said", {})
    assert again.wait() == 0, (tmp_path / "said").read_text()
    assert sorted(rig.guests().values()) == ["leaf1", "leaf2", "leaf6"]
    rig.run(_until_nobody_runs(rig))
    locks = rig.run(rig.said(f"cd {SITE} && {rig.program} state locks --json"))
    assert json.loads(locks)["locks"] == []


@pytest.mark.soak
def test_cancelling_stops_the_engine_of_the_inner_host_and_the_next_run_goes_on(alone: Rig) -> None:
    rig, leaf = alone, {"name": "leaf4", "image": "debian-13"}
    _slow_down(rig, 2.0)

    async def scenario() -> None:
        begun = asyncio.Event()
        running = asyncio.create_task(
            rig.delegate("create", *LEAVES, leaf, on_event=_Once("leaf4", begun.set))
        )
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert "inner-run" not in await rig.said("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")

    rig.run(scenario())
    assert rig.inner_record().state is RunState.STOPPED
    assert rig.run(rig.delegate("create", *LEAVES, leaf)).outcome.success
    assert sorted(rig.guests().values()) == ["leaf1", "leaf2", "leaf4"]


@pytest.mark.soak
def test_an_inner_host_that_is_reset_in_the_middle_is_waited_for_and_goes_on(alone: Rig) -> None:
    rig = alone
    _slow_down(rig, 2.0)

    def reset() -> None:
        asyncio.run_coroutine_threadsafe(rig.api.post("/nodes/pve1/qemu/100/status/reset"), rig.loop)

    ended = rig.run(
        rig.delegate(
            "create", *LEAVES, {"name": "leaf5", "image": "debian-13"}, on_event=_Once("leaf5", reset)
        )
    )
    assert ended.outcome.success
    assert "leaf5" in rig.guests().values()
