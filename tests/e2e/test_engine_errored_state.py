"""A backend that refuses the new state: nothing is lost, the state is kept, checked and pushed."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import pytest
from tests.support.engine import StateServer, engine, state_server, workdir_in, write_root

from stackyard.engine import errored, failures, tofu
from stackyard.engine.version import Engine
from stackyard.engine.workdir import Workdir

__all__ = ["engine", "state_server"]

ROOT = """
terraform {
  backend "http" {}
}
resource "terraform_data" "a" {}
"""


def failed_apply(
    engine: Engine, tmp_path: Path, server: StateServer
) -> tuple[Workdir, failures.StateNotSavedError]:
    """Apply while the backend takes no state."""
    folder = tmp_path / "root"
    write_root(folder, ROOT)
    workdir = workdir_in(engine, folder, environment=server.environment)

    async def apply() -> None:
        await tofu.init(workdir)
        await tofu.plan(workdir, tmp_path / "plans" / "plan")
        await tofu.apply(workdir, tmp_path / "plans" / "plan")

    server.faults["POST"] = 500
    with pytest.raises(failures.StateNotSavedError) as caught:
        asyncio.run(apply())
    return workdir, caught.value


def test_a_state_that_was_not_taken_is_found_checked_and_pushed(
    engine: Engine, tmp_path: Path, state_server: StateServer
) -> None:
    workdir, error = failed_apply(engine, tmp_path, state_server)
    left = workdir.folder / errored.ERRORED_STATE
    assert error.kept_in == left
    assert str(left) in error.detail
    assert stat.S_IMODE(left.stat().st_mode) == 0o600

    async def recover() -> Path:
        found = await errored.find_errored_state(workdir)
        assert found is not None
        assert found.verdict is errored.ErroredVerdict.NEWER
        assert "1 resources" in found.explanation
        with pytest.raises(errored.ErroredStateError):
            await tofu.apply(workdir, tmp_path / "plans" / "plan")
        with pytest.raises(failures.TofuError):
            await errored.push_errored_state(workdir, found)
        assert left.exists()

        state_server.faults.clear()
        moved = await errored.push_errored_state(workdir, found)
        assert await errored.find_errored_state(workdir) is None
        planned = await tofu.plan(workdir, tmp_path / "plans" / "next")
        assert planned.outcome is tofu.PlanOutcome.NO_CHANGES
        return moved

    moved = asyncio.run(recover())
    assert moved.exists()
    assert state_server.state is not None
    # A backend without a state gets a lineage of its own, so the two are compared by what they record.
    assert json.loads(moved.read_bytes())["resources"] == json.loads(state_server.state)["resources"]


def test_a_state_of_another_run_is_never_overwritten(
    engine: Engine, tmp_path: Path, state_server: StateServer
) -> None:
    workdir, _ = failed_apply(engine, tmp_path, state_server)
    left = json.loads((workdir.folder / errored.ERRORED_STATE).read_bytes())
    state_server.faults.clear()
    theirs = json.dumps(
        {**left, "resources": [], "outputs": {"o": {"value": "x", "type": "string"}}}
    ).encode()
    state_server.state = theirs

    async def push(verdict: errored.ErroredVerdict) -> None:
        found = await errored.find_errored_state(workdir)
        assert found is not None
        assert found.verdict is verdict
        with pytest.raises(errored.ErroredStateError):
            await errored.push_errored_state(workdir, found)

    asyncio.run(push(errored.ErroredVerdict.DIVERGED))
    assert state_server.state == theirs
    state_server.state = json.dumps({**left, "serial": left["serial"] + 1}).encode()
    asyncio.run(push(errored.ErroredVerdict.OLDER))
    state_server.state = json.dumps({**left, "lineage": "another"}).encode()
    asyncio.run(push(errored.ErroredVerdict.OTHER_LINEAGE))
    assert (workdir.folder / errored.ERRORED_STATE).exists()


def test_a_state_that_could_be_written_nowhere_is_taken_from_the_stream(
    engine: Engine, tmp_path: Path, state_server: StateServer
) -> None:
    # A folder of that name keeps the engine, and us, from writing the file beside the configuration.
    (tmp_path / "root" / errored.ERRORED_STATE).mkdir(parents=True)
    workdir, error = failed_apply(engine, tmp_path, state_server)
    assert error.kept_in == workdir.data_folder / errored.ERRORED_STATE
    assert stat.S_IMODE(error.kept_in.stat().st_mode) == 0o600
    assert [item["name"] for item in json.loads(error.kept_in.read_bytes())["resources"]] == ["a"]

    async def recover() -> tofu.PlanOutcome:
        found = await errored.find_errored_state(workdir)
        assert found is not None
        await errored.push_errored_state(workdir, found)
        return (await tofu.plan(workdir, tmp_path / "plans" / "next")).outcome

    state_server.faults.clear()
    assert asyncio.run(recover()) is tofu.PlanOutcome.NO_CHANGES
