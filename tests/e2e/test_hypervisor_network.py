"""Changes of a node's network that may cut its management address: refused, permitted, killed, undone."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.engine import real_engine
from tests.support.forking import fork_program
from tests.support.path import Yard, make_yard

from stackyard import lab
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

BRIDGE: dict[str, Any] = {"address": "10.31.0.11/16", "gateway": "10.31.0.1", "ports": ["eno1"]}
RELOAD = ("--allow-network-reload", "pve1")
PERMITTED = (*RELOAD, "--allow-management-network", "pve1")


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        made = make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(real_engine(Flavour.TOFU).path))
        (made.folder / "hypervisors").mkdir()
        yield made


def write(yard: Yard, **bridge: Any) -> None:
    document = {"node": "pve1", "bridges": {"vmbr0": {**BRIDGE, **bridge}}}
    (yard.folder / "hypervisors" / "pve1.yaml").write_text(yaml.safe_dump(document))


def interfaces(yard: Yard) -> str:
    world = yard.running.world
    return str(yard.running.on_loop(lambda: world.store.items("interfaces")["pve1"]["text"]))


def is_cut_off(yard: Yard) -> bool:
    cluster = yard.running.world.cluster
    return yard.running.on_loop(lambda: cluster.is_cut_off)


def wait_until_cut_off(yard: Yard) -> None:
    until = time.monotonic() + 60
    while not is_cut_off(yard):
        assert time.monotonic() < until, "the network was not changed"
        time.sleep(0.05)


def let_the_timer_fire(yard: Yard) -> None:
    clock = yard.running.world.clock
    yard.running.on_loop(lambda: clock.advance(121))
    until = time.monotonic() + 30
    while is_cut_off(yard):
        assert time.monotonic() < until, "the node has not come back"
        time.sleep(0.05)


def list_timers(yard: Yard) -> list[str]:
    """Return the commands of the node's shell that set timers or stop them."""
    journal = yard.running.world.journal
    entries = yard.running.on_loop(lambda: [(entry.method, entry.path) for entry in journal.entries()])
    return [path for method, path in entries if method in ("SSH", "TIMER") and "way-back" in path]


@contextlib.contextmanager
def without_ssh(yard: Yard) -> Iterator[None]:
    """Say a port for SSH on which nobody answers."""
    node = yard.folder / "nodes" / "lab.yaml"
    text = node.read_text()
    node.write_text(re.sub(r"(?m)^(ssh_port|  port): \d+$", r"\1: 1", text))
    assert node.read_text() != text
    yield
    node.write_text(text)


def test_a_change_of_the_management_bridge_has_a_way_back(yard: Yard) -> None:
    write(yard)
    yard.run("apply", "hypervisor:pve1", "--adopt", "--yes", *RELOAD)
    yard.running.add_fault("network-cuts", node="pve1")

    # Refused without its own permit, and without SSH. With both, the timer is set before and stopped after.
    write(yard, mtu=1400)
    assert yard.codes("apply", "hypervisor:pve1", "--yes", *RELOAD) == ["E-GUARD-CUTS-MANAGEMENT"]
    before = interfaces(yard)
    with without_ssh(yard):
        error = yard.json("apply", "hypervisor:pve1", "--yes", *PERMITTED, status=None)["error"]
    assert error["code"] == "E-APPLY-NO-WAY-BACK"
    assert (list_timers(yard), interfaces(yard)) == ([], before)
    yard.run("apply", "hypervisor:pve1", "--yes", *PERMITTED)
    assert "systemd-run" in list_timers(yard)[0]
    assert "systemctl stop" in list_timers(yard)[-1]
    good = interfaces(yard)
    assert "mtu 1400" in good

    # A change that cuts the node off is undone, and said so.
    write(yard, mtu=1400, ports=[])
    ended: list[Any] = []
    arguments = ("apply", "hypervisor:pve1", "--yes", "--json", *PERMITTED)
    applying = threading.Thread(target=lambda: ended.append(yard.run(*arguments, status=None)))
    applying.start()
    wait_until_cut_off(yard)
    let_the_timer_fire(yard)
    applying.join()
    assert ended[0].document["error"]["code"] == "E-APPLY-NETWORK-RESTORED", ended[0].stderr
    assert interfaces(yard) == good


def test_a_node_comes_back_when_the_program_is_killed_during_a_change(yard: Yard) -> None:
    write(yard)
    yard.run("apply", "hypervisor:pve1", "--adopt", "--yes", *RELOAD)
    before = interfaces(yard)
    yard.running.add_fault("network-cuts", node="pve1")

    write(yard, address="10.99.0.11/16", gateway="10.99.0.1")
    with open(os.devnull, "r+b") as nothing:
        program = fork_program(
            ("apply", "hypervisor:pve1", "--yes", *PERMITTED),
            streams=(nothing.fileno(),) * 3,
            cwd=yard.folder,
            env={**os.environ, **yard.env},
        )
    wait_until_cut_off(yard)
    program.kill()
    program.wait()
    assert is_cut_off(yard)
    let_the_timer_fire(yard)
    assert interfaces(yard) == before

    # What was wrong is corrected, and the next run works.
    write(yard, comment="the way out", mtu=1400)
    yard.run("apply", "hypervisor:pve1", "--yes", *PERMITTED)
    assert "mtu 1400" in interfaces(yard)
    assert yard.json("plan", "hypervisor:pve1")["changes"] == []
