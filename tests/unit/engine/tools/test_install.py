from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.programs import LONG_S, engine_script, managed_copy
from tests.support.releases import ReleaseServer, archive_name, zipped

from stackyard.base import events
from stackyard.base.diagnostics import describe
from stackyard.base.errors import ExitStatus, FileError
from stackyard.engine.tools.install import (
    DEFAULT_TOFU_VERSION,
    InstalledTool,
    ToolInstallError,
    ToolVersionError,
    install_tofu,
    read_version,
)
from stackyard.engine.tools.release import HttpTimeouts, ReleaseArchive
from stackyard.engine.tools.table import TOFU_INSTALL

VERSION = "1.12.6"

# Installs from the server that the first argument names, and tells how it gets on.
INSTALLER = """
import asyncio, sys
from stackyard.base import events
from stackyard.engine.tools.install import install_tofu
from stackyard.engine.tools.release import ReleaseArchive

def tell(event):
    if isinstance(event, events.StepWaiting):
        print("waits for", event.waiting_for, flush=True)

ways = (ReleaseArchive(base_url=sys.argv[1]),)
print("way", asyncio.run(install_tofu("1.12.6", emit=tell, ways=ways)).way, flush=True)
"""


def archive_way(releases: ReleaseServer) -> ReleaseArchive:
    return ReleaseArchive(base_url=releases.url, patience=HttpTimeouts(connect_s=LONG_S, stall_s=LONG_S))


def install(
    releases: ReleaseServer, version: str = VERSION, emit: events.Emit = events.ignore
) -> InstalledTool:
    return asyncio.run(install_tofu(version, emit=emit, ways=(archive_way(releases),)))


def installer(releases: ReleaseServer) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", INSTALLER, releases.url]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def what_is_there(cache: Path) -> list[str]:
    folder = cache / "tools" / "tofu"
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def archive_hits(releases: ReleaseServer) -> int:
    return sum(hit.endswith(archive_name(VERSION)) for hit in releases.hits)


def test_it_is_in_place_runs_and_nothing_else_is_left(releases: ReleaseServer, cache: Path) -> None:
    releases.publish(VERSION)
    installed = install(releases)
    path = cache / "tools" / "tofu" / VERSION / "tofu"
    assert installed == InstalledTool(name="tofu", version=VERSION, path=path, way="the release archive")
    assert VERSION in subprocess.check_output([path, "version", "-json"], text=True)
    assert what_is_there(cache) == [".lock", f"{VERSION}/tofu"]
    assert stat.S_IMODE((cache / "tools" / "tofu").stat().st_mode) == 0o700


def test_one_that_is_there_is_kept_without_a_word_to_the_network(
    releases: ReleaseServer, cache: Path
) -> None:
    path = managed_copy(cache, VERSION)
    assert install(releases) == InstalledTool(name="tofu", version=VERSION, path=path, way=None)
    assert releases.hits == []


@pytest.mark.parametrize("script", ["exit 1", "echo garbage", engine_script("1.11.0")])
def test_one_that_is_there_and_wrong_is_replaced(script: str, releases: ReleaseServer, cache: Path) -> None:
    managed_copy(cache, VERSION, script)
    releases.publish(VERSION)
    assert install(releases).way == "the release archive"
    assert install(releases).way is None


def test_versions_live_side_by_side(releases: ReleaseServer, cache: Path) -> None:
    for version in (VERSION, "1.10.0"):
        releases.publish(version)
        install(releases, version)
    assert what_is_there(cache) == [".lock", "1.10.0/tofu", f"{VERSION}/tofu"]


def test_the_whole_work_is_one_step_with_the_way_inside_it(releases: ReleaseServer) -> None:
    releases.publish(VERSION)
    seen: list[events.Event] = []
    install(releases, emit=seen.append)
    ended = [(event.step, event.outcome) for event in seen if isinstance(event, events.StepFinished)]
    done = events.Outcome.DONE
    assert ended == [("tools.tofu.release", done), ("tools.tofu", done)]


def test_when_the_first_way_fails_the_next_one_is_tried_and_the_failure_is_told(
    releases: ReleaseServer,
) -> None:
    releases.publish(VERSION)
    broken = ReleaseArchive(base_url=f"{releases.url}/elsewhere")
    seen: list[events.Event] = []
    ways = (broken, archive_way(releases))
    assert asyncio.run(install_tofu(VERSION, emit=seen.append, ways=ways)).way == "the release archive"
    warnings = [event.text for event in seen if isinstance(event, events.LogLine)]
    assert len(warnings) == 1
    assert "answered 404" in warnings[0]


def test_when_no_way_works_the_error_lists_each_one_and_its_reason(
    releases: ReleaseServer, cache: Path
) -> None:
    releases.publish(VERSION, sums="")
    broken = ReleaseArchive(base_url=f"{releases.url}/elsewhere")
    with pytest.raises(ToolInstallError) as caught:
        asyncio.run(install_tofu(VERSION, emit=events.ignore, ways=(broken, archive_way(releases))))
    lines = caught.value.detail.splitlines()
    assert VERSION in lines[0]
    assert "answered 404" in lines[1]
    assert "no line for" in lines[2]
    assert [found["code"] for found in describe(caught.value)["diagnostics"]] == ["E-TOOL-RELEASE"] * 2
    assert what_is_there(cache) == [".lock"]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (engine_script("1.11.0"), "says that it is tofu 1.11.0"),
        (engine_script(VERSION, terraform=True), f"says that it is terraform {VERSION}"),
        ("exit 3", "status 3"),
        ("echo hello", "hello"),
    ],
)
def test_a_program_that_does_not_prove_its_version_is_never_put_in_place(
    script: str, words: str, releases: ReleaseServer, cache: Path
) -> None:
    releases.publish(VERSION, zipped({"tofu": f"#!/bin/sh\n{script}\n".encode()}))
    with pytest.raises(ToolInstallError, match=words):
        install(releases)
    assert what_is_there(cache) == [".lock"]


