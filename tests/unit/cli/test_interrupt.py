"""Ctrl-C stops cleanly and says so; a second one stops at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

PRELUDE = """
import asyncio, contextlib, sys
from stackyard.base import events
from stackyard.base.run_stop import stop_run
from stackyard.cli.interrupt import run_interruptibly
from stackyard.base.errors import InterruptedRunError

def emit(event):
    print(event.text, flush=True)

async def obedient():
    print("ready", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        print("cleaned up", flush=True)

async def lost():
    stop_run("Another run took over the lease.", emit)
    print("ready", flush=True)
    await asyncio.Event().wait()

async def deaf():
    print("ready", flush=True)
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

def abandon(error):
    print("abandoned:", error.detail, flush=True)

try:
    run_interruptibly({work}(), emit, on_abandon=abandon)
except InterruptedRunError as err:
    print(err.detail, flush=True)
    sys.exit(err.exit_status)
"""


def start(work: str, *wrapper: str) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [*wrapper, sys.executable, "-c", PRELUDE.replace("{work}", work)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def test_a_run_that_stops_itself_gives_its_own_reason_and_no_signal() -> None:
    script = PRELUDE.replace("{work}", "lost")
    ended = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, timeout=30, check=False
    )
    assert ended.stdout.splitlines() == [
        "Another run took over the lease.",
        "ready",
        "Stopping cleanly; a second Ctrl-C stops at once.",
        "Another run took over the lease.",
    ]
    assert ended.returncode == 130


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_lets_the_work_clean_up(number: signal.Signals) -> None:
    child = start("obedient")
    child.send_signal(number)
    said, _ = child.communicate(timeout=30)
    assert said.splitlines() == [
        "Stopping cleanly; a second Ctrl-C stops at once.",
        "cleaned up",
        f"Stopped cleanly by {number.name}.",
    ]
    assert child.returncode == 130


def test_the_second_signal_ends_even_work_that_will_not_stop() -> None:
    child = start("deaf")
    assert child.stdout is not None
    child.send_signal(signal.SIGINT)
    assert "Stopping cleanly" in child.stdout.readline()
    child.send_signal(signal.SIGINT)
    said, _ = child.communicate(timeout=30)
    assert said == "abandoned: Stopped at once by SIGINT, with work left over.\n"
    assert child.returncode == 130


def test_under_nohup_a_hang_up_stops_nothing() -> None:
    child = start("obedient", "nohup")
    child.send_signal(signal.SIGHUP)
    child.send_signal(signal.SIGTERM)
    said, _ = child.communicate(timeout=30)
    assert said.splitlines()[-1] == "Stopped cleanly by SIGTERM."


def test_work_that_ends_by_itself_gives_its_value() -> None:
    code = (
        "from stackyard.cli.interrupt import run_interruptibly\n"
        "async def work(): return 7\n"
        "print(run_interruptibly(work(), print))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout == "7\n"
