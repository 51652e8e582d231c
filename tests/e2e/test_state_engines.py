"""The state service with the real OpenTofu and the real Terraform."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.engine import engine, real_engine
from tests.support.processes import PATIENCE_S
from tests.support.state_client import lock_body, lock_id_of, state_body
from tests.support.state_engines import ROOT, SLOW, ended, is_tofu, make_folder

from stackyard.base import events
from stackyard.clients.objects import open_objects
from stackyard.engine.version import Engine, Flavour
from stackyard.state import Actor, AuditAction, NotHolderError, Policy, StateService
from stackyard.state.embedded import Embedded, serve_embedded

__all__ = ["engine"]

ME = Actor(principal="tests")
NAME = "prod/network"


@contextlib.asynccontextmanager
async def serve(folder: Path, policy: Policy | None = None) -> AsyncIterator[tuple[StateService, Embedded]]:
    """Run something against an embedded service over a store in a folder."""

    service = StateService(open_objects(folder / "store"), policy)
    async with serve_embedded(service) as running:
        yield (service, running)
    service.objects.close()


async def test_an_engine_goes_through_its_whole_life(engine: Engine, tmp_path: Path) -> None:
    async with serve(tmp_path) as (service, running):
        folder = await make_folder(engine, tmp_path / "root", running.environment(NAME))
        assert (await folder.apply("first")).status == 0
        assert (await folder.run("plan", "-detailed-exitcode")).status == 0
        assert (await folder.run("plan", "-detailed-exitcode", "-var=value=second")).status == 2
        assert (await folder.apply("second")).status == 0
        assert json.loads(await folder.must("output", "-json"))["value"]["value"] == "second"
        pulled = json.loads(await folder.must("state", "pull"))
        pulled["serial"] += 5
        (folder.folder / "pushed.tfstate").write_text(json.dumps(pulled))
        await folder.must("state", "push", "pushed.tfstate")
        await folder.must("destroy", "-auto-approve")
        head = service.head(NAME)
        assert head.lock is None
        assert [version.serial for version in service.versions.newest_first(NAME)] == [9, 8, 2, 1]
        assert service.audit.verify(NAME).is_whole
        assert (head.current is not None and head.current.resources) == 0
        # Nothing that the service or the engine wrote for us holds the token of the run.
        for path in (folder.folder / ".terraform").rglob("*"):
            assert not path.is_file() or running.password.encode() not in path.read_bytes()


async def test_an_engine_waits_for_the_lock_and_is_told_of_its_holder(engine: Engine, tmp_path: Path) -> None:
    async with serve(tmp_path) as (service, running):
        folder = await make_folder(engine, tmp_path / "root", running.environment(NAME))
        held = service.locks.lock(NAME, lock_body(who="alice@desk"), ME)
        refused = await folder.apply("first")
        assert refused.status == 1
        # Terraform shows the ID alone.
        assert ("alice@desk" if is_tofu(engine) else held.info.id) in refused.text
        waiting = await folder.start("apply", "-auto-approve", "-lock-timeout=100s")
        while not any(waiter.polls >= 2 for waiter in service.head(NAME).waiting):
            await asyncio.sleep(0.05)
        service.locks.unlock(NAME, held.info.id, ME)
        assert (await ended(waiting)).status == 0
        assert service.head(NAME).serial == 1


async def test_force_unlock_breaks_the_lock_in_the_words_of_each_engine(
    engine: Engine, tmp_path: Path
) -> None:
    async with serve(tmp_path) as (service, running):
        folder = await make_folder(engine, tmp_path / "root", running.environment(NAME))
        lock = lock_body()
        service.locks.lock(NAME, lock, ME)
        await folder.must("force-unlock", "-force", lock_id_of(lock))
        assert service.head(NAME).lock is None
        with pytest.raises(NotHolderError):
            service.contents.write(NAME, state_body(1), ME, lock_id=lock_id_of(lock))
        broken = [entry for entry in service.audit.entries(NAME) if entry.action is AuditAction.BROKEN]
        assert [entry.lock_id for entry in broken] == [lock_id_of(lock)]
        assert (await folder.apply("first")).status == 0


async def test_a_zombie_cannot_overwrite_what_came_after_it(engine: Engine, tmp_path: Path) -> None:
    async with serve(tmp_path) as (service, running):
        environment = running.environment(NAME)
        zombie = await make_folder(engine, tmp_path / "zombie", environment, root=ROOT + SLOW)
        other = await make_folder(engine, tmp_path / "other", environment)
        assert (await other.apply("first")).status == 0
        working = await zombie.start("apply", "-auto-approve")
        while not (zombie.folder / "started").exists():
            await asyncio.sleep(0.02)
        service.locks.break_lock(NAME, None, ME, reason="looked dead")
        assert (await other.apply("second")).status == 0
        stored = service.contents.read(NAME)
        (zombie.folder / "go").touch()
        failed = await ended(working)
        assert (failed.status, (zombie.folder / "errored.tfstate").exists()) == (1, True)
        assert service.contents.read(NAME) == stored
        (kept, *_) = service.contents.list_quarantined(NAME)
        _, body = service.contents.read_quarantined(NAME, kept.id)
        assert "slow" in {row["name"] for row in json.loads(body)["resources"]}
        assert service.head(NAME).lock is None


async def test_no_mistake_and_no_fault_looks_like_an_empty_state(engine: Engine, tmp_path: Path) -> None:
    async with serve(tmp_path, Policy(create_states=False)) as (service, running):
        service.register(NAME, ME)
        environment = {**running.environment(NAME), "TF_HTTP_RETRY_MAX": "0"}
        folder = await make_folder(engine, tmp_path / "root", environment)
        assert (await folder.apply("first")).status == 0

        async def plan(**changes: str) -> None:
            changed = {**environment, "TF_HTTP_RETRY_MAX": "0", **changes}
            moved = type(folder)(engine, folder.folder, changed)
            await moved.run("init", "-reconfigure")
            done = await moved.run("plan")
            assert done.status == 1, done.text
            assert "to add" not in done.text

        url = running.url
        await plan(TF_HTTP_ADDRESS=f"{url}/states/prod/netwrok")
        await plan(TF_HTTP_ADDRESS=f"{url}/prod/network")
        await plan(TF_HTTP_PASSWORD="wrong")
        service.delete(NAME, ME, reason="by mistake")
        await plan()
        service.restore(NAME, ME)
        await folder.must("init", "-reconfigure")
        assert (await folder.run("plan", "-detailed-exitcode")).status == 0
        for path in (tmp_path / "store").iterdir():
            path.unlink()
        await plan()


async def test_an_engine_goes_on_from_an_earlier_version(engine: Engine, tmp_path: Path) -> None:
    async with serve(tmp_path) as (service, running):
        folder = await make_folder(engine, tmp_path / "root", running.environment(NAME))
        for value in ("first", "second", "third"):
            assert (await folder.apply(value)).status == 0
        version = service.versions.roll_back(NAME, 1, ME)
        assert (version.number, version.serial) == (4, 4)
        assert (await folder.run("plan", "-detailed-exitcode", "-var=value=first")).status == 0
        assert (await folder.apply("fourth")).status == 0
        assert service.head(NAME).serial == 5


@pytest.mark.tofu
async def test_an_encrypted_state_is_ordered_and_rolled_back_without_its_key(tmp_path: Path) -> None:
    # Terraform does not encrypt states.
    engine = real_engine(Flavour.TOFU)
    encryption = """
    key_provider "pbkdf2" "k" {
      passphrase = "correct horse battery staple"
      iterations = 200000
    }
    method "aes_gcm" "m" {
      keys = key_provider.pbkdf2.k
    }
    state {
      method   = method.aes_gcm.m
      enforced = true
    }
    """

    async with serve(tmp_path) as (service, running):
        environment = {**running.environment(NAME), "TF_ENCRYPTION": encryption}
        folder = await make_folder(engine, tmp_path / "root", environment)
        for value in ("first", "second"):
            assert (await folder.apply(value)).status == 0
        head = service.head(NAME)
        assert head.current is not None
        assert (head.current.is_encrypted, head.serial) == (True, 2)
        served = service.versions.roll_back(NAME, 1, ME)
        assert (served.number, served.serial) == (3, 1)
        assert (await folder.run("plan", "-detailed-exitcode", "-var=value=first")).status == 0
        assert (await folder.apply("third")).status == 0
        assert service.head(NAME).serial == 2


HOLDER = """
import asyncio, sys
from pathlib import Path
from tests.support.state_client import lock_body
from stackyard.clients.objects import open_objects
from stackyard.state import Actor, StateService
from stackyard.state.embedded import serve_embedded
from stackyard.state.runs import hold_run

