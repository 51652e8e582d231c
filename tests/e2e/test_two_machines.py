"""Two machines with one store: what one begins the other continues, whatever each has on its own disk."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.import_seed import SEED
from tests.support.operating import guest, manifest_text
from tests.support.path_runs import DNS, WEB
from tests.support.two_machines import KINDS, Machine, TwoMachines, on_kind, share_store, two_machines

from stackyard.clients.objects.sealed import make_master_key

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(600)]

BOTH = ("--allow-destroy", "web,dns")
# Calls of an apply after which a guest is begun and not done.
HALF_MADE = 22


# Each kind of store takes its time; the contract suites hold all of them to the same.
ON_ONE_KIND = on_kind(KINDS[0])


@pytest.fixture(params=KINDS)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TwoMachines]:
    with share_store(request.param, tmp_path) as store, two_machines(store, tmp_path) as made:
        made.write_env("t", [WEB, DNS])
        yield made


def meddle(pair: TwoMachines, vm_id: int, **options: Any) -> None:
    """Change a guest by hand, behind the back of everything."""
    world = pair.running.world

    def change() -> None:
        with world.store.transaction():
            guest = world.guests.get(vm_id)
            assert guest is not None
            world.store.put("guests", str(vm_id), {**guest, "config": {**guest["config"], **options}})

    pair.running.on_loop(change)


@on_kind("https")
def test_an_env_lives_on_both_machines_in_turn(pair: TwoMachines, tmp_path: Path) -> None:
    a, b = pair.first, pair.second
    assert a.json("plan", "t")["has_changes"]
    a.forget()
    b.run("apply", "t")
    b.forget()
    assert a.json("plan", "t", "--detailed-exitcode")["has_changes"] is False
    assert a.json("drift", "t")["has_drift"] is False
    assert {guest["vm_id"] for guest in a.json("output", "t")["guests"].values()} == {500, 501}
    a.forget()
    assert a.json("inventory", "show", "env:t")["freshness"] == "current"

    pair.write_env("t", [{**WEB, "tags": ["one"]}, DNS])
    a.run("plan", "t", "--out", str(tmp_path / "saved plan"))
    a.forget()
    b.forget()
    assert b.json("apply", "t", "--plan", str(tmp_path / "saved plan"))["applied"]["change"] == 1
    assert a.json("plan", "t")["has_changes"] is False

    pair.write_env("t", [{**WEB, "tags": ["two"]}, DNS])
    saved = b.json("plan", "t", "--out", "store:")["plan"]
    b.forget()
    a.forget()
    assert [one["id"] for one in a.json("plans", "list")["plans"]] == [saved.removeprefix("store:")]
    assert a.json("apply", "t", "--plan", saved)["applied"]["change"] == 1
    assert b.json("plan", "t")["has_changes"] is False

    meddle(pair, 500, tags="surprise")
    a.forget()
    assert [one["subject"] for one in b.json("drift", "t")["managed"]] == ["VM web (500 on pve1)"]
    b.forget()
    a.run("apply", "t", "--no-verify")
    assert b.json("drift", "t")["has_drift"] is False

    b.forget()
    b.run("destroy", "t", *BOTH)
    a.forget()
    assert pair.first.guests() == {}
    assert a.in_state() == []
    assert pair.creations() == {500: 1, 501: 1}
    assert a.keys("journal/") == []


def settle(pair: TwoMachines, machine: Machine) -> None:
    """Apply once more, and find exactly the wanted guests: each once, in the state, nothing left to do."""
    machine.run("apply", "t", "--no-verify")
    assert sorted(machine.guests()) == machine.in_state() == [500, 501]
    assert {guest["status"] for guest in machine.guests().values()} == {"running"}
    assert machine.json("plan", "t")["has_changes"] is False
    assert machine.keys("journal/") == []
    assert pair.creations() == {500: 1, 501: 1}


# Each waits for half a minute until the killed run counts as dead.
@ON_ONE_KIND
def test_what_a_killed_run_left_half_made_is_completed_on_the_other_machine(pair: TwoMachines) -> None:
    assert pair.kill_at(pair.first, HALF_MADE, "apply", "t", "--no-verify")
    pair.first.forget()
    settle(pair, pair.second)
    first = pair.second.json("runs", "list", "--verb", "apply")["runs"][-1]
    assert first["machine"] == pair.host_of(pair.first)
    # It counts as lost once its heartbeat is overdue by the clock of the store.
    assert first["outcome"] in ("running", "lost")


def wait_for_run(machine: Machine, verb: str) -> dict[str, Any]:
    """Return the run of a verb that is at work, once another machine sees it."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        found = machine.json("runs", "list", "--outcome", "running", "--verb", verb)["runs"]
        if found:
            return dict(found[0])
    raise AssertionError("no run is seen")


