from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.support.programs import LONG_S, engine_script, write_program

from stackyard.engine.tools.catalogue import TOFU
from stackyard.engine.tools.probe import Health, Probe, probe

LARGE_BYTES = 40 * 1024 * 1024


def counting_engine(path: Path, log: Path, version: str = "1.12.6", size: int = LARGE_BYTES) -> Path:
    """Make an engine as large as a real one, with a hole at its end, that notes each time it is asked."""
    write_program(path, f"echo asked >> {log}\n{engine_script(version)}\nexit 0")
    if size:
        os.truncate(path, size)
    return path


def ask(path: Path, *, from_memory: bool = True) -> Probe:
    return asyncio.run(probe(path, TOFU, timeout_s=LONG_S, from_memory=from_memory))


def times_asked(log: Path) -> int:
    return len(log.read_text().splitlines())


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def test_an_engine_is_asked_once_and_the_answer_stays_the_same(tmp_path: Path, log: Path) -> None:
    engine = counting_engine(tmp_path / "tofu", log)
    first, second = ask(engine), ask(engine)
    assert first == second
    assert first.health is Health.OK
    assert times_asked(log) == 1


def test_an_engine_that_was_replaced_is_asked_again(tmp_path: Path, log: Path) -> None:
    engine = counting_engine(tmp_path / "tofu", log)
    ask(engine)
    counting_engine(tmp_path / "new", log, version="1.13.0").replace(engine)
    said = ask(engine).said
    assert said is not None
    assert said.version == "1.13.0"


def test_an_engine_that_was_changed_in_place_is_asked_again(tmp_path: Path, log: Path) -> None:
    engine = counting_engine(tmp_path / "tofu", log)
    ask(engine)
    before = engine.stat()
    with engine.open("r+b") as stream:
        text = stream.read(200).replace(b"1.12.6", b"1.12.7")
        stream.seek(0)
        stream.write(text)
    os.utime(engine, ns=(before.st_atime_ns, before.st_mtime_ns))
    said = ask(engine).said
    assert said is not None
    assert said.version == "1.12.7"


def test_a_small_program_is_asked_every_time_because_it_may_be_a_shim(tmp_path: Path, log: Path) -> None:
    shim = counting_engine(tmp_path / "tofu", log, size=0)
    ask(shim)
    ask(shim)
    assert times_asked(log) == 2


def test_a_broken_engine_is_asked_every_time(tmp_path: Path, log: Path) -> None:
    engine = write_program(tmp_path / "tofu", f"echo asked >> {log}\nexit 1")
    os.truncate(engine, LARGE_BYTES)
    assert {ask(engine).health, ask(engine).health} == {Health.BROKEN}
    assert times_asked(log) == 2


def test_a_caller_can_insist_on_asking(tmp_path: Path, log: Path) -> None:
    engine = counting_engine(tmp_path / "tofu", log)
    ask(engine)
    ask(engine, from_memory=False)
    assert times_asked(log) == 2


@pytest.mark.parametrize("note", [b"", b"not json", b"[]", b'{"identity": 1}', b"\xff"])
def test_a_damaged_note_is_as_good_as_none(note: bytes, tmp_path: Path, log: Path, cache: Path) -> None:
    engine = counting_engine(tmp_path / "tofu", log)
    ask(engine)
    (kept,) = (cache / "probes").iterdir()
    kept.write_bytes(note)
    assert ask(engine).health is Health.OK
    assert times_asked(log) == 2


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    engine = counting_engine(tmp_path / "tofu", log)
    assert ask(engine).health is Health.OK
    assert ask(engine).health is Health.OK
    assert times_asked(log) == 2
