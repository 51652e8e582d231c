"""What an earlier commit left on the disk is used: states, plans, run records, a killed run, a lab."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.compatibility.kept_data import (
    ADDRESS,
    ANSWERS,
    LAB,
    PORT,
    READS,
    SSH_PORT,
    WHERE,
    Kept,
    find_tofu,
    unpack,
    without_places,
)

SETTLED = [(500, "web", "running"), (501, "dns", "running"), (600, "one", "running")]
# The VM was created when its run was killed, and not yet started.
CUT = [(510, "mail", "stopped"), (511, "proxy", "running")]
COMPLETED = [(510, "mail", "running"), (511, "proxy", "running")]
# Of a whole guest, not of its configuration.
CREATES_OR_REMOVES = re.compile(
    r"POST /nodes/[^/]+/(qemu|lxc)(/\d+/clone)?|DELETE /nodes/[^/]+/(qemu|lxc)/\d+"
)


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ANSWERS.read_text())
    return found


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """Unpack the data; nothing in this fixture needs an engine."""
    unpack(tmp_path)
    return Kept(tmp_path, find_tofu() or tmp_path / "no-engine")


@pytest.fixture
def running(kept: Kept) -> Iterator[Kept]:
    """Start the lab on other ports than those of the recording, and change only these in the site."""
    with kept.lab("--port", "0") as ready:
        kept.point_to(ready)
        yield kept


@pytest.fixture
def driven(running: Kept) -> Kept:
    """Give the same, for what plans and applies."""
    if find_tofu() is None:
        pytest.skip("no OpenTofu: name one in STACKYARD_TEST_TOFU or run `stackyard tools install tofu`")
    return running


def test_states_history_and_audit_are_read_as_before(kept: Kept, answers: dict[str, Any]) -> None:
    assert {line: without_places(kept.json(line)) for line in READS} == answers["reads"]
    assert [version["number"] for version in answers["reads"][READS[1]]["versions"]] == [2, 1]


def test_the_lock_of_the_killed_run_is_listed(kept: Kept) -> None:
    locks = kept.json("state locks")["locks"]
    assert [(lock["name"], lock["has_lease"], lock["dead"]) for lock in locks] == [
        ("env/cut/lab", True, None)
    ]


def test_an_earlier_version_becomes_the_current_one(kept: Kept) -> None:
    kept.run("state rollback env/shop/lab 1 --reason 'as it was'")
    found = kept.json("state versions env/shop/lab")
    assert [(version["number"], version["kind"]) for version in found["versions"]] == [
        (3, "rollback"),
        (2, "write"),
        (1, "write"),
    ]
    assert kept.json("state audit env/shop/lab")["is_whole"]


def test_the_lab_is_what_it_was_and_restores_its_snapshot(running: Kept, answers: dict[str, Any]) -> None:
    # The program uses the kept token and checks the kept fingerprint.
    assert running.identity() == answers["lab"]
    assert running.export() == answers["export"]
    assert running.guests() == sorted(SETTLED + CUT)
    running.run(f"lab snapshot restore before-the-cut --name {LAB}")
    assert running.guests() == SETTLED


@pytest.mark.tofu
def test_nothing_is_planned(driven: Kept) -> None:
    planned = driven.json("plan shop --detailed-exitcode")
    assert (planned["has_changes"], planned["changes"]) == (False, [])
    assert driven.json("drift shop --detailed-exitcode")["has_drift"] is False
    assert driven.changing_calls() == []


@pytest.mark.tofu
def test_resources_get_their_present_names_and_nothing_else_changes(driven: Kept) -> None:
    before = addresses(driven)
    assert "proxmox_download_file.image_x2f_debian-12" in before
    assert driven.json("apply shop --no-verify")["applied"] == {"add": 0, "change": 0, "remove": 0}
    assert addresses(driven) == {one.replace("_x2f_", "_") for one in before}
    assert driven.json("plan shop --detailed-exitcode")["has_changes"] is False
    assert driven.changing_calls() == []


@pytest.mark.tofu
def test_run_records_are_shown_and_the_next_run_finds_nothing_to_make(
    driven: Kept, answers: dict[str, Any]
) -> None:
    assert driven.json("manifest status m -H lab") == answers["manifest"]
    run = answers["manifest"]["runs"]["lab"]
    assert (run["verb"], run["state"]) == ("create", "done")
    driven.run("create -M m -H lab")
    again = driven.json("manifest status m -H lab")["runs"]["lab"]
    assert (again["verb"], again["state"]) == ("create", "done")
    assert again["started_at"] > run["started_at"]
    assert driven.guests() == sorted(SETTLED + CUT)
    driven.run("destroy -M m -H lab --yes")
    assert driven.guests() == sorted(SETTLED[:2] + CUT)


@pytest.mark.tofu
def test_the_saved_plan_is_refused_with_another_address_or_another_key(driven: Kept) -> None:
    error = driven.error("apply later --plan ../later.plan --no-verify", status=65)
    # It was opened with the kept key, and everything in it is compared: the input alone is another.
    assert error["code"] == "E-PLAN-MOVED"
    assert "the input was" in error["detail"]
    assert not any(
        f"the {what} was" in error["detail"] for what in ("target", "state", "provider", "purpose")
    )
    assert driven.changing_calls() == []
    key = driven.folder / "home" / ".local" / "share" / "stackyard" / "plan.key"
    key.write_bytes(os.urandom(len(key.read_bytes())))
    assert driven.error("apply later --plan ../later.plan --no-verify", status=65)["code"] == "E-PLAN-FILE"


@pytest.mark.tofu
def test_the_saved_plan_is_refused_for_the_names_in_it_and_can_be_made_again(
    kept: Kept, answers: dict[str, Any]
) -> None:
    if find_tofu() is None:
        pytest.skip("no OpenTofu")
    if not (is_free(PORT) and is_free(SSH_PORT)):
        pytest.skip(f"another program listens on {ADDRESS}, or that address cannot be used here")
    with kept.lab(*WHERE):
        error = kept.error("apply later --plan ../later.plan --no-verify", status=65)
        # Its resources had other names.
        assert error["code"] == "E-PLAN-MOVED"
        if kept.versions() == answers["versions"]:
            assert not re.search("the (code|engine|state|provider|target) was", error["detail"])
        assert kept.changing_calls() == []
        kept.run("apply later --no-verify")
        assert kept.guests() == sorted([*SETTLED, *CUT, (520, "queue", "running")])


@pytest.mark.tofu
@pytest.mark.parametrize(
    "is_waited_for",
    [
        pytest.param(False, id="its lock is taken away"),
        pytest.param(True, id="its lock is waited for", marks=pytest.mark.soak),
    ],
)
def test_the_killed_run_is_completed_by_the_next(driven: Kept, is_waited_for: bool) -> None:
    assert driven.guests() == sorted(SETTLED + CUT)
    assert len(driven.pending()) == 4
    # The run was one of another machine, where nobody can see that it is dead.
    error = driven.error("apply cut --no-verify --lock-wait 0", status=75)
    assert error["code"] == "E-STATE-LOCKED"
    assert driven.guests() == sorted(SETTLED + CUT)
    if not is_waited_for:
        lock = driven.json("state locks")["locks"][0]["id"]
        driven.run(f"state unlock {lock} --reason 'it was killed'")
    driven.run(f"apply cut --no-verify --lock-wait {120 if is_waited_for else 0}")
    assert driven.guests() == sorted(SETTLED + COMPLETED)
    # They are the guests that the killed run created: none was created again or removed.
    # A template that it downloaded may be downloaded again.
    made = [call for call in driven.changing_calls() if CREATES_OR_REMOVES.fullmatch(call)]
    assert made == []
    assert driven.pending() == []
    assert {row["name"] for row in driven.json("output cut")["guests"].values()} == {"mail", "proxy"}
    assert driven.json("plan cut --detailed-exitcode")["has_changes"] is False
    assert driven.json("plan shop --detailed-exitcode")["has_changes"] is False


def addresses(kept: Kept) -> set[str]:
    """Return the addresses of the resources in the state of the shop."""
    return {row["address"] for row in kept.json("state show env/shop/lab")["instances"]}


def is_free(port: int) -> bool:
    """Tell whether the lab can listen where that of the recording did."""
    with socket.socket() as probe:
        # Connections of a lab that has just ended are no hindrance.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            return False
    return True
