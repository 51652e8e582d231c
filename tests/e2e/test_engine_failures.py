"""What real engines report when something is wrong, and the error that each report becomes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.support.engine import StateServer, engine, state_server, workdir_in, write_root

from stackyard.base import events
from stackyard.base.errors import ExitStatus
from stackyard.engine import failures, statefile, tofu
from stackyard.engine.version import Engine
from stackyard.engine.workdir import Limits

__all__ = ["engine", "state_server"]

HTTP_ROOT = """
terraform {
  backend "http" {}
}
resource "terraform_data" "a" {}
"""


def test_a_failed_change_is_told_with_its_place_and_address(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "root"
    write_root(
        folder,
        'resource "terraform_data" "bad" {\n  provisioner "local-exec" {\n    command = "exit 3"\n  }\n}\n'
        'resource "terraform_data" "good" {}\n',
    )
    workdir = workdir_in(engine, folder)
    seen: list[events.Event] = []

    async def apply() -> None:
        await tofu.plan(workdir, tmp_path / "plan")
        await tofu.apply(workdir, tmp_path / "plan", emit=seen.append)

    with pytest.raises(failures.TofuError, match="local-exec provisioner error") as caught:
        asyncio.run(apply())
    (diagnostic,) = caught.value.diagnostics
    assert str(caught.value.where) == str(diagnostic.where) == f"{folder}/main.tf:2:28"
    assert diagnostic.detail.startswith("terraform_data.bad: ")
    (told,) = [event for event in seen if isinstance(event, events.DiagnosticFound)]
    assert (told.file, told.line, told.address) == (f"{folder}/main.tf", 2, "terraform_data.bad")
    failed = [
        event for event in seen if isinstance(event, events.ResourceApplied) and event.phase == "failed"
    ]
    assert [event.address for event in failed] == ["terraform_data.bad"]
    assert "terraform_data.good" in asyncio.run(statefile.state_list(workdir))


def test_a_lock_held_by_another_run_is_told_with_its_holder(engine: Engine, tmp_path: Path) -> None:
    folder, gate = tmp_path / "root", tmp_path / "gate"
    os.mkfifo(gate)
    write_root(
        folder,
        'resource "terraform_data" "a" {\n  provisioner "local-exec" {\n'
        f'    command = "cat {gate}"\n  }}\n}}\n',
    )
    workdir = workdir_in(engine, folder)

    async def meet() -> failures.StateLockedError:
        await tofu.plan(workdir, tmp_path / "plan")
        holding = asyncio.Event()

        def watch(event: events.Event) -> None:
            if isinstance(event, events.ResourceApplied):
                holding.set()

        holder = asyncio.create_task(tofu.apply(workdir, tmp_path / "plan", emit=watch))
        await holding.wait()
        with pytest.raises(failures.StateLockedError) as by_stream:
            await tofu.plan(workdir, tmp_path / "second")
        with pytest.raises(failures.StateLockedError) as by_text:
            await statefile.state_rm(workdir, ("terraform_data.a",))
        assert by_text.value.holder == by_stream.value.holder
        await wait_for_lock_in_vain(engine, tmp_path)
        await asyncio.to_thread(gate.write_text, "go on")
        await holder
        return by_stream.value

    error = asyncio.run(meet())
    assert error.exit_status is ExitStatus.BUSY
    assert error.holder is not None
    assert error.holder.operation == "OperationTypeApply"
    assert "@" in error.holder.who
    assert error.holder.id in error.detail
    assert not (tmp_path / "second").exists()


async def wait_for_lock_in_vain(engine: Engine, tmp_path: Path) -> None:
    """Plan with a long wait for the lock, give up as soon as it waits, and check that nothing is left."""
    patient = workdir_in(engine, tmp_path / "root", limits=Limits(lock_wait_s=600.0))
    waiting = asyncio.Event()
    plans = tmp_path / "plans"

    def watch(event: events.Event) -> None:
        if isinstance(event, events.LogLine) and "state lock" in event.text:
            waiting.set()

    task = asyncio.create_task(tofu.plan(patient, plans / "third", emit=watch))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert list(plans.iterdir()) == []


def test_a_lock_of_a_backend_is_told_and_can_be_removed(
    engine: Engine, tmp_path: Path, state_server: StateServer
) -> None:
    write_root(tmp_path / "root", HTTP_ROOT)
    workdir = workdir_in(engine, tmp_path / "root", environment=state_server.environment)
    state_server.lock = b'{"ID": "lock-1", "Who": "ann@desk", "Operation": "OperationTypeApply"}'

    async def meet() -> failures.StateLockedError:
        await tofu.init(workdir)
        state_server.faults["LOCK"] = 423
        with pytest.raises(failures.StateLockedError) as caught:
            await tofu.plan(workdir, tmp_path / "plan")
        state_server.faults.clear()
        await statefile.force_unlock(workdir, "lock-1")
        await tofu.plan(workdir, tmp_path / "plan")
        return caught.value

    holder = asyncio.run(meet()).holder
    assert holder is not None
    assert holder.id == "lock-1"
    # Terraform tells no more than the id; it shows its own request where the holder should be.
    assert holder.who in {"ann@desk", ""}


def test_a_lock_that_stays_is_told_apart_from_failed_work(
    engine: Engine, tmp_path: Path, state_server: StateServer
) -> None:
    write_root(tmp_path / "root", HTTP_ROOT)
    workdir = workdir_in(engine, tmp_path / "root", environment=state_server.environment)
    asyncio.run(tofu.init(workdir))
    state_server.faults["UNLOCK"] = 500
    with pytest.raises(failures.StateNotUnlockedError):
        asyncio.run(tofu.plan(workdir, tmp_path / "plan"))


def test_a_plan_that_was_applied_already_is_stale(engine: Engine, tmp_path: Path) -> None:
    write_root(tmp_path / "root", 'resource "terraform_data" "a" {}')
    workdir = workdir_in(engine, tmp_path / "root")

    async def apply_twice() -> None:
        await tofu.plan(workdir, tmp_path / "plan")
        await tofu.apply(workdir, tmp_path / "plan")
        await tofu.apply(workdir, tmp_path / "plan")

    with pytest.raises(failures.PlanStaleError):
        asyncio.run(apply_twice())


def test_a_folder_without_init_says_so_in_every_verb(engine: Engine, tmp_path: Path) -> None:
    write_root(tmp_path / "root", HTTP_ROOT)
    workdir = workdir_in(engine, tmp_path / "root")
    for verb in (
        tofu.plan(workdir, tmp_path / "plan"),
        tofu.show_state(workdir),
        statefile.state_pull(workdir),
    ):
        with pytest.raises(failures.InitNeededError):
            asyncio.run(verb)


def test_a_backend_that_is_down_is_unreachable_in_every_verb(
    engine: Engine, tmp_path: Path, state_server: StateServer
) -> None:
    write_root(tmp_path / "root", HTTP_ROOT)
    workdir = workdir_in(engine, tmp_path / "root", environment=state_server.environment)
    asyncio.run(tofu.init(workdir))
    state_server.faults.update(GET=500, LOCK=500)
    verbs = (
        tofu.plan(workdir, tmp_path / "plan"),
        tofu.output(workdir),
        statefile.state_list(workdir),
        statefile.state_pull(workdir),
    )
    for verb in verbs:
        with pytest.raises(failures.BackendUnreachableError) as caught:
            asyncio.run(verb)
        assert caught.value.exit_status is ExitStatus.UNREACHABLE


def test_a_registry_that_is_down_is_unreachable(engine: Engine, tmp_path: Path) -> None:
    write_root(
        tmp_path,
        'terraform {\n  required_providers {\n    thing = { source = "localhost:1/lab/thing" }\n  }\n}\n',
    )
    with pytest.raises(failures.RegistryUnreachableError):
        asyncio.run(tofu.init(workdir_in(engine, tmp_path)))


def provider_root(constraint: str) -> str:
    source = f'{{ source = "example.test/lab/thing", version = "{constraint}" }}'
    return f"terraform {{\n  required_providers {{\n    thing = {source}\n  }}\n}}\n"


def make_mirror(folder: Path, versions: tuple[str, ...]) -> Path:
    """Make a mirror of a provider, which init copies and never starts; return the settings file for it."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    for version in versions:
        package = folder / f"example.test/lab/thing/{version}/linux_{machine}"
        package.mkdir(parents=True)
        (package / f"terraform-provider-thing_v{version}").write_text(f"#!/bin/sh\n# {version}\n")
    config = folder / "cli.tfrc"
    config.write_text(f'provider_installation {{\n  filesystem_mirror {{\n    path = "{folder}"\n  }}\n}}\n')
    return config


