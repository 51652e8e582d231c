"""A store behind a state service, with connections that break at the worst moments."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.object_service import ObjectService, object_service
from tests.support.processes import PATIENCE_S
from tests.support.state_client import TOKEN
from tests.support.state_process import start_service
from tests.support.state_proxy import Fault, Proxy, proxy_thread

from stackyard.base.errors import UsageError
from stackyard.clients.objects import (
    ABSENT,
    ANYTHING,
    ConflictError,
    Expect,
    MemoryObjects,
    Objects,
    SqliteObjects,
    StoreBusyError,
    Stored,
    StoreDeniedError,
    StoreError,
    StoreFullError,
    Tag,
    open_objects,
)
from stackyard.clients.objects.http import (
    TOKEN_FILE_VARIABLE,
    TOKEN_VARIABLE,
    HttpAddress,
    HttpObjects,
    StoreToken,
)
from stackyard.clients.objects.watch import WatchableObjects
from stackyard.state import Access, Actor, Right

ME = Actor(principal="tests")
CUTS = (Fault.DROP_BEFORE, Fault.DROP_AFTER)


class CountedObjects(MemoryObjects):
    """A store that counts what was done to it."""

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[tuple[str, bytes]] = []

    def _write(self, key: str, data: bytes) -> Tag:
        self.changes.append((key, data))
        return super()._write(key, data)


@pytest.fixture
def backing() -> CountedObjects:
    return CountedObjects()


@pytest.fixture
def service(backing: CountedObjects) -> Iterator[ObjectService]:
    with object_service(backing) as made:
        yield made


@pytest.fixture
def proxy(service: ObjectService) -> Iterator[Proxy]:
    with proxy_thread(service.port) as made:
        yield made


def new_client(service: ObjectService, proxy: Proxy, *, is_fresh: bool) -> HttpObjects:
    """Return a client whose next request is the first of a connection, or one of an open connection."""
    objects = service.open(port=proxy.port)
    if is_fresh:
        objects._pool.drop_idle()
    return objects


# --- Every method, cut before and after the service acts

METHODS: dict[str, tuple[str, Callable[[Objects], object], object]] = {
    "get": ("GET", lambda objects: objects.get("there").data, b"0"),  # type: ignore[union-attr]
    "get of nothing": ("GET", lambda objects: objects.get("missing"), None),
    "list": ("GET", lambda objects: [one.key for one in objects.list("th")], ["there"]),
    "delete": ("DELETE", lambda objects: objects.delete("there"), None),
}


@pytest.mark.parametrize("is_fresh", [True, False], ids=["fresh", "kept"])
@pytest.mark.parametrize("faults", [(one,) for one in (*CUTS, Fault.AWAY)] + [CUTS, CUTS[::-1]], ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_a_lost_connection_is_made_again_and_the_answer_is_the_truth(
    service: ObjectService, proxy: Proxy, method: str, faults: tuple[Fault, ...], is_fresh: bool
) -> None:
    verb, action, answer = METHODS[method]
    service.service.objects.put("there", b"0", expect=ABSENT)
    objects = new_client(service, proxy, is_fresh=is_fresh)
    proxy.fail(verb, *faults)
    assert action(objects) == answer
    assert proxy.done == len(faults)
    assert (service.service.objects.get("there") is None) == (method == "delete")


def expectation(service: ObjectService, name: str) -> Expect:
    if name == "tag":
        return service.service.objects.put("x", b"0", expect=ABSENT)
    return ABSENT if name == "absent" else ANYTHING


@pytest.mark.parametrize("is_fresh", [True, False], ids=["fresh", "kept"])
@pytest.mark.parametrize("faults", [(one,) for one in (*CUTS, Fault.AWAY)] + [CUTS, CUTS[::-1]], ids=str)
@pytest.mark.parametrize("expect", ["absent", "tag", "anything"])
def test_a_write_whose_answer_is_lost_is_done_once(
    service: ObjectService,
    proxy: Proxy,
    backing: CountedObjects,
    expect: str,
    faults: tuple[Fault, ...],
    is_fresh: bool,
) -> None:
    expected = expectation(service, expect)
    objects = new_client(service, proxy, is_fresh=is_fresh)
    backing.changes.clear()
    proxy.fail("PUT", *faults)
    tag = objects.put("x", b"1", expect=expected, before={"body": b"b"})
    assert backing.changes == [("body", b"b"), ("x", b"1")]
    found = backing.get("x")
    assert found is not None
    assert (found.data, found.tag) == (b"1", tag)


@pytest.mark.parametrize("content", [b"other", b"1"], ids=["other", "equal"])
@pytest.mark.parametrize("fault", CUTS)
@pytest.mark.parametrize("expect", ["absent", "tag"])
def test_the_caller_learns_whose_write_it_was(
    service: ObjectService, proxy: Proxy, backing: CountedObjects, expect: str, fault: Fault, content: bytes
) -> None:
    """Someone else writes before the request is sent again: equal content does not make it ours."""
    expected = expectation(service, expect)
    objects = new_client(service, proxy, is_fresh=True)
    proxy.on_fault = lambda: backing.put("x", content, expect=ANYTHING)
    proxy.fail("PUT", fault)
    backing.changes.clear()
    if fault is Fault.DROP_BEFORE:
        with pytest.raises(ConflictError):
            objects.put("x", b"1", expect=expected)
        assert backing.changes == [("x", content)]
    else:
        objects.put("x", b"1", expect=expected)
        assert backing.changes == [("x", b"1"), ("x", content)]


@pytest.mark.parametrize("expect", ["absent", "tag", "anything"])
def test_a_request_that_arrives_late_replaces_nothing(
    service: ObjectService, proxy: Proxy, backing: CountedObjects, expect: str
) -> None:
    expected = expectation(service, expect)
    objects = new_client(service, proxy, is_fresh=True)
    backing.changes.clear()
    proxy.fail("PUT", Fault.DROP_LATE)
    tag = objects.put("x", b"1", expect=expected)
    backing.put("x", b"later", expect=tag)
    (answer,) = proxy.deliver()
    assert answer.startswith(b"HTTP/1.1 200")
    assert backing.changes == [("x", b"1"), ("x", b"later")]


def test_a_watch_survives_lost_connections_and_misses_nothing(
    service: ObjectService, proxy: Proxy, backing: CountedObjects
) -> None:
    objects = new_client(service, proxy, is_fresh=True)
    assert isinstance(objects, WatchableObjects)
    with objects.watch("a/") as watching:
        for fault in CUTS:
            proxy.on_fault = lambda: backing.put("a/x", b"1", expect=ANYTHING)
            proxy.fail("GET", fault)
            if fault is Fault.DROP_AFTER:
                backing.put("a/x", b"1", expect=ANYTHING)
            assert watching.wait(PATIENCE_S)
            while watching.wait(0.05):
                pass
        assert not watching.wait(0.01)


def test_a_service_that_stays_away_is_an_error_in_time_and_never_an_empty_store(
    service: ObjectService, proxy: Proxy, backing: CountedObjects
) -> None:
    objects = service.open(port=proxy.port, patience_s=0.3)
    for action, verb in (
        (lambda: objects.get("x"), "GET"),
        (lambda: objects.put("x", b"1", expect=ABSENT), "PUT"),
        (lambda: objects.delete("x"), "DELETE"),
        (lambda: objects.list(""), "GET"),
    ):
        for fault in (*CUTS, Fault.AWAY):
            proxy.faults.clear()
            proxy.fail(verb, *[fault] * 1000)
            began = time.monotonic()
            with pytest.raises(StoreError):
                action()
            assert time.monotonic() - began < 30.0
            proxy.faults.clear()
            if verb == "PUT":
                # The truth is one of two, and a read tells which.
                assert (objects.get("x") is not None) == (fault is Fault.DROP_AFTER)
                backing.delete("x")


def test_an_error_of_another_server_is_no_answer_of_a_store(service: ObjectService, proxy: Proxy) -> None:
    objects = service.open(port=proxy.port)
    proxy.fail("GET", Fault.FAIL)
    with pytest.raises(StoreError, match="500"):
        objects.get("x")
    proxy.fail("DELETE", Fault.FAIL)
    with pytest.raises(StoreError, match="500"):
        objects.delete("x")
    with pytest.raises(StoreError, match="not that of a state service"):
        HttpObjects(
            HttpAddress.parse(f"{service.url}/nothing/here"), token=StoreToken({TOKEN_VARIABLE: TOKEN})
        )


def test_no_update_is_lost_while_connections_break_at_random(
    service: ObjectService, proxy: Proxy, backing: CountedObjects
) -> None:
    chance, each, workers = random.Random(7), 25, 4
    backing.put("count", b"0", expect=ABSENT)
    clients = [service.open(port=proxy.port) for _ in range(workers)]
    for verb in ("GET", "PUT"):
        proxy.fail(verb, *(chance.choice([*CUTS, None]) for _ in range(100)))  # type: ignore[arg-type]

    def add(objects: Objects) -> None:
        done = 0
        while done < each:
            found = objects.get("count")
            assert found is not None
            try:
                objects.put("count", str(int(found.data) + 1).encode(), expect=found.tag)
            except ConflictError:
                continue
            done += 1

    threads = [threading.Thread(target=add, args=(objects,)) for objects in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert backing.get("count").data == str(each * workers).encode()  # type: ignore[union-attr]
    assert proxy.done > 50


async def test_no_update_is_lost_while_the_service_is_killed(tmp_path: Path) -> None:
    running = await start_service("--plain-http", data=tmp_path)
    port, token = running.url.rpartition(":")[2], StoreToken({TOKEN_VARIABLE: running.ready["password"]})
    address = HttpAddress.parse(running.url)
    objects = await asyncio.to_thread(lambda: HttpObjects(address, token=token))
    counted: list[int] = []
    is_over = threading.Event()

    def add() -> None:
        while not is_over.is_set():
            found = objects.get("count")
            before, expect = (0, ABSENT) if found is None else (int(found.data), found.tag)
            # One writer: whatever it learns, no other can have written.
            objects.put("count", str(before + 1).encode(), expect=expect)
            counted.append(before + 1)

    adding = asyncio.create_task(asyncio.to_thread(add))
    chance = random.Random(3)
    try:
        for _ in range(4):
            reached = len(counted) + 5
            while len(counted) < reached:
                await asyncio.sleep(0.005)
            await asyncio.sleep(chance.uniform(0, 0.02))
            await running.kill()
            running = await start_service("--plain-http", "--port", port, data=tmp_path)
        await asyncio.sleep(0.1)
    finally:
        is_over.set()
        await asyncio.wait_for(adding, PATIENCE_S)
        objects.close()
        await running.stop()
    assert counted == list(range(1, len(counted) + 1))


# --- Whom it trusts, and who is let in


async def test_the_certificate_is_checked_by_fingerprint_or_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await start_service(data=tmp_path)
    monkeypatch.setenv(TOKEN_VARIABLE, running.ready["password"])
    fingerprint, ca = running.ready["fingerprint"], tmp_path / "certificate" / "server.crt"
    try:
        for query in (f"fingerprint={fingerprint}", f"fingerprint={fingerprint.lower()}", f"ca={ca}"):
            objects = await asyncio.to_thread(open_objects, f"{running.url}?{query}")
            assert objects.get("x") is None
            objects.close()
        other = fingerprint[:-1] + ("0" if fingerprint[-1] != "0" else "1")
        for query, says in ((f"?fingerprint={other}", fingerprint), ("", "cannot be verified")):
            with pytest.raises(StoreError, match=says) as caught:
                await asyncio.to_thread(open_objects, running.url + query)
            assert running.ready["password"] not in str(caught.value)
        objects = await asyncio.to_thread(
            open_objects, f"{running.url.replace('127.0.0.1', 'localhost')}?ca={ca}"
        )
        objects.close()
    finally:
        await running.stop()


@pytest.mark.parametrize(
    "address",
    [
        "https://user:secret@host",
        "https://secret@host",
        "https://user:sec/ret@host",
        "http://host",
        "http://192.0.2.1:80",
        "https://",
        "https://host:port",
        "https://host:99999",
        "https://host/a b",
        "https://host/../x%2f",
        "https://host#x",
        "https://host?token=secret",
        "https://host?fingerprint=AB:CD",
        "https://host?fingerprint=" + "G" * 64,
        "https://host?ca=a&ca=b",
        "https://host?ca=a&fingerprint=" + "A" * 64,
        "http://localhost?fingerprint=" + "A" * 64,
        "https://[::1",
    ],
)
def test_an_address_that_is_wrong_or_holds_a_secret_is_refused(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "t" * 20)
    with pytest.raises(UsageError) as caught:
        open_objects(address)
    assert "secret" not in f"{caught.value} {caught.value.remedy}"


def test_a_token_is_needed_and_may_be_in_a_file(
    service: ObjectService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    with pytest.raises(StoreDeniedError) as caught:
        open_objects(service.url)
    assert TOKEN_VARIABLE in caught.value.remedy
    _, secret = service.service.principals.add("machine", [Access(rights=(Right.STORE,))], ME)
    path = tmp_path / "token"
    path.write_text(f"{secret}\n")
    monkeypatch.setenv(TOKEN_FILE_VARIABLE, str(path))
    objects = open_objects(service.url)
    objects.put("x", b"1", expect=ABSENT)
    # A token that was replaced in its file is used as soon as the old one is refused.
    _, secret = service.service.principals.add("machine", [Access(rights=(Right.STORE,))], ME)
    path.write_text(secret)
    service.app._auth.forget()
    assert objects.get("x") is not None
    objects.close()


def test_a_token_that_is_revoked_ends_a_run_with_what_to_do(service: ObjectService) -> None:
    _, secret = service.service.principals.add("machine", [Access(rights=(Right.STORE,))], ME)
    objects = service.open(secret)
    tag = objects.put("x", b"1", expect=ABSENT)
    with objects.watch("x") as watching:
        service.service.principals.remove("machine", ME)
        service.app._auth.forget()
        for action in (
            lambda: objects.get("x"),
            lambda: objects.put("x", b"2", expect=tag),
            lambda: objects.delete("x"),
            lambda: objects.list(""),
            lambda: watching.wait(1.0),
        ):
            with pytest.raises(StoreDeniedError) as caught:
                action()
            assert TOKEN_VARIABLE in caught.value.remedy
            assert secret not in f"{caught.value} {caught.value.remedy}"
    assert service.service.objects.get("x").data == b"1"  # type: ignore[union-attr]


# --- What the store behind the service says


class FailingObjects(MemoryObjects):
    """A store that fails as often as a test says."""

    failures: list[Exception]

    def get(self, key: str) -> Stored | None:
        failing = getattr(self, "failures", [])
        if key == "x" and failing:
            raise failing.pop(0)
        return super().get(key)


def test_failures_of_the_store_behind_it_pass_or_are_named() -> None:
    backing = FailingObjects()
    with object_service(backing) as service:
        objects = service.open(patience_s=5.0)
        backing.failures = [StoreError("away"), StoreBusyError("busy")]
        assert objects.get("x") is None
        backing.failures = [StoreFullError("no room left")]
        with pytest.raises(StoreFullError, match="no room left"):
            objects.get("x")


def test_a_body_that_is_too_large_is_refused_with_the_limit(tmp_path: Path) -> None:
    backing = SqliteObjects(tmp_path / "x.sqlite")
    with object_service(backing, max_body_bytes=1000) as service:
        objects = service.open()
        with pytest.raises(StoreError, match="at most 1000"):
            objects.put("x", b"\0" * 1001, expect=ABSENT)
        with pytest.raises(StoreError, match="at most 1000"):
            objects.put("x", b"\0", expect=ABSENT, before={"y": b"\0" * 1000})
        objects.put("x", b"\0" * 1000, expect=ABSENT)
        assert [one.key for one in objects.list("")] == ["x"]
    backing.close()


def test_many_watches_share_few_threads_and_more_than_that_are_polled(
    service: ObjectService, backing: CountedObjects
) -> None:
    before = threading.active_count()
    objects = service.open()
    feeds = service.app._feeds
    watches = [objects.watch(f"a/{number % 40}") for number in range(120)]
    for watching in watches:
        watching.__enter__()
    assert feeds.watched == 32
    assert threading.active_count() - before <= 32 + 40
    backing.put("a/39", b"1", expect=ABSENT)
    backing.put("a/1", b"1", expect=ABSENT)
    for number, watching in enumerate(watches):
        if number % 40 in (1, 39):
            assert watching.wait(PATIENCE_S)
