"""What can go wrong between us and PostgreSQL: lost replies, kills, restarts, silence, forks, failovers."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.postgres import (
    PASSWORD,
    USER,
    Postgres,
    call,
    count_up,
    new_folder,
    new_schema,
    postgres,
    start_postgres,
    use_password,
    wait_until,
)
from tests.support.postgres_proxy import Cut, TcpProxy, run_proxy

from stackyard.clients.objects import (
    ABSENT,
    ANYTHING,
    ConflictError,
    Objects,
    StoreBusyError,
    StoreError,
    StoreReadOnlyError,
    Tag,
    open_objects,
    watch,
)
from stackyard.clients.objects.postgres import PostgresAddress, PostgresObjects

__all__ = ["postgres"]

Open = Callable[..., PostgresObjects]
PATIENCE_S = 100.0


@pytest.fixture
def connect() -> Iterator[Open]:
    """Give what opens a store and closes it at the end."""
    opened: list[PostgresObjects] = []

    def connect(address: str, **options: Any) -> PostgresObjects:
        opened.append(PostgresObjects(PostgresAddress.parse(address), **options))
        return opened[-1]

    yield connect
    for objects in opened:
        objects.close()


@pytest.fixture
def proxy(postgres: Postgres) -> Iterator[TcpProxy]:
    with run_proxy(postgres.port) as found:
        yield found


def content(objects: Objects, key: str) -> bytes | None:
    found = objects.get(key)
    return None if found is None else found.data


# --- Lost replies

PUTS: dict[str, Callable[[Tag], Any]] = {
    "absent": lambda tag: ("new", ABSENT, {}),
    "tag": lambda tag: ("there", tag, {}),
    "anything": lambda tag: ("there", ANYTHING, {}),
    "with others": lambda tag: ("there", tag, {"other/1": b"one", "other/2": b"x" * 300_000}),
}


@pytest.mark.parametrize("cut", [Cut.BEFORE, Cut.AFTER])
@pytest.mark.parametrize("kind", PUTS)
def test_a_write_whose_connection_breaks_happens_once(
    postgres: Postgres, proxy: TcpProxy, connect: Open, kind: str, cut: Cut
) -> None:
    schema = new_schema()
    objects = connect(postgres.address(schema, port=proxy.port))
    key, expect, before = PUTS[kind](objects.put("there", b"first", expect=ABSENT))
    proxy.cut(cut)
    tag = objects.put(key, b"mine", expect=expect, before=before)
    found = objects.get(key)
    assert found is not None
    assert (found.data, found.tag, proxy.done) == (b"mine", tag, 1)
    assert [content(objects, other) for other in before] == list(before.values())
    assert postgres.run(f"SELECT count(*) FROM {schema}.writes") == [(2,)]


@pytest.mark.parametrize("cut", [Cut.BEFORE, Cut.AFTER])
def test_reads_lists_and_deletes_survive_a_lost_connection(
    postgres: Postgres, proxy: TcpProxy, connect: Open, cut: Cut
) -> None:
    objects = connect(postgres.address(new_schema(), port=proxy.port))
    objects.put("a", b"1", expect=ABSENT)
    for action, expected in (
        (lambda: content(objects, "a"), b"1"),
        (lambda: [entry.key for entry in objects.list("")], ["a"]),
        (lambda: objects.delete("a"), None),
        (lambda: content(objects, "a"), None),
    ):
        proxy.cut(cut)
        assert action() == expected
    assert proxy.done == 4


@pytest.mark.parametrize("kind", PUTS)
def test_a_write_counts_as_done_although_others_replaced_it_before_we_could_look(
    postgres: Postgres, proxy: TcpProxy, connect: Open, kind: str
) -> None:
    schema = new_schema()
    objects, other = connect(postgres.address(schema, port=proxy.port)), connect(postgres.address(schema))
    key, expect, before = PUTS[kind](objects.put("there", b"first", expect=ABSENT))
    proxy.on_cut = lambda: other.put(key, b"theirs", expect=ANYTHING)
    proxy.cut(Cut.AFTER)
    tag = objects.put(key, b"mine", expect=expect, before=before)
    found = objects.get(key)
    assert found is not None
    # Ours happened, and theirs came after it: it is not written a second time.
    assert (found.data, found.tag == tag) == (b"theirs", False)


def test_a_write_that_did_not_arrive_is_refused_if_another_writer_was_faster(
    postgres: Postgres, proxy: TcpProxy, connect: Open
) -> None:
    schema = new_schema()
    objects, other = connect(postgres.address(schema, port=proxy.port)), connect(postgres.address(schema))
    tag = objects.put("x", b"first", expect=ABSENT)
    proxy.on_cut = lambda: other.put("x", b"theirs", expect=tag)
    proxy.cut(Cut.BEFORE)
    with pytest.raises(ConflictError):
        objects.put("x", b"mine", expect=tag)
    assert content(objects, "x") == b"theirs"


@pytest.mark.parametrize("kind", PUTS)
def test_a_first_attempt_that_arrives_late_changes_nothing(
    postgres: Postgres, proxy: TcpProxy, connect: Open, kind: str
) -> None:
    schema = new_schema()
    objects = connect(postgres.address(schema, port=proxy.port))
    first = objects.put("there", b"first", expect=ABSENT)
    for number in range(6):
        # psycopg prepares a statement that is used often; a late one must not name what it never prepared.
        objects.put("warm", str(number).encode(), expect=ANYTHING)
    key, expect, before = PUTS[kind](first)
    before = {other: body[:100] for other, body in before.items()}
    proxy.cut(Cut.LATE)
    objects.put(key, b"mine", expect=expect, before=before)
    objects.put(key, b"newer", expect=ANYTHING)
    proxy.deliver()
    assert content(objects, key) == b"newer"


# --- Restarts


@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=pytest.mark.soak)])
def test_a_server_that_is_killed_and_restarted_loses_no_write_and_repeats_none(
    connect: Open, monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    use_password(monkeypatch)
    with start_postgres() as server:
        address, ending = server.address(), threading.Event()
        done: list[list[int]] = [[], []]

        def write(mine: list[int], key: str) -> None:
            objects = connect(address)
            while not ending.is_set():
                mine.append(count_up(objects, key))

        # Two on one object, so that conflicts are part of it.
        threads = [threading.Thread(target=write, args=(mine, "count")) for mine in done]
        for thread in threads:
            thread.start()
        for stop in (server.kill, server.stop) * rounds:
            before = sum(map(len, done))
            wait_until(lambda before=before: sum(map(len, done)) > before + 20)
            # At any moment of a write.
            threading.Event().wait(random.uniform(0, 0.01))
            stop()
            server.start()
        ending.set()
        for thread in threads:
            thread.join(PATIENCE_S)
        numbers = sorted([*done[0], *done[1]])
        assert numbers == list(range(1, len(numbers) + 1))
        assert content(connect(address), "count") == str(len(numbers)).encode()


def test_a_session_that_is_ended_in_the_middle_of_a_write_is_replaced(
    postgres: Postgres, connect: Open
) -> None:
    schema = new_schema()
    objects = connect(postgres.address(schema, application_name=schema))
    tag = objects.put("x", b"1", expect=ABSENT)
    waiting = "SELECT pid FROM pg_stat_activity WHERE application_name = %s AND wait_event_type = 'Lock'"
    written: list[Tag] = []
    with postgres.connect() as other, other.transaction():
        other.execute(f"SELECT 1 FROM {schema}.objects FOR UPDATE".encode())
        thread = threading.Thread(target=lambda: written.append(objects.put("x", b"2", expect=tag)))
        thread.start()
        for _ in range(2):
            wait_until(lambda: postgres.run(waiting, (schema,)))
            ((pid,),) = postgres.run(waiting, (schema,))
            postgres.run("SELECT pg_terminate_backend(%s)", (pid,))
            wait_until(lambda pid=pid: postgres.run(waiting, (schema,)) not in ([], [(pid,)]))
    thread.join(PATIENCE_S)
    found = objects.get("x")
    assert found is not None
    assert (found.data, [found.tag]) == (b"2", written)


def test_idle_connections_that_the_server_closed_are_replaced(postgres: Postgres, connect: Open) -> None:
    schema = new_schema()
    objects = connect(postgres.address(schema, application_name=schema))
    tag = objects.put("x", b"1", expect=ABSENT)
    sessions = "FROM pg_stat_activity WHERE application_name = %s"
    for number in range(3):
        postgres.run(f"SELECT pg_terminate_backend(pid) {sessions}", (schema,))
        wait_until(lambda: not postgres.run(f"SELECT 1 {sessions}", (schema,)))
        tag = objects.put("x", str(number).encode(), expect=tag)
    assert content(objects, "x") == b"2"


def test_a_server_that_is_silent_or_away_is_an_error_in_time_and_never_an_empty_store(
    connect: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_password(monkeypatch)
    with start_postgres() as server:
        objects = connect(server.address(connect_timeout="2"), patience_s=0.1, answer_timeout_s=1.0)
        tag = objects.put("x", b"1", expect=ABSENT)
        server.pause()
        with pytest.raises(StoreError):
            objects.get("x")
        with pytest.raises(StoreError):
            objects.put("x", b"2", expect=tag)
        server.resume()
        found = connect(server.address()).get("x")
        assert found is not None
        # The write without a reply happened, or not: nothing else.
        assert found.data in (b"1", b"2")
        server.stop()
        for action in (lambda: objects.get("x"), lambda: objects.list(""), lambda: objects.delete("x")):
            with pytest.raises(StoreError, match="cannot be reached"):
                action()
        with pytest.raises(StoreError, match="cannot be reached"):
            connect(server.address())
        server.start()
        assert content(objects, "x") == found.data


def test_a_lock_that_another_session_keeps_is_reported_as_busy(postgres: Postgres, connect: Open) -> None:
    schema = new_schema()
    objects = connect(postgres.address(schema), answer_timeout_s=1.0)
    tag = objects.put("x", b"1", expect=ABSENT)
    with postgres.connect() as other, other.transaction():
        other.execute(f"SELECT 1 FROM {schema}.objects FOR UPDATE".encode())
        with pytest.raises(StoreBusyError):
            objects.put("x", b"2", expect=tag)
    objects.put("x", b"3", expect=tag)


# --- Failover


def test_after_a_failover_the_new_primary_has_every_write_and_takes_the_next(
    connect: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_password(monkeypatch)
    with start_postgres() as primary:
        standby = Postgres(new_folder())
        copy = ["-h", "127.0.0.1", "-p", str(primary.port), "-U", USER, "-D", str(standby.data)]
        call("pg_basebackup", *copy, "-R", "-c", "fast", env={"PGPASSWORD": PASSWORD})
        try:
            standby.start()
            _fail_over(primary, standby, connect)
        finally:
            standby.kill()
            subprocess.run(["rm", "-rf", standby.folder], check=True)


def _fail_over(primary: Postgres, standby: Postgres, connect: Open) -> None:
    primary.run("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.run("SELECT pg_reload_conf()")
    wait_until(lambda: primary.run("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"))
    # The standby is named first, as it would be after a second failover.
    hosts = f"127.0.0.1:{standby.port},127.0.0.1:{primary.port}"
    objects = connect(f"postgresql://{USER}@{hosts}/postgres")
    done, ending = list[int](), threading.Event()

    def write() -> None:
        while not ending.is_set():
            done.append(count_up(objects, "count"))

    thread = threading.Thread(target=write)
    thread.start()
    wait_until(lambda: len(done) > 20)
    with pytest.raises(StoreReadOnlyError, match="standby"):
        connect(standby.address())
    reader = connect(standby.address(), create=False)
    assert content(reader, "count") is not None
    with pytest.raises(StoreReadOnlyError):
        reader.put("x", b"1", expect=ABSENT)
    with reader.watch("") as watching:
        assert watching.wait(PATIENCE_S)
    primary.kill()
    standby.run("SELECT pg_promote()")
    before = len(done)
    wait_until(lambda: len(done) > before + 20)
    ending.set()
    thread.join(PATIENCE_S)
    assert done == list(range(1, len(done) + 1))
    assert content(reader, "count") == str(len(done)).encode()


# --- Processes

CHILDREN = 12
EACH = 20
COUNTING = f"""
import os, sys
from stackyard.clients.objects import open_objects
from tests.support.postgres import count_up