async def test_a_stale_provider_lock_is_explained_and_refreshed_on_request(
    engine: Engine, tmp_path: Path
) -> None:
    folder = tmp_path / "root"
    write_root(folder, provider_root("0.5.1"))
    config = make_mirror(tmp_path / "mirror", ("0.5.1", "0.6.0"))
    workdir = workdir_in(engine, folder, cli_config=config)
    lock_file = folder / ".terraform.lock.hcl"

    with pytest.raises(failures.ProviderLockError):
        await tofu.init(workdir, tofu.InitOptions(lockfile=tofu.Lockfile.READONLY))
    assert not lock_file.exists()
    await tofu.init(workdir)
    await tofu.init(workdir, tofu.InitOptions(lockfile=tofu.Lockfile.READONLY))
    write_root(folder, provider_root("~> 0.6"))
    locked = lock_file.read_text()
    with pytest.raises(failures.ProviderLockError) as caught:
        await tofu.init(workdir)
    assert "refresh the lock file" in caught.value.remedy
    assert lock_file.read_text() == locked
    await tofu.init(workdir, tofu.InitOptions(lockfile=tofu.Lockfile.REFRESH))
    assert '"0.6.0"' in lock_file.read_text()


def test_a_provider_that_was_never_selected_is_a_provider_lock_error(engine: Engine, tmp_path: Path) -> None:
    write_root(tmp_path / "root", provider_root("0.5.1") + 'resource "thing_x" "y" {}\n')
    with pytest.raises(failures.ProviderLockError):
        asyncio.run(tofu.plan(workdir_in(engine, tmp_path / "root"), tmp_path / "plan"))
