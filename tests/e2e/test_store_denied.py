"""A store that refuses this machine, or a machine with a wrong clock: named, and nothing is done by half."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.other_machine import AHEAD_VARIABLE
from tests.support.path_runs import DNS, WEB
from tests.support.postgres import new_schema, require_postgres, wait_until
from tests.support.seaweed import READER_KEY, SECRET_KEY
from tests.support.two_machines import KINDS, Machine, TwoMachines, on_kind, share_store, two_machines

from pvelab.server.journal import JournalEntry

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(600)]

UNREACHABLE, REFUSED = 69, 65
WRONG = {
    "postgresql": {"PGPASSWORD": "wrong"},
    "s3": {"AWS_SECRET_ACCESS_KEY": "wrong"},
    "https": {"STACKYARD_STORE_TOKEN": "wrong"},
}


@pytest.fixture(params=KINDS)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TwoMachines]:
    with share_store(request.param, tmp_path) as store, two_machines(store, tmp_path) as made:
        made.write_env("t", [WEB, DNS])
        yield made


def make_token(pair: TwoMachines, name: str, rights: str) -> str:
    """Make a principal of the state service, as its administrator does."""
    assert pair.store.service is not None
    data = str(pair.store.service.ready["data"])
    made = pair.first.json("state", "token", "create", name, "--allow", rights, "--data", data)
    return str(made["token"])


def as_reader(pair: TwoMachines) -> Machine:
    """Return a machine that may read the store and not write it."""
    if pair.store.kind == "s3":
        return pair.second.with_env(AWS_ACCESS_KEY_ID=READER_KEY, AWS_SECRET_ACCESS_KEY=SECRET_KEY)
    if pair.store.kind == "https":
        return pair.second.with_env(STACKYARD_STORE_TOKEN=make_token(pair, "reader", "read"))
    server, name = require_postgres(), new_schema()
    schema = pair.store.address.partition("schema=")[2]
    server.run(f"CREATE ROLE {name} LOGIN PASSWORD 'reader'")
    server.run(f"GRANT USAGE ON SCHEMA {schema} TO {name}")
    server.run(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {name}")
    address = pair.store.address.replace("owner@", f"{name}@")
    return pair.second.with_env(PGPASSWORD="reader", STACKYARD_STORE=address)


def test_wrong_credentials_are_named_and_nothing_is_done(pair: TwoMachines) -> None:
    stranger = pair.first.with_env(**WRONG[pair.store.kind])
    for verb in (("apply", "t"), ("output", "t"), ("runs", "list"), ("store", "check")):
        error = stranger.json(*verb, status=UNREACHABLE)["error"]
        assert error["code"].startswith("E-STORE"), (verb, error)
        assert error["remedy"]
        assert "wrong" not in error["detail"].replace("is wrong", "")
    assert stranger.guests() == {}
    pair.first.run("plan", "t")


@on_kind("https")
def test_a_machine_that_may_only_read_changes_nothing_and_says_so(pair: TwoMachines) -> None:
    pair.first.run("apply", "t", "--no-verify")
    pair.write_env("t", [{**WEB, "tags": ["new"]}, DNS])
    reader = as_reader(pair)
    error = reader.json("apply", "t", status=UNREACHABLE)["error"]
    assert error["code"] in ("E-STORE-READ-ONLY", "E-STORE-DENIED"), error
    assert error["remedy"]
    assert "new" not in str(pair.first.guests()[500]["config"].get("tags"))
    pair.first.run("apply", "t", "--no-verify")


@on_kind(KINDS[0])
@pytest.mark.parametrize("ahead_s", [pytest.param(-86_400, marks=pytest.mark.soak), 90_000])
def test_a_machine_whose_clock_is_wrong_takes_nothing_over_and_loses_nothing(
    pair: TwoMachines, ahead_s: int
) -> None:
    a, b = pair.first, pair.second.with_env(**{AHEAD_VARIABLE: str(ahead_s)})
    a.run("plan", "t")
    pair.slow_down(2.0)
    with a.start("apply", "t", "--no-verify") as running:
        wait_until(lambda: bool(pair.first.guests()))
        seen = b.json("runs", "list", "--outcome", "running")["runs"]
        assert [run["verb"] for run in seen] == ["apply"]
        ended = b.run("--events", "apply", "t", "--no-verify")
        assert running.wait() == 0, running.output
    pair.slow_down(0.0)
    assert any(event["type"] == "step.waiting" for event in ended.events)
    assert pair.creations() == {500: 1, 501: 1}
    assert len(a.json("runs", "list")["runs"]) == 3
    assert a.json("plan", "t")["has_changes"] is False


@on_kind("s3")
def test_another_store_is_refused_while_the_one_before_holds_the_states(
    pair: TwoMachines, tmp_path: Path
) -> None:
    pair.first.run("apply", "t", "--no-verify")
    with share_store("https" if pair.store.kind != "https" else "postgresql", tmp_path / "more") as other:
        switched = pair.first.with_env(**other.env, STACKYARD_STORE=other.address)
        for verb in (("plan", "t"), ("output", "t"), ("runs", "list"), ("state", "list")):
            error = switched.json(*verb, status=REFUSED)["error"]
            assert error["code"] == "E-STORE-SWITCHED", verb
            line = shlex.join(["stackyard", "store", "move", pair.store.address, other.address])
            assert line in error["remedy"]
    assert pair.first.json("plan", "t")["has_changes"] is False


@pytest.mark.soak
def test_a_token_that_is_revoked_during_a_run_costs_nothing_that_was_made(tmp_path: Path) -> None:
    with share_store("https", tmp_path) as store, two_machines(store, tmp_path) as pair:
        pair.write_env("t", [WEB, DNS])
        machine = pair.first.with_env(STACKYARD_STORE_TOKEN=make_token(pair, "one", "store"))
        data = str(store.service.ready["data"]) if store.service is not None else ""
        machine.run("plan", "t")
        first, is_revoked = pair.journal.count, list[bool]()

        def saw(entry: JournalEntry) -> None:
            if entry.number >= first + 20 and not is_revoked:
                is_revoked.append(True)
                pair.second.run("state", "token", "revoke", "one", "--data", data)

        # A service hears of it within seconds.
        pair.slow_down(8.0)
        pair.journal.on_call = saw
        try:
            ended = machine.run("apply", "t", "--no-verify", "--json", status=None)
        finally:
            pair.journal.on_call = None
        pair.slow_down(0.0)
        assert is_revoked
        assert ended.status != 0
        again = pair.first.with_env(STACKYARD_STORE_TOKEN=make_token(pair, "two", "store"))
        # The service refuses everyone at this address for a minute, because the run asked again and again.
        wait_until(lambda: again.run("runs", "list", status=None).status == 0, within_s=120)
        again.run("apply", "t", "--no-verify")
        assert sorted(again.guests()) == again.in_state() == [500, 501]
        assert pair.creations() == {500: 1, 501: 1}


def test_an_embedded_store_that_is_damaged_or_no_folder_is_named(tmp_path: Path) -> None:
    with share_store("sqlite", tmp_path) as store, two_machines(store, tmp_path) as pair:
        pair.write_env("t", [DNS])
        machine = pair.first
        machine.run("plan", "t")
        folder = machine.base / "state"
        kept = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        for path in kept:
            path.write_bytes(b"this is no database" * 1000)
        for verb in (("apply", "t"), ("runs", "list"), ("output", "t")):
            error = machine.json(*verb, status=UNREACHABLE)["error"]
            assert error["code"].startswith("E-STORE"), verb
            assert "objects.sqlite" in error["detail"] or str(machine.base / "state") in error["detail"]
        assert machine.guests() == {}
        for path, data in kept.items():
            path.write_bytes(data)
        machine.run("apply", "t", "--no-verify")