async def main():
    service = StateService(open_objects(Path(sys.argv[1])))
    async with hold_run(service.objects, "dead", owner="me") as lease:
        service.locks.lock(sys.argv[2], lock_body(who="dead@here"), Actor(principal="run"), lease=lease)
        print("ready", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def test_the_lock_of_a_killed_run_is_taken_over_at_once(engine: Engine, tmp_path: Path) -> None:
    told: list[events.Event] = []

    async def run() -> None:
        arguments = ("-c", HOLDER, str(tmp_path / "store"), NAME)
        root = Path(__file__).parents[2]
        environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"}
        holder = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, env=environment, stdout=asyncio.subprocess.PIPE
        )
        assert holder.stdout is not None
        assert await asyncio.wait_for(holder.stdout.readline(), PATIENCE_S) == b"ready\n"
        service = StateService(open_objects(tmp_path / "store"))
        async with serve_embedded(service, emit=told.append) as running:
            folder = await make_folder(engine, tmp_path / "root", running.environment(NAME))
            assert (await folder.apply("first")).status == 1
            holder.send_signal(signal.SIGKILL)
            await holder.wait()
            assert (await folder.apply("first")).status == 0
        actions = [entry.action for entry in service.audit.entries(NAME)]
        assert actions == [
            AuditAction.LOCKED,
            AuditAction.TAKEN_OVER,
            AuditAction.LOCKED,
            AuditAction.WRITTEN,
            AuditAction.UNLOCKED,
        ]
        service.objects.close()

    asyncio.run(run())
    waits = [event.waiting_for for event in told if isinstance(event, events.StepWaiting)]
    assert len(waits) == 1
    assert "dead@here" in waits[0]
    assert "place 1 in the queue" in waits[0]
