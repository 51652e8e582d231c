"""Whether a holder is dead: its process is looked at where it is on this machine, and never guessed at."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from tests.support.processes import DROP_PRIVILEGES, run_python

from stackyard.clients.objects import LeaseWatch, MemoryObjects, acquire
from stackyard.clients.objects.holders import describe_process, is_process_gone

TELLS = """
import json, sys
from stackyard.clients.objects.holders import describe_process
print(json.dumps(describe_process()), flush=True)
sys.stdin.read()
"""


def _start() -> tuple[subprocess.Popen[bytes], dict[str, str]]:
    started = subprocess.Popen(
        [sys.executable, "-c", TELLS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    assert started.stdout is not None
    facts: dict[str, str] = json.loads(started.stdout.readline())
    return started, facts


def _close(started: subprocess.Popen[bytes]) -> None:
    for stream in (started.stdin, started.stdout):
        if stream is not None:
            stream.close()


def test_a_process_that_runs_is_not_gone_and_a_killed_one_is_before_its_parent_asks() -> None:
    started, facts = _start()
    assert not is_process_gone(describe_process())
    assert not is_process_gone(facts)
    started.send_signal(signal.SIGKILL)
    # It has ended, and its entry stays: its parent has not asked for its status yet.
    os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)
    assert is_process_gone(facts)
    started.wait()
    assert is_process_gone(facts)
    _close(started)


@pytest.mark.parametrize("other", ["host", "boot", "namespace"])
def test_a_process_elsewhere_is_never_said_to_be_gone(other: str) -> None:
    gone = {**describe_process(), "start": "1"}
    assert is_process_gone(gone)
    assert not is_process_gone({**gone, other: "another"})
    assert not is_process_gone({key: value for key, value in gone.items() if key != other})


@pytest.mark.parametrize("pid", ["", "-1", "x", "²", "99999999999999999999999"])
def test_a_process_number_that_is_none_proves_nothing(pid: str) -> None:
    assert not is_process_gone({**describe_process(), "pid": pid})


def test_a_process_of_another_user_that_proc_hides_is_not_gone() -> None:
    script = f"""
import os, sys
import stackyard.clients.objects.holders as holders
facts = {{**holders.describe_process(), "pid": sys.argv[1]}}
{DROP_PRIVILEGES}
# As with `hidepid`: the entry cannot be read, and the process is there.
holders._look_at = lambda pid: None
print(holders.is_process_gone(facts))
"""
    assert run_python(script, str(os.getpid())) == "False\n"
    assert run_python(script, "1") == "False\n"


def test_the_lease_of_a_dead_process_is_taken_over_at_the_first_look() -> None:
    objects, watch = MemoryObjects(), LeaseWatch(lambda: 0.0)
    started, facts = _start()
    dead = acquire(objects, "x", owner="dead", promise_s=3600, facts=facts)
    assert dead is not None
    assert acquire(objects, "x", owner="next", promise_s=1, watch=watch) is None
    started.kill()
    started.wait()
    _close(started)
    taken = acquire(objects, "x", owner="next", promise_s=1, watch=watch)
    assert taken is not None
    assert taken.epoch == dead.epoch + 1
