"""`stackyard state locks|unlock|freeze`: who holds what, and taking it away, with the real program."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from tests.support.state_documents import state_document
from tests.support.state_store import ACTOR, NAME, Filled, contents, filled

from stackyard.state import LockInfo, NotHolderError, StateLockedError, make_lock_info

__all__ = ["filled"]


@contextlib.contextmanager
def waiting(store: Filled, *lock_ids: str) -> Iterator[None]:
    """Keep asking for the lock as engines with -lock-timeout do, in this order."""
    is_over, has_asked = threading.Event(), threading.Event()

    def ask() -> None:
        with store.service() as service:
            while not is_over.wait(0.1):
                for one in lock_ids:
                    with contextlib.suppress(StateLockedError):
                        service.locks.lock(NAME, make_lock_info(LockInfo(id=one, who=f"{one}@ci")), ACTOR)
                has_asked.set()

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        assert has_asked.wait(60)
        yield
    finally:
        is_over.set()
        thread.join()


def test_locks_show_holder_operation_age_last_write_and_queue(filled: Filled) -> None:
    filled.lock("lock-1")
    with filled.service() as service:
        service.contents.write(NAME, contents(4, 1), ACTOR, lock_id="lock-1")
    with waiting(filled, "lock-2", "lock-3"):
        [lock] = filled.run("locks", "--json").document["locks"]
        text = filled.run("locks").stdout
    assert (lock["name"], lock["id"], lock["who"], lock["by"]) == (NAME, "lock-1", "bob@laptop", "alice")
    assert (lock["operation"], lock["engine_version"]) == ("OperationTypeApply", "1.12.6")
    assert lock["age_s"] >= lock["last_write_s"] >= 0
    assert (lock["is_stale"], lock["dead"], lock["has_lease"]) == (False, None, False)
    assert [(one["place"], one["who"]) for one in lock["waiting"]] == [(1, "lock-2@ci"), (2, "lock-3@ci")]
    assert "lock-3@ci is number 2 in the queue" in text
    assert "bob@laptop" in text
    assert "apply" in text


def test_a_lock_without_writes_is_called_stale_and_stays(filled: Filled) -> None:
    filled.lock()
    [lock] = filled.run("locks", "--stale-after", "0s", "--json").document["locks"]
    assert lock["is_stale"] is True
    assert "still runs" in filled.run("locks", "--stale-after", "0s").stdout
    with pytest.raises(StateLockedError):
        filled.lock("lock-2")


def test_the_lock_of_a_killed_run_is_called_dead(filled: Filled) -> None:
    script = """
import asyncio, sys
from pathlib import Path
from stackyard.clients.objects import open_objects
from stackyard.state import Actor, LockInfo, StateService, make_lock_info
from stackyard.state.runs import hold_run

async def main():
    service = StateService(open_objects(Path(sys.argv[1])))
    async with hold_run(service.objects, "run-1", owner="carol@ci") as lease:
        info = make_lock_info(LockInfo(id="lock-1", who="carol@ci", operation="OperationTypeApply"))
        service.locks.lock(sys.argv[2], info, Actor(principal="carol"), lease=lease)
        print("locked", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""
    arguments = [sys.executable, "-c", script, str(filled.folder), NAME]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        [alive] = filled.run("locks", "--json").document["locks"]
        assert (alive["has_lease"], alive["dead"]) == (True, None)
        os.kill(holder.pid, signal.SIGKILL)
    [dead] = filled.run("locks", "--json").document["locks"]
    assert str(holder.pid) in dead["dead"]
    assert "takes the lock over" in filled.run("locks").stdout
    filled.lock("lock-2")


def test_unlock_takes_the_lock_away_for_good_and_is_audited(filled: Filled) -> None:
    filled.lock()
    document = filled.run("unlock", "lock-1", "--reason", "laptop stolen", "--json").document
    assert (document["name"], document["who"]) == (NAME, "bob@laptop")
    assert filled.run("locks", "--json").document == {"locks": []}
    with filled.service() as service, pytest.raises(NotHolderError, match="laptop stolen"):
        service.contents.write(NAME, contents(4, 1), ACTOR, lock_id="lock-1")
    entries = filled.run("audit", NAME, "--json").document["entries"]
    [broken] = [one for one in entries if one["action"] == "lock-broken"]
    assert broken["detail"] == "laptop stolen"
    assert "@" in broken["by"]


def test_unlock_of_another_lock_names_the_one_that_is_held(filled: Filled) -> None:
    filled.lock()
    ended = filled.run("unlock", "lock-9", "--reason", "x", "--json")
    assert (ended.status, ended.document["error"]["code"]) == (1, "E-STATE-NOT-HOLDER")
    assert f"lock-1 ({NAME})" in ended.document["error"]["detail"]
    assert len(filled.run("locks", "--json").document["locks"]) == 1


def test_unlock_and_freeze_want_a_reason(filled: Filled) -> None:
    filled.lock()
    for arguments in (("unlock", "lock-1"), ("freeze", NAME), ("delete", NAME)):
        ended = filled.run(*arguments, "--json")
        assert (ended.status, ended.document["error"]["code"]) == (64, "E-USAGE")
        assert "--reason" in ended.document["error"]["detail"]


def test_a_frozen_state_is_neither_locked_nor_written_until_it_is_thawed(filled: Filled) -> None:
    filled.run("freeze", NAME, "--reason", "new disks")
    with pytest.raises(StateLockedError, match="new disks"):
        filled.lock()
    with pytest.raises(StateLockedError):
        filled.write(contents(4, 1))
    [lock] = filled.run("locks", "--json").document["locks"]
    assert lock["id"] is None
    assert lock["frozen"]["reason"] == "new disks"
    assert "new disks" in filled.run("locks").stdout
    assert filled.run("unfreeze", NAME, "--json").document["was_frozen"] is True
    assert filled.run("unfreeze", NAME, "--json").document["was_frozen"] is False
    filled.lock()


def test_whoever_holds_the_lock_may_finish_when_a_state_is_frozen(filled: Filled) -> None:
    filled.lock()
    assert filled.run("freeze", NAME, "--reason", "x", "--json").document["holder"] == "bob@laptop"
    with filled.service() as service:
        service.contents.write(NAME, contents(4, 1), ACTOR, lock_id="lock-1")
        service.locks.unlock(NAME, "lock-1", ACTOR)
    with pytest.raises(StateLockedError):
        filled.lock("lock-2")


def test_commands_work_beside_a_writer(filled: Filled) -> None:
    """Every verb opens the store for itself while another process goes on writing."""

    async def write_and_look() -> None:
        def write() -> None:
            for serial in range(10, 60):
                filled.write(state_document(serial), "busy")

        writing = asyncio.create_task(asyncio.to_thread(write))
        listed = await asyncio.to_thread(filled.run, "list", "--json")
        frozen = await asyncio.to_thread(filled.run, "freeze", NAME, "--reason", "x", "--json")
        await writing
        assert (listed.status, frozen.status) == (0, 0)

    asyncio.run(write_and_look())
    document = filled.run("versions", "busy", "--limit", "100", "--json").document
    assert len(document["versions"]) == 50
