"""Functions of ours in a process that can be ended: what they return, and what ends them."""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
from pathlib import Path

import pytest

from stackyard.base.errors import InvalidInputError, Location
from stackyard.base.process.worker import WorkCrashedError, Worker, WorkFailedError, WorkTimeoutError
from stackyard.secrets.sops.config import SopsConfigError, parse_config

PATIENT_S = 120.0


def double(text: str) -> str:
    return text * 2


def number(text: str) -> int:
    return int(text)


def own_pid() -> int:
    return os.getpid()


def print_something() -> str:
    os.write(1, b"out\n")
    os.write(2, b"err\n")
    return "done"


def match_without_end() -> bool:
    """Keep the interpreter busy in a way that no thread and no signal handler gets through."""
    return re.fullmatch(r"(a+)+b", "a" * 64) is not None


def crash() -> None:
    ctypes.string_at(0)


def fill_memory() -> int:
    return len(bytearray(64 * 2**30))


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_a_function_runs_in_another_process_and_its_result_comes_back() -> None:
    async with Worker() as worker:
        assert await worker.call(double, "ab" * 10**6, timeout_s=PATIENT_S) == "ab" * 2 * 10**6
        pid = await worker.call(own_pid, timeout_s=PATIENT_S)
        assert pid == worker.pid != os.getpid()
        # Many calls need one process.
        assert (
            await asyncio.gather(*(worker.call(own_pid, timeout_s=PATIENT_S) for _ in range(5))) == [pid] * 5
        )
    assert not is_running(pid)


async def test_what_a_function_prints_is_no_answer() -> None:
    async with Worker() as worker:
        assert await worker.call(print_something, timeout_s=PATIENT_S) == "done"


async def test_an_error_of_ours_comes_back_as_it_was_raised() -> None:
    async with Worker() as worker:
        with pytest.raises(SopsConfigError) as caught:
            await worker.call(parse_config, "a: [", Path("x/.sops.yaml"), timeout_s=PATIENT_S)
        assert isinstance(caught.value, InvalidInputError)
        assert caught.value.where == Location("x/.sops.yaml", 2, 1)
        assert caught.value.remedy == "Correct it."
        assert caught.value.diagnostics == ()
        # The process is still good for more.
        assert await worker.call(double, "a", timeout_s=PATIENT_S) == "aa"


async def test_an_error_that_is_not_ours_is_a_failure_with_its_text() -> None:
    async with Worker() as worker:
        with pytest.raises(WorkFailedError, match=r"ValueError: invalid literal.*'x'"):
            await worker.call(number, "x", timeout_s=PATIENT_S)


def test_a_function_that_does_not_end_is_killed_while_the_loop_goes_on() -> None:
    async def main() -> None:
        async with Worker() as worker:
            pid = await worker.call(own_pid, timeout_s=PATIENT_S)
            turns = 0

            async def count() -> None:
                nonlocal turns
                while True:
                    await asyncio.sleep(0.01)
                    turns += 1

            counting = asyncio.create_task(count())
            with pytest.raises(WorkTimeoutError, match=r"match_without_end` did not end within 0\.5 s"):
                await worker.call(match_without_end, timeout_s=0.5)
            counting.cancel()
            assert turns > 5
            assert not is_running(pid)
            assert await worker.call(double, "a", timeout_s=PATIENT_S) == "aa"

    asyncio.run(main())


async def test_a_crash_ends_the_other_process_alone() -> None:
    async with Worker() as worker:
        with pytest.raises(WorkCrashedError, match="ended by SIGSEGV"):
            await worker.call(crash, timeout_s=PATIENT_S)
        assert await worker.call(double, "a", timeout_s=PATIENT_S) == "aa"


async def test_a_function_may_not_fill_the_memory() -> None:
    async with Worker() as worker:
        with pytest.raises(WorkCrashedError, match="needs more memory"):
            await worker.call(fill_memory, timeout_s=PATIENT_S)


async def test_a_call_that_is_cancelled_leaves_no_process_and_no_answer_for_the_next() -> None:
    async with Worker() as worker:
        pid = await worker.call(own_pid, timeout_s=PATIENT_S)
        calling = asyncio.create_task(worker.call(match_without_end, timeout_s=PATIENT_S))
        await asyncio.sleep(0)
        while worker.pid is None:
            await asyncio.sleep(0)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        assert not is_running(pid)
        assert await worker.call(double, "b", timeout_s=PATIENT_S) == "bb"


async def test_a_process_that_somebody_killed_meanwhile_is_started_again() -> None:
    async with Worker() as worker:
        pid = await worker.call(own_pid, timeout_s=PATIENT_S)
        os.kill(pid, 9)
        while is_running(pid) and Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z":
            await asyncio.sleep(0.01)
        await asyncio.sleep(0)
        # Either the end was seen, or the call meets it.
        try:
            assert await worker.call(double, "b", timeout_s=PATIENT_S) == "bb"
        except WorkCrashedError:
            assert await worker.call(double, "b", timeout_s=PATIENT_S) == "bb"


async def test_the_other_process_imports_nothing_from_the_folder_it_runs_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pickle.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)

    async with Worker() as worker:
        assert await worker.call(double, "a", timeout_s=PATIENT_S) == "aa"
