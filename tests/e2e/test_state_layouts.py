"""The addresses that people already have in their `backend "http"`, with the real engines."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from tests.support.engine import engine
from tests.support.state_client import lock_body, lock_id_of
from tests.support.state_engines import Folder, ended, make_folder

from stackyard.engine.version import Engine
from stackyard.state import Actor, AuditAction
from stackyard.state.daemon import DaemonOptions, RunningDaemon, daemon

__all__ = ["engine"]

ME = Actor(principal="tests")
NAME = "proxmox"
PREFIXED = f"/tfstate/states/{NAME}"
PLAIN = f"/states/{NAME}"
# What the engine gets as address, lock_address and unlock_address.
SUPPORTED = {
    "prefix-and-lock": (PREFIXED, f"{PREFIXED}/lock", f"{PREFIXED}/lock"),
    "worker": (PLAIN, f"{PLAIN}/lock", f"{PLAIN}/lock"),
    "one-address": (PLAIN, PLAIN, PLAIN),
}
# Refused at the GET of `init`.
NO_STATES = {
    "other-path": ("/terraform/proxmox", "/terraform/proxmox", "/terraform/proxmox"),
    "lock-as-address": (f"{PLAIN}/lock", f"{PLAIN}/lock", f"{PLAIN}/lock"),
}
# `init` asks for the state alone: refused by the first run that locks.
NO_LOCKS = {
    "lock-elsewhere": (PLAIN, f"/locks/{NAME}", f"/locks/{NAME}"),
    "lock-of-another-state": (PLAIN, "/states/other/lock", "/states/other/lock"),
    "lock-beside": (PREFIXED, f"{PREFIXED}.lock", f"{PREFIXED}.lock"),
}
ENDLESS_S = 100.0


@contextlib.asynccontextmanager
async def serve(folder: Path) -> AsyncIterator[RunningDaemon]:
    async with daemon(DaemonOptions(data=folder / "store", plain_http=True)) as running:
        yield running


def settings(running: RunningDaemon, layout: tuple[str, str, str]) -> Mapping[str, str]:
    address, lock, unlock = (running.url + path for path in layout)
    return {
        "TF_HTTP_ADDRESS": address,
        "TF_HTTP_LOCK_ADDRESS": lock,
        "TF_HTTP_UNLOCK_ADDRESS": unlock,
        "TF_HTTP_USERNAME": running.username,
        "TF_HTTP_PASSWORD": running.password,
    }


@pytest.mark.parametrize("layout", SUPPORTED.values(), ids=SUPPORTED)
async def test_an_engine_works_with_every_layout(
    engine: Engine, tmp_path: Path, layout: tuple[str, str, str]
) -> None:
    async with serve(tmp_path) as running:
        service = running.service
        folder = await make_folder(engine, tmp_path / "root", settings(running, layout))
        assert (await folder.run("plan", "-detailed-exitcode")).status == 2
        assert (await folder.apply("first")).status == 0
        assert (await folder.run("plan", "-detailed-exitcode")).status == 0
        assert (service.head(NAME).serial, service.head(NAME).lock) == (1, None)

        # Whoever locks the state in another layout keeps this engine waiting.
        held = service.locks.lock(NAME, lock_body(who="alice@desk"), ME)
        waiting = await folder.start(
            "apply", "-auto-approve", "-var=value=second", f"-lock-timeout={ENDLESS_S:.0f}s"
        )
        while not service.head(NAME).waiting:
            await asyncio.sleep(0.02)
        service.locks.unlock(NAME, held.info.id, ME)
        assert (await ended(waiting)).status == 0
        assert service.head(NAME).serial == 2

        # Terraform's force-unlock sends no ID, and nothing has to be allowed for it.
        stuck = lock_body()
        service.locks.lock(NAME, stuck, ME)
        await folder.must("force-unlock", "-force", lock_id_of(stuck))
        broken = [entry for entry in service.audit.entries(NAME) if entry.action is AuditAction.BROKEN]
        assert [(entry.lock_id, entry.principal) for entry in broken] == [
            (lock_id_of(stuck), running.username)
        ]
        assert list(service.names()) == [NAME]


@pytest.mark.parametrize("layout", NO_STATES.values(), ids=NO_STATES)
async def test_an_address_that_is_no_state_is_refused_by_init(
    engine: Engine, tmp_path: Path, layout: tuple[str, str, str]
) -> None:
    async with serve(tmp_path) as running:
        folder = await make_folder(engine, tmp_path / "root", settings(running, SUPPORTED["worker"]))
        wrong = Folder(engine, folder.folder, settings(running, layout))
        refused = await wrong.run("init", "-reconfigure")
        assert (refused.status, "400" in refused.text) == (1, True), refused.text
        assert list(running.service.names()) == []


@pytest.mark.parametrize("layout", NO_LOCKS.values(), ids=NO_LOCKS)
async def test_a_lock_address_of_another_state_is_refused_before_anything_is_made(
    engine: Engine, tmp_path: Path, layout: tuple[str, str, str]
) -> None:
    root = """
    terraform {
      backend "http" {}
    }

    resource "terraform_data" "one" {
      provisioner "local-exec" {
        command = "touch made"
      }
    }
    """

    async with serve(tmp_path) as running:
        folder = await make_folder(engine, tmp_path / "root", settings(running, layout), root=root)
        for verb in (["plan"], ["apply", "-auto-approve"]):
            refused = await folder.run(*verb)
            assert refused.status == 1, refused.text
        assert not (folder.folder / "made").exists()
        # Nothing is left behind that keeps somebody else out.
        assert list(running.service.locks.report()) == []


def without_locks(running: RunningDaemon) -> Mapping[str, str]:
    given = settings(running, SUPPORTED["worker"])
    return {name: value for name, value in given.items() if "LOCK_ADDRESS" not in name}


async def test_an_engine_without_a_lock_address_never_loses_what_it_made(
    engine: Engine, tmp_path: Path
) -> None:
    async with serve(tmp_path) as running:
        service = running.service
        folder = await make_folder(engine, tmp_path / "root", without_locks(running))
        assert (await folder.apply("first")).status == 0
        assert service.head(NAME).serial == 1
        assert (await folder.run("plan", "-detailed-exitcode", "-var=value=first")).status == 0
        # Who locks goes on as before, and its versions tell the two apart.
        locking = await make_folder(engine, tmp_path / "other", settings(running, SUPPORTED["worker"]))
        assert (await locking.apply("second")).status == 0
        notes = [one.note for one in service.versions.newest_first(NAME)]
        assert sorted(notes) == ["", "written without a lock"]
        # Beside a lock nothing is stored, and nothing is lost either.
        service.locks.lock(NAME, lock_body(who="alice@desk"), ME)
        refused = await folder.apply("third")
        assert refused.status == 1
        assert [one.serial for one in service.contents.list_quarantined(NAME)] == [3]
        assert (folder.folder / "errored.tfstate").exists()