@ON_ONE_KIND
def test_the_second_of_two_on_one_target_waits_visibly_and_then_works(pair: TwoMachines) -> None:
    a, b = pair.first, pair.second
    pair.slow_down(2.0)
    with a.start("apply", "t", "--no-verify") as first:
        seen = wait_for_run(b, "apply")
        assert (seen["machine"], seen["target"]) == (pair.host_of(a), "env:t")
        ended = b.run("--events", "apply", "t", "--no-verify")
        assert first.wait() == 0, first.output
    waits = [event["waiting_for"] for event in ended.events if event["type"] == "step.waiting"]
    assert any(f"@{pair.host_of(a)} " in text and "place 1" in text for text in waits), waits
    assert pair.creations() == {500: 1, 501: 1}
    assert b.json("plan", "t")["has_changes"] is False


@ON_ONE_KIND
def test_a_run_of_the_other_machine_is_shown_followed_and_cancelled(pair: TwoMachines) -> None:
    a, b = pair.first, pair.second
    # A bucket is looked at now and then: the request must come before the end.
    pair.slow_down(15.0)
    with a.start("apply", "t", "--no-verify") as running:
        which = wait_for_run(b, "apply")["id"]
        with b.start("--events", "runs", "follow", which) as following:
            assert b.json("runs", "cancel", which)["id"] == which
            assert running.wait() != 0
            assert following.wait() == 1
    pair.slow_down(0.0)
    assert "asked this run to stop" in following.output
    shown = b.json("runs", "show", which)
    assert (shown["outcome"], shown["machine"]) == ("stopped", pair.host_of(a))
    assert shown["events"]
    assert b.json("runs", "cancel", which, status=64)["error"]
    assert b.json("runs", "follow", which, status=1)["id"] == which
    assert b.json("state", "locks")["locks"] == []
    settle(pair, b)


@ON_ONE_KIND
def test_a_manifest_that_one_machine_created_the_other_knows_and_destroys(pair: TwoMachines) -> None:
    a, b = pair.first, pair.second
    where = ("-M", "m", "-H", "lab", "--skip-preflight")
    for machine in (a, b):
        (machine.folder / "manifests" / "m.yaml").write_text(manifest_text("m", guest("edge", 700)))
    a.run("create", *where)
    a.forget()
    known = b.json("manifest", "status", "m", "-H", "lab")
    assert [(node["name"], node["vm_id"]) for node in known["nodes"]] == [("edge", 700)]
    # The other machine logs in with the key of the site, and knows the host key of the guest.
    b.run("create", *where)
    b.forget()
    assert pair.creations() == {700: 1}
    b.run("destroy", *where, "--yes")
    assert b.guests() == {}
    assert [run["verb"] for run in a.json("runs", "list")["runs"]] == ["destroy", "create", "create"]


def test_a_stray_guest_that_one_machine_imported_belongs_to_both(tmp_path: Path) -> None:
    with (
        share_store("postgresql", tmp_path) as store,
        two_machines(store, tmp_path, seed=SEED) as pair,
    ):
        a, b = pair.first, pair.second
        a.run("import", "env:home", "-H", "lab", "--filter", "web,nas")
        a.forget()
        shutil.copy(a.folder / "envs" / "home.yaml", b.folder / "envs" / "home.yaml")
        assert b.json("plan", "home")["has_changes"] is False
        assert len(b.json("output", "home")["guests"]) == 2


@ON_ONE_KIND
def test_a_machine_without_the_key_is_told_which_one_is_missing(pair: TwoMachines) -> None:
    a, b = pair.first, pair.second
    a.run("plan", "t")
    key = a.json("store", "show")["keys"][0]
    without = b.with_env(STACKYARD_SITE_KEY_FILE="")
    error = without.json("plan", "t", status=65)["error"]
    assert error["code"] == "E-SITE-KEY-MISSING"
    assert key in error["detail"]
    assert "stackyard store key show" in error["remedy"]
    assert without.json("store", "show")["key_here"]["fits"] is False
    # Nothing of it stays in the way of the others.
    a.run("apply", "t", "--no-verify")
    (b.folder.parent / "given.key").write_text(a.json("store", "key", "show")["key"])
    (b.folder.parent / "given.key").chmod(0o600)
    given = b.with_env(STACKYARD_SITE_KEY_FILE=str(b.folder.parent / "given.key"))
    assert given.json("plan", "t")["has_changes"] is False


