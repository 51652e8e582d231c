"""What can go wrong between us and a real S3 store: lost answers, silence, restarts, no conditions."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.seaweed import BUCKET, Seaweed, new_prefix, seaweed, start_seaweed
from tests.support.state_proxy import Fault, Proxy, proxy_thread

from stackyard.base.errors import ExitStatus, UsageError
from stackyard.clients.objects import (
    ABSENT,
    ANYTHING,
    ConflictError,
    StoreError,
    StoreReadOnlyError,
    StoreUnsafeError,
    open_objects,
)
from stackyard.clients.objects.s3 import S3Config, S3Objects

__all__ = ["seaweed"]


@pytest.fixture
def proxy(seaweed: Seaweed) -> Iterator[Proxy]:
    with proxy_thread(seaweed.ports[-1]) as found:
        yield found


Connect = Callable[..., S3Objects]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Give what opens a place of its own in a store, or the place that it is told."""
    opened: list[S3Objects] = []

    def connect(endpoint: str, *, is_checked: bool = True, **fields: Any) -> S3Objects:
        usual = {"bucket": BUCKET, "prefix": new_prefix(), "read_timeout_s": 30.0}
        place = S3Config(endpoint_url=endpoint, **{**usual, **fields})
        opened.append(S3Objects(place, is_checked=is_checked))
        return opened[-1]

    yield connect
    for objects in opened:
        objects.close()


@pytest.mark.parametrize("fault", list(Fault))
def test_a_write_whose_answer_is_lost_is_recognised_as_ours(
    proxy: Proxy, connect: Connect, fault: Fault
) -> None:
    objects = connect(proxy.url)
    proxy.fail("PUT", fault)
    tag = objects.put("lock", b"mine", expect=ABSENT)
    proxy.fail("PUT", fault)
    newer = objects.put("lock", b"newer", expect=tag)
    found = objects.get("lock")
    assert found is not None
    assert (found.data, found.tag, proxy.done) == (b"newer", newer, 2)


@pytest.mark.parametrize("fault", [Fault.DROP_BEFORE, Fault.DROP_AFTER])
def test_a_write_whose_answer_is_lost_is_not_taken_for_ours_when_it_is_not(
    proxy: Proxy, connect: Connect, fault: Fault
) -> None:
    prefix = new_prefix()
    one, two = connect(proxy.url, prefix=prefix), connect(proxy.url, prefix=prefix)
    tag = one.put("lock", b"first", expect=ABSENT)
    two.put("lock", b"theirs", expect=tag)
    proxy.fail("PUT", fault)
    with pytest.raises(ConflictError):
        one.put("lock", b"mine", expect=tag)
    found = one.get("lock")
    assert found is not None
    assert found.data == b"theirs"


def test_reads_and_lists_are_repeated_and_then_given_up(proxy: Proxy, connect: Connect) -> None:
    objects = connect(proxy.url)
    objects.put("x", b"1", expect=ABSENT)
    proxy.fail("GET", Fault.DROP_AFTER, Fault.AWAY)
    found = objects.get("x")
    assert found is not None
    proxy.fail("GET", *[Fault.AWAY] * 3)
    with pytest.raises(StoreError) as caught:
        objects.get("x")
    assert caught.value.exit_status is ExitStatus.UNREACHABLE


def test_a_store_that_is_away_slow_or_restarted_never_says_that_something_is_absent(
    tmp_path: Path, seaweed: Seaweed, connect: Connect
) -> None:
    del seaweed
    server = start_seaweed(tmp_path / "own")
    try:
        tag = connect(server.endpoint, prefix="x").put("x", b"1", expect=ABSENT)
        # Only for a store that does not answer at all: one that is busy may need longer than that.
        objects = connect(server.endpoint, is_checked=False, prefix="x", read_timeout_s=1.0, attempts=1)
        server.pause()
        with pytest.raises(StoreError):
            objects.get("x")
        with pytest.raises(StoreError):
            objects.put("x", b"2", expect=tag)
        server.resume()
        server.kill()
        with pytest.raises(StoreError):
            objects.get("x")
        server.start()
        again = connect(server.endpoint, prefix="x")
        found = again.get("x")
        assert found is not None
        # The write that was not answered may have happened, or not: nothing else.
        assert found.data in (b"1", b"2")
        again.put("x", b"3", expect=found.tag)
    finally:
        server.kill()


def test_a_bucket_that_is_gone_is_an_error_and_not_an_empty_store(seaweed: Seaweed, connect: Connect) -> None:
    bucket = new_prefix()
    objects = connect(seaweed.endpoint, bucket=bucket, prefix="")
    assert objects.get("x") is None
    objects._client.delete_bucket(Bucket=bucket)
    with pytest.raises(StoreError):
        objects.get("x")


def test_wrong_credentials_are_refused_at_once(seaweed: Seaweed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(StoreReadOnlyError):
        open_objects(seaweed.address(new_prefix()))


@pytest.mark.parametrize(
    "address", ["s3://", "s3:///x", "http://bucket/x", "s3://user:pw@bucket/x", "s3://b/x?secret=1"]
)
def test_an_address_that_makes_no_sense_is_refused(address: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_objects(address)
    assert "pw" not in caught.value.detail


# --- A store that ignores conditions


class Careless(http.server.BaseHTTPRequestHandler):
    """Keeps what it is sent and never looks at a condition, as some stores do."""

    kept: dict[str, tuple[bytes, str]]
    # How the path of objects ends that it refuses.
    refused: str
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.refused and self.path.endswith(self.refused):
            self._reply(409, b"", "")
            return
        etag = f'"{hash(body) & 0xFFFFFFFF:032x}"'
        self.kept[self.path] = (body, etag)
        self._reply(200, b"", etag)

    def do_GET(self) -> None:
        body, etag = self.kept[self.path]
        self._reply(200, body, etag)

    def do_DELETE(self) -> None:
        self._reply(204, b"", "")

    def _reply(self, status: int, body: bytes, etag: str) -> None:
        self.send_response(status)
        self.send_header("ETag", etag)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextlib.contextmanager
def serve_carelessly(refused: str = "") -> Iterator[tuple[str, dict[str, tuple[bytes, str]]]]:
    """Give the address of a store that ignores conditions, and what it keeps."""
    kept: dict[str, tuple[bytes, str]] = {}
    handler = type("Handler", (Careless,), {"kept": kept, "refused": refused})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", kept
        finally:
            server.shutdown()
            thread.join()


def test_a_store_that_ignores_conditions_is_refused(seaweed: Seaweed) -> None:
    del seaweed
    with serve_carelessly() as (url, _), pytest.raises(StoreUnsafeError, match="If-None-Match"):
        open_objects(f"s3://bucket/x?endpoint={url}")


@pytest.mark.parametrize("refused", ["body-0", "body-1", "body-2"])
def test_an_object_is_not_written_when_one_that_comes_before_it_is_refused(
    seaweed: Seaweed, connect: Connect, refused: str
) -> None:
    """S3 may answer 409 to a write without a condition, when two of them meet."""
    del seaweed
    with serve_carelessly(refused) as (url, kept):
        objects = connect(url, is_checked=False, prefix="x")
        with pytest.raises(ConflictError, match=refused):
            objects.put("head", b"1", expect=ANYTHING, before={f"body-{number}": b"2" for number in range(3)})
    assert not [path for path in kept if path.endswith("/head")]