def test_two_processes_at_once_install_once(releases: ReleaseServer, cache: Path) -> None:
    releases.publish(VERSION)
    with installer(releases) as first, installer(releases) as second:
        ways = sorted(process.communicate(timeout=LONG_S)[0].splitlines()[-1] for process in (first, second))
    assert ways == ["way None", "way the release archive"]
    assert archive_hits(releases) == 1
    assert what_is_there(cache) == [".lock", f"{VERSION}/tofu"]


def test_who_waits_for_another_process_says_so_and_takes_over_when_that_is_killed(
    releases: ReleaseServer, cache: Path
) -> None:
    releases.publish(VERSION, serve=releases.stalling)
    with installer(releases) as first:
        assert releases.stalled.wait(LONG_S)
        releases.publish(VERSION)
        with installer(releases) as second:
            assert second.stdout is not None
            told = second.stdout.readline()
            first.kill()
            said = second.communicate(timeout=LONG_S)[0]
    assert str(first.pid) in told
    assert f"installs OpenTofu {VERSION}" in told
    assert said.splitlines()[-1] == "way the release archive"
    assert what_is_there(cache) == [".lock", f"{VERSION}/tofu"]


def test_a_kill_in_the_middle_leaves_nothing_that_matters(releases: ReleaseServer, cache: Path) -> None:
    releases.publish(VERSION, serve=releases.stalling)
    with installer(releases) as killed:
        assert releases.stalled.wait(LONG_S)
        killed.kill()
    assert not (cache / "tools" / "tofu" / VERSION).exists()
    assert len(what_is_there(cache)) == 2, "the lock and the half of the archive"
    releases.publish(VERSION)
    assert install(releases).way == "the release archive"
    assert what_is_there(cache) == [".lock", f"{VERSION}/tofu"]


def test_an_interrupt_in_the_middle_leaves_nothing_behind(releases: ReleaseServer, cache: Path) -> None:
    releases.publish(VERSION, serve=releases.stalling)

    async def scenario() -> None:
        progressed = asyncio.Event()

        def emit(event: events.Event) -> None:
            if isinstance(event, events.StepProgressed):
                progressed.set()

        task = asyncio.create_task(install_tofu(VERSION, emit=emit, ways=(archive_way(releases),)))
        await asyncio.wait_for(progressed.wait(), LONG_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert what_is_there(cache) == [".lock"]
    assert not list((cache / "tools" / "tofu").glob(".work-*"))


def test_ctrl_c_of_the_real_program_leaves_nothing_behind(releases: ReleaseServer, cache: Path) -> None:
    releases.publish(VERSION, serve=releases.stalling)
    with installer(releases) as process:
        assert releases.stalled.wait(LONG_S)
        process.send_signal(signal.SIGINT)
        process.wait(LONG_S)
    assert what_is_there(cache) == [".lock"]


def test_a_write_that_the_system_refuses_is_one_clear_error_and_leaves_nothing(
    releases: ReleaseServer, cache: Path
) -> None:
    releases.publish(VERSION)
    limited = f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n{INSTALLER}"
    argv = [sys.executable, "-c", limited, releases.url]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LONG_S, check=False)
    assert done.stderr.splitlines()[-1].startswith("stackyard.base.errors.FileError: Cannot install into ")
    assert "File too large" in done.stderr
    assert what_is_there(cache) == [".lock"]


def test_a_cache_below_a_file_is_a_clear_error(
    releases: ReleaseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(FileError, match="Cannot make the folder"):
        install(releases)
    assert releases.hits == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_without_permission_is_a_clear_error(releases: ReleaseServer, cache: Path) -> None:
    folder = cache / "tools" / "tofu"
    folder.mkdir(parents=True)
    folder.chmod(0o500)
    with pytest.raises(FileError, match="Permission denied"):
        install(releases)


@pytest.mark.parametrize("text", ["", "1", "1.12", "latest", "1.12.6; rm -rf /", "../../etc", "\u0661.2.3"])
def test_what_is_no_version_is_a_usage_error(text: str, releases: ReleaseServer) -> None:
    with pytest.raises(ToolVersionError) as caught:
        install(releases, text)
    assert caught.value.exit_status is ExitStatus.USAGE
    assert releases.hits == []


@pytest.mark.parametrize("text", ["1.9.4", "0.1.0", "1.10.0-rc1"])
def test_a_version_that_is_too_old_is_refused_before_anything_is_fetched(
    text: str, releases: ReleaseServer
) -> None:
    with pytest.raises(ToolVersionError, match=r"too old: 1\.10\.0 is the oldest"):
        install(releases, text)
    assert releases.hits == []


@pytest.mark.parametrize("text", ["1.10.0", "v1.12.6", "1.13.0-rc1", DEFAULT_TOFU_VERSION])
def test_a_version_that_works_is_understood(text: str) -> None:
    assert str(read_version(TOFU_INSTALL, text)) == text.removeprefix("v")


def test_the_releases_address_can_be_given(releases: ReleaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STACKYARD_RELEASES_URL", f"{releases.url}/elsewhere")
    releases.publish(VERSION)
    installed = asyncio.run(install_tofu(VERSION, emit=events.ignore, releases_url=releases.url))
    assert installed.way == "the release archive"