@ON_ONE_KIND
def test_another_site_is_refused_the_store(pair: TwoMachines, tmp_path: Path) -> None:
    pair.first.run("apply", "t", "--no-verify")
    other = tmp_path / "other.key"
    other.write_text(make_master_key())
    other.chmod(0o600)
    stranger = pair.second.with_env(STACKYARD_SITE_KEY_FILE=str(other))
    for verb in (("plan", "t"), ("apply", "t"), ("destroy", "t", *BOTH)):
        assert stranger.json(*verb, status=65)["error"]["code"] == "E-STORE-OTHER-SITE"
    assert sorted(stranger.guests()) == pair.first.in_state() == [500, 501]
    assert pair.first.json("plan", "t")["has_changes"] is False


@ON_ONE_KIND
def test_a_plan_that_was_saved_before_a_rotation_of_the_key_applies_after_it(pair: TwoMachines) -> None:
    a, b = pair.first, pair.second
    in_store = a.json("plan", "t", "--out", "store:")["plan"]
    new = a.json("store", "key", "new")["key"]
    pair.key_file.write_text(f"{new},{pair.key_file.read_text()}")
    b.run("store", "key", "reseal")
    assert b.json("apply", "t", "--plan", in_store, "--no-verify")["applied"]["add"] > 0
    pair.key_file.write_text(new)
    a.forget()
    assert a.json("plan", "t")["has_changes"] is False
    assert pair.creations() == {500: 1, 501: 1}


@pytest.mark.parametrize("destination", ["postgresql", pytest.param("s3", marks=pytest.mark.soak)])
def test_after_a_move_both_machines_work_and_the_old_store_refuses(tmp_path: Path, destination: str) -> None:
    with (
        share_store("s3" if destination == "postgresql" else "postgresql", tmp_path) as old,
        share_store(destination, tmp_path) as new,
        two_machines(old, tmp_path) as pair,
    ):
        pair.write_env("t", [WEB, DNS])
        a, b = pair.with_stores(new)
        a.run("apply", "t")
        saved = b.json("plan", "t", "--out", "store:")["plan"]
        moved = a.json("store", "move", old.address, new.address)
        assert moved["states"] == 1
        for verb in (("plan", "t"), ("output", "t"), ("runs", "list"), ("state", "list")):
            error = b.json(*verb, status=65)["error"]
            assert error["code"] == "E-STORE-MOVED", verb
            assert new.address in error["detail"]
        pair.choose(new)
        b.forget()
        assert b.json("plan", "t")["has_changes"] is False
        assert saved.removeprefix("store:") in [one["id"] for one in a.json("plans", "list")["plans"]]
        assert a.json("inventory", "show", "t")["freshness"] == "current"
        b.run("destroy", "t", *BOTH)
        assert a.guests() == {}
        assert a.json("plan", "t", "--detailed-exitcode", status=2)["has_changes"]


def test_a_machine_whose_token_is_limited_to_an_env_works_on_that_env_alone(tmp_path: Path) -> None:
    with share_store("https", tmp_path) as store, two_machines(store, tmp_path) as pair:
        pair.write_env("t", [WEB])
        pair.write_env("u", [DNS])
        a, b = pair.first, pair.second
        a.run("apply", "u")
        token = a.json("state", "token", "create", "limited", "--allow", "env/t=store")["token"]
        b = b.with_env(STACKYARD_STORE_TOKEN=token)
        b.run("apply", "t")
        assert [run["verb"] for run in b.json("runs", "list")["runs"]] == ["apply"]
        refused = b.run("apply", "u", status=None)
        assert refused.status != 0
        assert "limited lacks the right store on the state env/u/" in refused.stderr
        with store.open() as objects:
            assert objects.list("runs/") == ()
        b.run("destroy", "t", "--allow-destroy", "web")
        assert a.json("plan", "u")["has_changes"] is False
