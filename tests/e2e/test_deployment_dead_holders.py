"""A writer of the object that was killed: the next one on the machine continues at once, and says so."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.deployment import SMALL, edited, place_in, text_of
from tests.support.processes import PATIENCE_S

from stackyard.base import events
from stackyard.clients.objects import ANYTHING, StoreDamagedError, acquire
from stackyard.sources.deployment.fetch import fetch
from stackyard.sources.deployment.lease import LeaseHeldError, hold_lease
from stackyard.sources.deployment.lease_status import LeaseNotOursError, break_lease, lease_status
from stackyard.sources.deployment.open_store import open_lease_objects
from stackyard.sources.deployment.settings import ObjectLocation
from stackyard.sources.deployment.write import WriteRequest, write

ROOT = Path(__file__).parents[2]
LONG_S = 3600
HOLDER = """
import sys
from pathlib import Path
from tests.support.deployment import place_in
from stackyard.sources.deployment.lease import hold_lease
with hold_lease(place_in(Path(sys.argv[1])), "a long edit", promise_s=3600) as held:
    print("held", flush=True)
    sys.stdin.readline()
    held.check()
    print("lost" if held.is_lost else "kept", flush=True)
"""


@contextlib.contextmanager
def _holder(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Have another process hold the lease for longer than any test takes."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        bufsize=0,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        try:
            yield holder
        finally:
            holder.kill()


@pytest.fixture
def place(tmp_path: Path) -> ObjectLocation:
    found = place_in(tmp_path, lease_ttl_s=LONG_S)
    write(found, WriteRequest(kind="put", make=lambda current: text_of(SMALL).encode()))
    return found


def _grow(place: ObjectLocation, *, wait_s: float = 0) -> None:
    grown = text_of(edited(SMALL, domain="grown.example.com")).encode()
    write(place, WriteRequest(kind="put", make=lambda current: grown, wait_s=wait_s))


def test_the_lease_of_a_killed_writer_of_this_machine_is_taken_over_at_once(
    place: ObjectLocation, tmp_path: Path
) -> None:
    with _holder(tmp_path) as holder:
        alive = lease_status(place)
        with pytest.raises(LeaseHeldError):
            _grow(place)
        holder.send_signal(signal.SIGKILL)
        holder.wait(PATIENCE_S)
        dead = lease_status(place)
        assert (alive.is_dead, dead.is_dead, dead.expires_in_s) == (False, True, 0.0)
        assert "its process has ended" in str(dead)
        _grow(place)
    assert fetch(place).document.data["domain"] == "grown.example.com"
    assert not lease_status(place).is_held


def test_a_writer_that_is_only_stopped_keeps_its_lease(place: ObjectLocation, tmp_path: Path) -> None:
    with _holder(tmp_path) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.send_signal(signal.SIGSTOP)
        with pytest.raises(LeaseHeldError):
            _grow(place)
        holder.send_signal(signal.SIGCONT)
        holder.stdin.write(b"\n")
        assert holder.stdout.readline() == b"kept\n"


def test_a_holder_that_comes_back_after_its_lease_was_broken_finds_it_lost(
    place: ObjectLocation, tmp_path: Path
) -> None:
    with _holder(tmp_path) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.send_signal(signal.SIGSTOP)
        break_lease(place, "it does not answer")
        _grow(place)
        holder.send_signal(signal.SIGCONT)
        holder.stdin.write(b"\n")
        assert holder.stdout.readline() == b"lost\n"


def test_while_a_lease_blocks_it_is_never_said_to_have_expired(place: ObjectLocation) -> None:
    objects, key = open_lease_objects(place)
    with contextlib.closing(objects):
        # A machine whose clock is an hour behind: by ours, it was taken long ago.
        facts = {"acquired_at": "1000", "doing": "a long edit"}
        assert acquire(objects, key, owner="them@elsewhere", promise_s=0.3, facts=facts) is not None
        said: list[events.Event] = []
        with hold_lease(place, "next", wait_s=PATIENCE_S, emit=said.append):
            pass
    waits = [event.waiting_for for event in said if isinstance(event, events.StepWaiting)]
    assert waits
    assert all("expires in" in text and "unless renewed" in text for text in waits)
    assert all("expired" not in text and " ago;" in text for text in waits)
    logs = [event.text for event in said if isinstance(event, events.LogLine)]
    assert any("this session then takes it over, at " in text for text in logs)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[" * 5000,
        b'{"somebody": "else"}',
        b'{"owner":"x","epoch":1,"beat":0,"promise_s":1e300,"is_released":false,"facts":{}}',
        b'{"owner":"x","epoch":"1","beat":0,"promise_s":"60","is_released":0,"facts":[]}',
    ],
)
def test_something_else_in_place_of_the_lease_is_named_and_broken(
    place: ObjectLocation, content: bytes
) -> None:
    objects, key = open_lease_objects(place)
    with contextlib.closing(objects):
        objects.put(key, content, expect=ANYTHING)
    with pytest.raises(StoreDamagedError) as caught:
        lease_status(place)
    assert "lease break" in (caught.value.remedy or "")
    break_lease(place, "not ours")
    _grow(place)
    with pytest.raises(LeaseNotOursError):
        break_lease(place, "again")


def test_what_a_holder_says_of_itself_may_be_anything(place: ObjectLocation) -> None:
    objects, key = open_lease_objects(place)
    with contextlib.closing(objects):
        facts = {"acquired_at": "nan", "pid": "\u0663", "start": "x", "doing": "x" * 100_000}
        assert acquire(objects, key, owner="them", promise_s=5, facts=facts) is not None
    assert lease_status(place).is_held
