"""Images of a release: whole or in parts, checked, and continued where a download ended."""

from __future__ import annotations

import asyncio
import hashlib
import http.server
from pathlib import Path

import pytest
from tests.support.releases import Answer, ReleaseServer, dropped, failing, truncated, whole

from stackyard.base import events
from stackyard.base.errors import StackyardError
from stackyard.scenario.releases import ReleasedImages, ReleaseError, ReleaseUnreachableError

NAME = "debian-13-pve.qcow2"
# Larger than any socket buffer, so that a part of it really is only a part.
IMAGE = bytes(range(256)) * 8000


def sum_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sums(**files: bytes) -> bytes:
    return "".join(f"{sum_of(data)}  {name}\n" for name, data in files.items()).encode()


def put(server: ReleaseServer, name: str, answer: Answer | bytes) -> None:
    path = f"/releases/v1/{name}"
    server.answers[path] = whole(answer) if isinstance(answer, bytes) else answer


def fetch(server: ReleaseServer, folder: Path) -> Path:
    source = ReleasedImages(tag="v1", base_url=server.url)
    return asyncio.run(source.fetch(NAME, folder, events.Step("test", events.ignore)))


def ranged(body: bytes, *, first: Answer | None = None, starts: list[int] | None = None) -> Answer:
    """Return an answer that serves ranges; the first request gets another one, if that is given."""
    answers = [first] if first is not None else []

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        start = int(handler.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        if starts is not None:
            starts.append(start)
        if answers:
            answers.pop()(handler)
            return
        if start >= len(body):
            handler.send_error(416)
            return
        handler.send_response(206 if start else 200)
        handler.send_header("Content-Length", str(len(body) - start))
        handler.end_headers()
        handler.wfile.write(body[start:])

    return answer


def test_an_image_is_downloaded_checked_and_found_the_second_time(tmp_path: Path) -> None:
    with ReleaseServer() as server:
        put(server, f"{NAME}.sha256", f"{sum_of(IMAGE)}  {NAME}\n".encode())
        put(server, NAME, IMAGE)
        path = fetch(server, tmp_path)
        assert path.read_bytes() == IMAGE
        server.hits.clear()
        assert fetch(server, tmp_path) == path
        assert f"/releases/v1/{NAME}" not in server.hits
    assert [one.name for one in tmp_path.iterdir()] == [NAME]


@pytest.mark.parametrize("listed", [True, False])
def test_parts_are_put_together_in_their_order_and_removed(tmp_path: Path, listed: bool) -> None:
    parts = {
        f"{NAME}.parta{letter}": IMAGE[at : at + 800_000]
        for letter, at in zip("abc", range(0, 2_400_000, 800_000), strict=True)
    }
    with ReleaseServer() as server:
        known = sums(**{NAME: IMAGE, **parts}) if listed else f"{sum_of(IMAGE)}\n".encode()
        put(server, "SHA256SUMS" if listed else f"{NAME}.sha256", known)
        for name, data in parts.items():
            put(server, name, data)
        assert fetch(server, tmp_path).read_bytes() == IMAGE
    assert [one.name for one in tmp_path.iterdir()] == [NAME]


def test_a_part_that_is_missing_is_named_where_the_sums_tell_and_found_out_where_not(tmp_path: Path) -> None:
    parts = {f"{NAME}.partaa": IMAGE[:1_000_000], f"{NAME}.partab": IMAGE[1_000_000:]}
    with ReleaseServer() as server:
        put(server, "SHA256SUMS", sums(**{NAME: IMAGE, **parts}))
        put(server, f"{NAME}.partaa", parts[f"{NAME}.partaa"])
        with pytest.raises(ReleaseError, match=r"no part debian-13-pve\.qcow2\.partab"):
            fetch(server, tmp_path)
        put(server, "SHA256SUMS", sums(**{NAME: IMAGE}))
        with pytest.raises(ReleaseError, match="one may be missing"):
            fetch(server, tmp_path)
    assert not (tmp_path / NAME).exists()


@pytest.mark.parametrize("in_parts", [False, True])
def test_an_image_that_is_not_the_published_one_is_not_kept(tmp_path: Path, in_parts: bool) -> None:
    other = IMAGE[:-1] + b"!"
    with ReleaseServer() as server:
        name = f"{NAME}.partaa" if in_parts else NAME
        put(server, "SHA256SUMS", sums(**{NAME: IMAGE, name: IMAGE}))
        put(server, name, other)
        with pytest.raises(ReleaseError, match=r"is not the (file|part) that was published") as raised:
            fetch(server, tmp_path)
        assert sum_of(other) in raised.value.detail
        put(server, name, IMAGE)
        assert fetch(server, tmp_path).read_bytes() == IMAGE


def test_what_has_no_checksum_and_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with ReleaseServer() as server:
        put(server, NAME, IMAGE)
        with pytest.raises(ReleaseError, match="has no checksum"):
            fetch(server, tmp_path)
        put(server, "SHA256SUMS", sums(**{NAME: IMAGE}))
        del server.answers[f"/releases/v1/{NAME}"]
        with pytest.raises(ReleaseError, match=r"neither .* nor parts of it"):
            fetch(server, tmp_path)
        put(server, "SHA256SUMS", failing(403))
        with pytest.raises(ReleaseError, match="403"):
            fetch(server, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cut", [truncated, dropped])
def test_a_download_that_is_cut_off_goes_on_where_it_ended(tmp_path: Path, cut: object) -> None:
    starts: list[int] = []
    with ReleaseServer() as server:
        put(server, "SHA256SUMS", sums(**{NAME: IMAGE}))
        put(server, NAME, ranged(IMAGE, first=cut(IMAGE), starts=starts))  # type: ignore[operator]
        assert fetch(server, tmp_path).read_bytes() == IMAGE
    assert starts[0] == 0
    assert 0 < starts[1] <= len(IMAGE) // 2


def test_what_an_earlier_run_left_is_gone_on_with_also_where_the_server_sends_everything_anew(
    tmp_path: Path,
) -> None:
    with ReleaseServer() as server:
        put(server, "SHA256SUMS", sums(**{NAME: IMAGE}))
        for left, answer in (
            (IMAGE[:1000], ranged(IMAGE)),
            (IMAGE[:1000], whole(IMAGE)),
            (IMAGE, ranged(IMAGE)),
        ):
            (tmp_path / NAME).unlink(missing_ok=True)
            (tmp_path / f"{NAME}.partial").write_bytes(left)
            put(server, NAME, answer)
            assert fetch(server, tmp_path).read_bytes() == IMAGE


def test_a_server_that_never_sends_everything_is_given_up_on_and_what_came_stays(tmp_path: Path) -> None:
    with ReleaseServer() as server:
        put(server, "SHA256SUMS", sums(**{NAME: IMAGE}))
        put(server, NAME, truncated(IMAGE))
        with pytest.raises(ReleaseUnreachableError) as raised:
            fetch(server, tmp_path)
        assert raised.value.exit_status == 69
        assert (tmp_path / f"{NAME}.partial").stat().st_size > 0
        put(server, NAME, ranged(IMAGE))
        assert fetch(server, tmp_path).read_bytes() == IMAGE


@pytest.mark.parametrize("url", ["ftp://x", "nonsense", "http://"])
def test_an_address_that_is_none_is_refused(url: str, tmp_path: Path) -> None:
    source = ReleasedImages(tag="v1", base_url=url)
    with pytest.raises(StackyardError, match="STACKYARD_IMAGES_URL"):
        asyncio.run(source.fetch(NAME, tmp_path, events.Step("test", events.ignore)))
