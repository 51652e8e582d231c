"""An engine that outlived its run keeps the next one waiting, and nothing else does."""

from __future__ import annotations

import asyncio
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from stackyard.base import events
from stackyard.engine.alone import EngineLeftError, work_alone
from stackyard.engine.version import Engine, Flavour, Version
from stackyard.engine.workdir import Limits, Workdir


def _workdir(folder: Path, grace_s: float = 60.0) -> Workdir:
    engine = Engine(flavour=Flavour.TOFU, version=Version(1, 12, 0), path=Path("/bin/sh"))
    return Workdir(engine=engine, folder=folder, limits=Limits(grace_s=grace_s), descriptors=(0,))


async def _leave_an_engine(folder: Path, script: str) -> subprocess.Popen[bytes]:
    """Work in a folder, and end while the engine still runs."""
    async with work_alone(_workdir(folder), folder, events.ignore) as workdir:
        assert workdir.descriptors[0] == 0, "those of before stay"
        return subprocess.Popen(["sh", "-c", script], pass_fds=workdir.descriptors[1:])


async def test_an_engine_that_still_works_is_waited_for_and_named(tmp_path: Path) -> None:
    left = await _leave_an_engine(tmp_path, "exec sleep 60")
    seen: list[events.Event] = []
    try:
        await _require_refused(tmp_path, seen)
    finally:
        left.kill()
        left.wait()
    async with asyncio.timeout(10), work_alone(_workdir(tmp_path), tmp_path, events.ignore):
        pass


async def _require_refused(folder: Path, seen: list[events.Event]) -> None:
    with pytest.raises(EngineLeftError, match="for 0 s more"):
        async with work_alone(_workdir(folder, 0.2), folder, seen.append):
            pass
    assert any(isinstance(event, events.StepWaiting) for event in seen)


async def test_the_next_run_begins_when_the_engine_ends(tmp_path: Path) -> None:
    with await _leave_an_engine(tmp_path, "sleep 0.3"):
        async with work_alone(_workdir(tmp_path), tmp_path, events.ignore) as workdir:
            assert len(workdir.descriptors) == 2


async def test_targets_do_not_wait_for_each_other(tmp_path: Path) -> None:
    async with work_alone(_workdir(tmp_path), tmp_path / "a", events.ignore):
        other = replace(_workdir(tmp_path), limits=Limits(grace_s=0.0))
        async with work_alone(other, tmp_path / "b", events.ignore):
            pass
