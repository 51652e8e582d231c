"""The rows of a run: one a guest, kept from the events alone."""

from __future__ import annotations

import io

from rich.console import Console, Group
from rich.text import Text

from stackyard.base import events
from stackyard.base.events import ApplyPhase, Outcome
from stackyard.cli.views.live import draw_rows
from stackyard.cli.views.run_rows import Row, RowStatus, RunRows

WEB, DB = "proxmox_virtual_environment_vm.web", "proxmox_virtual_environment_container.db"
IMAGE = "proxmox_download_file.image_debian-12"


class Clock:
    """A clock that is set by hand."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def applied(address: str, phase: ApplyPhase, action: str = "create") -> events.Event:
    return events.ResourceApplied(address=address, action=action, phase=phase, elapsed_s=0)


def finished(step: str, outcome: Outcome = Outcome.DONE, detail: str = "") -> events.Event:
    return events.StepFinished(step=step, outcome=outcome, detail=detail, elapsed_s=0)


def applying(*addresses: str, action: str = "create") -> tuple[RunRows, Clock]:
    clock = Clock()
    rows = RunRows(clock)
    for address in addresses:
        assert rows.follow(events.ResourcePlanned(address=address, action=action))
    rows.follow(events.StepStarted(step="apply", title="Applying env:dev"))
    return rows, clock


def summary(rows: RunRows) -> list[tuple[str, str, str]]:
    return [(row.name, row.phase, row.detail) for row in rows.rows()]


def test_a_plan_has_no_rows_before_it_is_applied() -> None:
    rows = RunRows()
    rows.follow(events.ResourcePlanned(address=WEB, action="create"))
    assert rows.rows() == []


def test_a_guest_goes_from_the_queue_over_its_creation_to_up() -> None:
    rows, clock = applying(WEB, IMAGE)
    rows.follow(events.ResourceWaiting(address=WEB, waiting_for="file debian-12.qcow2"))
    assert summary(rows) == [("web", "queued", "file debian-12.qcow2")]
    rows.follow(applied(WEB, ApplyPhase.STARTED))
    rows.follow(events.ResourceWaiting(address=WEB, waiting_for="its guest agent"))
    assert summary(rows) == [("web", "creating", "its guest agent")]
    clock.now_s += 6
    rows.follow(applied(WEB, ApplyPhase.DONE))
    assert rows.follow(events.StepStarted(step="verify web", title="Waiting for web"))
    assert rows.follow(events.StepWaiting(step="verify web", waiting_for="an address"))
    assert summary(rows) == [("web", "booting", "an address")]
    clock.now_s += 1
    assert rows.follow(finished("verify web"))
    assert summary(rows) == [("web", "up", "")]
    # The boot that the engine waited for counts.
    assert rows.rows()[0].elapsed_s(clock.now_s + 50) == 7
    assert rows.describe_totals() == "1 of 1 guest done"


def test_a_failure_is_pinned_on_top_with_its_reason() -> None:
    rows, _ = applying(WEB, DB)
    rows.follow(applied(WEB, ApplyPhase.STARTED))
    rows.follow(applied(DB, ApplyPhase.STARTED))
    rows.follow(applied(DB, ApplyPhase.FAILED))
    told = events.DiagnosticFound(
        severity="error", code="E-TOFU", summary="storage is full", detail="", address=DB
    )
    assert rows.follow(told)
    rows.follow(events.ResourceWaiting(address=WEB, waiting_for="the task qmstart"))
    assert summary(rows) == [("db", "failed", "storage is full"), ("web", "creating", "the task qmstart")]
    assert rows.describe_totals() == "0 of 2 guests done, 1 failed"


def test_a_reason_that_comes_with_the_failure_is_shown_at_once() -> None:
    rows, _ = applying(WEB)
    rows.follow(applied(WEB, ApplyPhase.STARTED))
    failed = events.ResourceApplied(
        address=WEB, action="create", phase=ApplyPhase.FAILED, elapsed_s=0, reason="500 storage is full"
    )
    rows.follow(failed)
    assert summary(rows) == [("web", "failed", "500 storage is full")]


def test_a_guest_that_does_not_come_up_keeps_the_reason() -> None:
    rows, _ = applying(WEB)
    rows.follow(applied(WEB, ApplyPhase.DONE))
    rows.follow(events.StepStarted(step="verify web", title="Waiting for web"))
    rows.follow(finished("verify web", Outcome.FAILED, "web is not up after 60 s"))
    assert summary(rows) == [("web", "failed", "web is not up after 60 s")]


def test_the_slowest_is_on_top_and_what_is_done_below() -> None:
    rows, clock = applying(
        WEB, DB, "proxmox_virtual_environment_vm.late", "proxmox_virtual_environment_vm.ok"
    )
    for address in ("proxmox_virtual_environment_vm.ok", DB, WEB):
        rows.follow(applied(address, ApplyPhase.STARTED))
        clock.now_s += 1
    rows.follow(applied("proxmox_virtual_environment_vm.ok", ApplyPhase.DONE))
    assert [row.name for row in rows.rows()] == ["db", "web", "late", "ok"]


def test_a_replaced_guest_is_done_only_when_it_is_there_again() -> None:
    rows, _ = applying(WEB, action="replace")
    rows.follow(applied(WEB, ApplyPhase.STARTED, "delete"))
    rows.follow(applied(WEB, ApplyPhase.DONE, "delete"))
    assert rows.rows()[0].status is RowStatus.RUNNING
    rows.follow(applied(WEB, ApplyPhase.STARTED))
    rows.follow(applied(WEB, ApplyPhase.DONE))
    assert summary(rows) == [("web", "created", "")]


def test_phases_of_a_manifest_change_the_row_of_their_node() -> None:
    rows, _ = applying(WEB)
    rows.follow(events.StepStarted(step="create_guest web", title="Making web"))
    rows.follow(applied(WEB, ApplyPhase.DONE))
    assert rows.rows()[0].status is RowStatus.RUNNING
    rows.follow(finished("create_guest web"))
    rows.follow(events.StepStarted(step="wait_address web", title="…"))
    rows.follow(events.StepStarted(step="verify web", title="…"))
    rows.follow(finished("verify web"))
    assert summary(rows) == [("web", "booting", "")]
    rows.follow(finished("wait_address web"))
    rows.follow(events.StepStarted(step="apply_spec web", title="…"))
    assert summary(rows) == [("web", "configuring", "")]


def test_steps_of_other_things_and_messages_are_left_to_others() -> None:
    rows, _ = applying(WEB)
    assert not rows.follow(events.StepStarted(step="verify other", title="Waiting for other"))
    assert not rows.follow(events.LogLine(level=events.LogLevel.INFO, source="x", text="hello"))
    assert not rows.follow(events.DiagnosticFound(severity="error", code="E", summary="s", detail=""))


def drawn(rows: list[Row], room: int) -> list[str]:
    stream = io.StringIO()
    console = Console(file=stream, width=60, color_system=None)
    console.print(Group(*draw_rows(rows, room, 60, Text("*"), is_unicode=True)))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_rows_without_room_are_folded_and_counted() -> None:
    many = [Row(name=f"web-{i}", is_guest=True) for i in range(40)]
    up = [Row(name="up", is_guest=True, status=RowStatus.DONE, phase="up")]
    lines = drawn([*many, *up], 5)
    assert len(lines) == 6
    assert lines[-1] == "  and 36 more: 35 queued, 1 up"


def test_a_long_reason_does_not_break_its_line() -> None:
    failed = Row(name="web", is_guest=True, status=RowStatus.FAILED, phase="failed", detail="why " * 100)
    assert len(drawn([failed], 5)) == 1


def test_a_narrow_terminal_keeps_the_mark_the_phase_and_the_time() -> None:
    row = Row(
        name="a-guest-with-a-very-long-name-indeed",
        is_guest=True,
        status=RowStatus.FAILED,
        phase="failed",
        detail="why " * 30,
        began_s=0.0,
        ended_s=12.0,
    )
    for width in (40, 60, 100):
        stream = io.StringIO()
        console = Console(file=stream, width=width, color_system=None)
        console.print(Group(*draw_rows([row], 5, width, Text("*"), is_unicode=True)))
        (line,) = stream.getvalue().splitlines()
        assert line.startswith("✗ a-guest-with"), line
        assert "failed" in line
        assert line.rstrip().endswith("12 s")


def test_what_a_guest_waits_for_makes_its_row() -> None:
    rows = RunRows()
    rows.follow(events.StepStarted(step="apply", title="Applying env:dev"))
    rows.follow(events.ResourceWaiting(address=WEB, waiting_for="file debian-12.qcow2"))
    assert summary(rows) == [("web", "queued", "file debian-12.qcow2")]


def test_a_row_has_the_name_that_the_user_gave() -> None:
    rows, _ = applying("proxmox_virtual_environment_vm.web_home_lan_x2e")
    assert rows.rows()[0].name == "web.home.lan"