def count():
    numbers = [str(count_up(objects, "count")) for _ in range({EACH})]
    # In one piece: the others write to the same pipe.
    os.write(1, " ".join([*numbers, ""]).encode())

def act_as_child():
    try:
        count()
        assert watching.wait(60)
        objects.close()
        os._exit(0)
    finally:
        os._exit(1)

objects = open_objects(sys.argv[1])
count()
with objects.watch("") as watching:
    children = []
    for _ in range({CHILDREN}):
        children.append(os.fork())
        if children[-1] == 0:
            act_as_child()
    count()
    assert watching.wait(60)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * {CHILDREN}
    count()
objects.close()
"""


def test_processes_that_count_lose_nothing_and_share_no_connection_of_their_parent(
    postgres: Postgres,
) -> None:
    schema = new_schema()
    command = [sys.executable, "-W", "error", "-c", COUNTING, postgres.address(schema)]
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=PATIENCE_S, check=True)
    numbers = sorted(map(int, done.stdout.split()))
    # The parent counts before, beside and after its children.
    assert numbers == list(range(1, EACH * (CHILDREN + 3) + 1))


# --- Watching


def test_a_watch_whose_connection_is_lost_counts_it_as_a_change(postgres: Postgres, connect: Open) -> None:
    schema = new_schema()
    address = postgres.address(schema, application_name=schema)
    objects = connect(address)
    with watch(objects, "a/") as watching:
        assert not watching.wait(0.01)
        postgres.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
            " AND query LIKE 'LISTEN%%'",
            (schema,),
        )
        assert watching.wait(PATIENCE_S)
        assert not watching.wait(0.01)
        objects.put("a/x", b"1", expect=ABSENT)
        assert watching.wait(PATIENCE_S)


def test_a_watch_of_a_server_that_stays_away_raises(connect: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    use_password(monkeypatch)
    with start_postgres() as server:
        objects = connect(server.address())
        with objects.watch("") as watching:
            server.stop(signal.SIGINT)
            with pytest.raises(StoreError, match="cannot be reached"):
                watching.wait(0.3)
            server.start()
            assert watching.wait(PATIENCE_S)


def test_a_write_that_fails_notifies_no_watch(postgres: Postgres) -> None:
    one, two = (open_objects(postgres.address(schema)) for schema in [new_schema()] * 2)
    one.put("x", b"1", expect=ABSENT)
    with watch(two, "") as watching:
        with pytest.raises(ConflictError):
            one.put("x", b"2", expect=ABSENT)
        assert not watching.wait(0.05)
    one.close()
    two.close()
