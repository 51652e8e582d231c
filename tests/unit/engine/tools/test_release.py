from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.programs import LONG_S
from tests.support.releases import (
    Answer,
    ReleaseServer,
    archive_name,
    dropped,
    failing,
    good_archive,
    hung_up,
    program,
    sums_of,
    truncated,
    zipped,
)

from stackyard.base import events
from stackyard.engine.tools.methods import ToolReleaseError
from stackyard.engine.tools.release import HttpTimeouts, ReleaseArchive
from stackyard.engine.version import Version

VERSION = "1.12.6"


def provide(
    url: str, folder: Path, emit: events.Emit = events.ignore, patience: HttpTimeouts | None = None
) -> Path:
    way = ReleaseArchive(base_url=url, patience=patience or HttpTimeouts(connect_s=LONG_S, stall_s=LONG_S))
    return asyncio.run(way.provide(Version.parse(VERSION), folder, emit))


def reason(releases: ReleaseServer, folder: Path, patience: HttpTimeouts | None = None) -> str:
    with pytest.raises(ToolReleaseError) as caught:
        provide(releases.url, folder, patience=patience)
    assert not (folder / "tofu").exists()
    return caught.value.detail


def test_a_good_archive_gives_the_program_and_progress_in_bytes(
    releases: ReleaseServer, tmp_path: Path
) -> None:
    releases.publish(VERSION)
    seen: list[events.Event] = []
    target = provide(releases.url, tmp_path, seen.append)
    assert target.read_bytes() == program(VERSION)
    size = len(good_archive(VERSION))
    steps = [event for event in seen if isinstance(event, events.StepProgressed) and event.unit == "bytes"]
    assert len(steps) > 1
    assert [step.total for step in steps] == [size] * len(steps)
    assert steps[-1].done == size
    assert sorted(step.done for step in steps) == [step.done for step in steps]


def test_the_sums_are_fetched_before_the_archive(releases: ReleaseServer, tmp_path: Path) -> None:
    releases.publish(VERSION)
    provide(releases.url, tmp_path)
    assert [hit.rsplit("/", 1)[1] for hit in releases.hits] == [
        f"tofu_{VERSION}_SHA256SUMS",
        archive_name(VERSION),
    ]


def test_the_address_comes_from_the_environment_when_none_is_given(
    releases: ReleaseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    releases.publish(VERSION)
    monkeypatch.setenv("STACKYARD_RELEASES_URL", releases.url)
    way = ReleaseArchive(patience=HttpTimeouts(connect_s=LONG_S, stall_s=LONG_S))
    assert asyncio.run(way.provide(Version.parse(VERSION), tmp_path, events.ignore)).is_file()


def test_a_wrong_sum_names_both_sums(releases: ReleaseServer, tmp_path: Path) -> None:
    releases.publish(VERSION, sums=f"{'ab' * 32}  {archive_name(VERSION)}\n")
    said = reason(releases, tmp_path)
    assert "ab" * 32 in said
    assert hashlib.sha256(good_archive(VERSION)).hexdigest() in said


def test_a_flipped_byte_is_found(releases: ReleaseServer, tmp_path: Path) -> None:
    good = good_archive(VERSION)
    flipped = bytearray(good)
    flipped[-1000] ^= 1
    releases.publish(VERSION, bytes(flipped), sums=sums_of({archive_name(VERSION): good}))
    assert "not the file that was published" in reason(releases, tmp_path)


@pytest.mark.parametrize("serve", [truncated, dropped])
def test_a_body_that_ends_early_says_how_far_it_came(
    serve: Callable[[bytes], Answer], releases: ReleaseServer, tmp_path: Path
) -> None:
    releases.publish(VERSION, serve=serve)
    said = reason(releases, tmp_path)
    assert "was cut off after" in said
    assert f"of {len(good_archive(VERSION))} bytes" in said


def test_a_connection_that_dies_before_any_word_is_a_reason(releases: ReleaseServer, tmp_path: Path) -> None:
    releases.publish(VERSION, serve=hung_up)
    assert "was cut off after 0 bytes" in reason(releases, tmp_path)


def test_a_server_that_stalls_is_left_alone(releases: ReleaseServer, tmp_path: Path) -> None:
    releases.publish(VERSION, serve=releases.stalling)
    said = reason(releases, tmp_path, HttpTimeouts(connect_s=LONG_S, stall_s=2.0))
    assert releases.stalled.is_set()
    assert "sent nothing for too long" in said


@pytest.mark.parametrize("status", [403, 404, 500, 503])
@pytest.mark.parametrize("which", ["sums", "archive"])
def test_an_error_status_is_quoted(status: int, which: str, releases: ReleaseServer, tmp_path: Path) -> None:
    releases.publish(VERSION)
    name = f"tofu_{VERSION}_SHA256SUMS" if which == "sums" else archive_name(VERSION)
    releases.answers[f"/releases/v{VERSION}/{name}"] = failing(status)
    assert f"{name} answered {status}" in reason(releases, tmp_path)


@pytest.mark.parametrize("sums", ["", "<html></html>", f"{'0' * 64}  tofu_0.0.0_plan9_mips.zip\n", "0  x"])
def test_sums_without_a_line_for_the_archive_are_refused_and_it_is_not_fetched(
    sums: str, releases: ReleaseServer, tmp_path: Path
) -> None:
    releases.publish(VERSION, sums=sums)
    assert f"no line for {archive_name(VERSION)}" in reason(releases, tmp_path)
    assert len(releases.hits) == 1


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"../../tofu": b"evil", "tofu": b"x"}, "leads out of its folder"),
        ({"terraform": b"x"}, "exactly one program `tofu`"),
    ],
)
def test_a_published_archive_with_bad_entries_is_refused(
    entries: dict[str, bytes], words: str, releases: ReleaseServer, tmp_path: Path
) -> None:
    releases.publish(VERSION, zipped(entries))
    assert words in reason(releases, tmp_path)


def test_a_port_that_nobody_listens_on_is_a_reason_that_names_it(tmp_path: Path) -> None:
    with socket.socket() as taken:
        # Bound and not listening: connections are refused, and nobody else can get the port.
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(ToolReleaseError, match=f"127.0.0.1:{port}.* cannot be reached"):
            provide(f"http://127.0.0.1:{port}", tmp_path)


def test_a_server_that_accepts_and_never_speaks_is_left_alone(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ToolReleaseError, match="sent nothing for too long, after 0 bytes"):
            provide(url, tmp_path, patience=HttpTimeouts(connect_s=LONG_S, stall_s=0.3))


@pytest.mark.parametrize(
    "url", ["", "ftp://example.test/x", "example.test/x", "http://", "/tmp/x", "http://["]
)
def test_an_address_that_is_none_is_refused_without_quoting_it(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STACKYARD_RELEASES_URL", "no address")
    with pytest.raises(ToolReleaseError, match="does not hold an http or https address"):
        provide(url, tmp_path)


def test_a_password_in_the_address_is_not_shown(releases: ReleaseServer, tmp_path: Path) -> None:
    with pytest.raises(ToolReleaseError) as caught:
        provide(releases.url.replace("http://", "http://anna:hunter22@"), tmp_path)
    assert "404" in caught.value.detail
    assert "hunter22" not in caught.value.detail


@pytest.mark.parametrize("proxy", ["garbage", "http://[::", "http://anna:hunter22@[::"])
def test_a_proxy_that_is_no_address_is_a_reason_that_does_not_quote_it(
    proxy: str, releases: ReleaseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    releases.publish(VERSION)
    said = reason(releases, tmp_path)
    assert "a proxy in the environment" in said
    assert "hunter22" not in said
