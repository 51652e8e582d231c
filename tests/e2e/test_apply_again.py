"""An apply after one that did not end: it waits for the guests of both, and publishes the inventory."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import PROGRAM
from tests.support.engine import real_engine
from tests.support.path import SMALL_GUEST, Yard, make_yard
from tests.support.path_runs import watch_calls

from pvelab.faults.latency import Work
from pvelab.server.journal import JournalEntry
from stackyard import lab
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

WEB: dict[str, Any] = {**SMALL_GUEST, "name": "web", "vmid": 501}
DNS: dict[str, Any] = {**SMALL_GUEST, "name": "dns", "vmid": 502}
# Longer than any test: a guest boots only when a test lets it.
NEVER_S = 10_000.0


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    engine = real_engine(Flavour.TOFU)
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        made = make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(engine.path))
        made.write_env("t", [WEB, DNS])
        yield made


def set_boot_time(yard: Yard, seconds: float) -> None:
    overrides = {Work.BOOT: seconds}
    yard.running.on_loop(lambda: setattr(yard.running.world.latency, "overrides_s", overrides))


def boot_when_asked(yard: Yard, vm_id: int) -> list[str]:
    """Let guests boot once the addresses of one were asked for; return the requests for them."""
    asked: list[str] = []

    def saw(entry: JournalEntry) -> None:
        if entry.path.endswith(f"/{vm_id}/interfaces"):
            asked.append(entry.path)
            # This is the thread of the lab.
            yard.running.world.latency.overrides_s = {}

    watch_calls(yard.running).on_call = saw
    return asked


def interrupt_apply(yard: Yard) -> None:
    """Apply, and press Ctrl-C when the first guest has been created."""
    journal = watch_calls(yard.running)
    process = subprocess.Popen(
        [*PROGRAM, "apply", "t", "--parallelism", "1"],
        cwd=yard.folder,
        env={**os.environ, **yard.env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def saw(entry: JournalEntry) -> None:
        if entry.method == "POST" and entry.path.endswith("/lxc"):
            journal.on_call = None
            process.send_signal(signal.SIGINT)

    journal.on_call = saw
    assert process.wait(120) == 130


def test_an_apply_after_an_interrupted_one_waits_for_the_guests_of_both(yard: Yard) -> None:
    set_boot_time(yard, NEVER_S)
    interrupt_apply(yard)
    (created,) = yard.guests()
    asked = boot_when_asked(yard, created)
    applied = yard.json("apply", "t")
    assert {up["vm_id"] for up in applied["guests"]} == {501, 502}
    assert asked
    assert applied["inventory"]["error"] is None
    assert yard.json("inventory", "show", "t")["freshness"] == "current"


def test_an_apply_with_nothing_to_change_waits_for_guests_and_publishes_a_missing_inventory(
    yard: Yard,
) -> None:
    set_boot_time(yard, NEVER_S)
    yard.run("apply", "t", "--no-verify")
    assert yard.json("apply", "t", "--no-verify")["guests"] == []
    boot_when_asked(yard, 502)
    again = yard.json("apply", "t")
    assert (again["has_changes"], again["applied"]) == (False, None)
    assert {up["name"] for up in again["guests"]} == {"web", "dns"}
    assert Path(again["inventory"]["where"]).is_file()
    assert yard.json("inventory", "show", "t")["freshness"] == "current"


def test_an_apply_with_nothing_to_change_and_a_current_inventory_asks_no_guest(yard: Yard) -> None:
    yard.run("apply", "t")
    journal = watch_calls(yard.running)
    yard.run("plan", "t")
    planned = journal.count
    assert yard.json("apply", "t")["guests"] == []
    assert journal.count == 2 * planned


def test_an_apply_watches_only_the_guests_it_touches_when_the_last_one_was_published(yard: Yard) -> None:
    yard.run("apply", "t")
    yard.write_env("t", [WEB, {**DNS, "memory": 256}])
    applied = yard.json("apply", "t", "--allow-reboot", "dns")
    assert [up["name"] for up in applied["guests"]] == ["dns"]
    assert yard.json("inventory", "show", "t")["freshness"] == "current"


@pytest.mark.soak
def test_a_guest_that_stays_down_fails_an_apply_with_nothing_to_change(yard: Yard) -> None:
    set_boot_time(yard, NEVER_S)
    yard.write_env("t", [{**WEB, "verify": {"timeout_s": 1}}])
    yard.run("apply", "t", "--no-verify")
    again = yard.json("apply", "t", status=1)
    assert [error["code"] for error in again["down"]] == ["E-GUEST-DOWN"]
    assert again["inventory"] is None
    shown = yard.run("apply", "t", status=1).stdout
    assert "Nothing to change" in shown
    assert "web is not up after 1 s" in shown


@pytest.mark.parametrize(
    ("verify", "code"),
    [
        ({"address": False}, "E-INVENTORY-INCOMPLETE"),
        ({"timeout_s": 1}, "E-GUEST-DOWN"),
    ],
)
def test_an_apply_that_exits_with_an_error_is_a_failed_run(
    yard: Yard, verify: dict[str, Any], code: str
) -> None:
    set_boot_time(yard, NEVER_S)
    yard.write_env("t", [{**WEB, "verify": verify}])
    for _ in range(2):
        # The second has nothing to change.
        yard.run("apply", "t", status=1)
        (run, *_) = yard.json("runs", "list")["runs"]
        assert (run["verb"], run["outcome"]) == ("apply", "failed")
        assert run["error"]["code"] == code


def test_an_env_without_guests_has_no_inventory_to_publish(yard: Yard) -> None:
    yard.write_env("t", [])
    assert "inventory" not in yard.json("apply", "t")
    assert yard.json("inventory", "show", "t", status=65)["error"]["code"] == "E-INVENTORY-INCOMPLETE"
