"""The name of a lab is held by a living process, and by nothing else."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.processes import PATIENCE_S

from stackyard.base.errors import UsageError
from stackyard.cli.commands.lab.instances import Instance, LabDownError, LabRunningError, list_running_names

# A process that holds a name as a lab does.
HOLDER = """
import sys
from stackyard.cli.commands.lab.instances import Instance, LabRunningError
instance = Instance(sys.argv[1])
try:
    instance.claim()
except LabRunningError as err:
    sys.exit(str(err))
instance.publish({"url": "https://x", "password": "secret"}, {"port": 0})
print("held", flush=True)
sys.stdin.read()
"""


def hold(name: str, *, prelude: str = "") -> subprocess.Popen[str]:
    holder = subprocess.Popen(
        [sys.executable, "-c", prelude + HOLDER, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_a_name_that_is_held_can_be_read_and_not_be_taken() -> None:
    instance = Instance("one")
    assert instance.read() is None
    with hold("one") as holder:
        record = instance.require()
        assert (record.pid, record.ready["url"], record.options) == (holder.pid, "https://x", {"port": 0})
        assert list_running_names() == ["one"]
        with pytest.raises(LabRunningError, match="'one' is already running"):
            instance.claim()
        holder.communicate(timeout=PATIENCE_S)
    assert instance.read() is None
    with pytest.raises(LabDownError, match="No lab 'one' is running"):
        instance.require()
    assert list_running_names() == []


def test_a_killed_holder_leaves_the_name_free() -> None:
    with hold("one") as holder:
        holder.kill()
        holder.communicate(timeout=PATIENCE_S)
    assert Instance("one").read() is None
    with hold("one") as again:
        assert Instance("one").require().pid == again.pid
        again.communicate(timeout=PATIENCE_S)


def test_looking_never_keeps_out_who_wants_the_name() -> None:
    instance = Instance("one")
    instance.prepare()
    for _ in range(20):
        assert instance.read() is None
    with hold("one") as holder:
        holder.communicate(timeout=PATIENCE_S)


def test_a_lab_that_does_not_listen_is_killed() -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    with hold("one", prelude=deaf) as holder:
        instance = Instance("one")
        asyncio.run(instance.stop(instance.require(), grace_s=0.2))
        holder.communicate(timeout=PATIENCE_S)
    assert holder.returncode == -signal.SIGKILL


def test_the_file_with_the_password_is_private(home: Path) -> None:
    with hold("one") as holder:
        record = home / ".local" / "state" / "stackyard" / "labs" / "one" / "lab.json"
        assert record.stat().st_mode & 0o777 == 0o600
        assert "secret" not in repr(Instance("one").require())
        holder.communicate(timeout=PATIENCE_S)
    assert os.path.exists(record)
    Instance("one").withdraw()
    assert not os.path.exists(record)


@pytest.mark.parametrize("name", ["", "A", "../x", "a/b", "-x", "a b", "x" * 64])
def test_a_name_is_plain(name: str) -> None:
    with pytest.raises(UsageError, match="is no name for a lab"):
        Instance(name)
