"""States with the names of earlier versions: nothing is planned, and an apply stores the present ones."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import usual_engine
from tests.support.path import Yard, make_yard, mirror_of
from tests.support.provider import bpg_binary, require_bpg

from stackyard import lab
from stackyard.clients.objects import open_objects
from stackyard.engine.version import Engine
from stackyard.state import Actor, StateService

__all__ = ["usual_engine"]

pytestmark = pytest.mark.timeout(300)

STATE = "env/t/lab"
WEB: dict[str, Any] = {"name": "web-2", "vmid": 500, "preset": "vm-xsmall", "image": "debian-12"}
FQDN: dict[str, Any] = {"name": "dns.home.arpa", "vmid": 501, "preset": "vm-xsmall", "image": "debian-12"}
LEGACY = {
    "image_debian-12": "image_x2f_debian-12",
    "web-2_user_data": "web-2_x2f_user_data",
    "dns_home_arpa_x2e_user_data": "dns_x2e_home_x2e_arpa_x2f_user_data",
    "dns_home_arpa_x2e": "dns_x2e_home_x2e_arpa",
}


@pytest.fixture(params=["builtin", pytest.param("bpg", marks=pytest.mark.bpg)])
def yard(request: pytest.FixtureRequest, engine: Engine, tmp_path: Path) -> Iterator[Yard]:
    env = {"STACKYARD_TOFU": str(engine.path), "STACKYARD_PROVIDER": request.param}
    if request.param == "bpg":
        require_bpg()
        settings = mirror_of(bpg_binary() or Path(), engine.path, tmp_path / "bpg")
        env["STACKYARD_TOFU_CONFIG"] = str(settings)
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        made = make_yard(running, tmp_path / "site", **env)
        made.write_env("t", [WEB, FQDN])
        yield made


def test_a_state_of_an_earlier_version_follows_without_a_change(yard: Yard) -> None:
    yard.run("apply", "t", "--no-verify")
    present = addresses(yard)
    write_legacy_names(yard)
    legacy = addresses(yard)
    assert {one.partition(".")[2] for one in legacy - present} == set(LEGACY.values())
    calls = changing_calls(yard)
    planned = yard.json("plan", "t", "--detailed-exitcode")
    assert (planned["has_changes"], planned["changes"]) == (False, [])
    assert yard.json("drift", "t", "--detailed-exitcode")["has_drift"] is False
    yard.run("inventory", "render", "t")
    assert addresses(yard) == legacy
    assert yard.json("apply", "t", "--no-verify")["applied"] == {"add": 0, "change": 0, "remove": 0}
    assert addresses(yard) == present
    assert yard.json("plan", "t", "--detailed-exitcode")["has_changes"] is False
    assert changing_calls(yard) == calls


def test_a_change_on_such_a_state_changes_nothing_else(yard: Yard) -> None:
    yard.run("apply", "t", "--no-verify")
    present = addresses(yard)
    write_legacy_names(yard)
    yard.write_env("t", [{**WEB, "memory": 1536}, FQDN])
    planned = yard.json("plan", "t", "--allow-reboot", "web-2")
    assert [change["action"] for change in planned["changes"]] == ["update"]
    applied = yard.json("apply", "t", "--no-verify", "--allow-reboot", "web-2")["applied"]
    assert applied == {"add": 0, "change": 1, "remove": 0}
    assert addresses(yard) == present


def test_such_a_state_is_destroyed_as_any_other(yard: Yard) -> None:
    yard.run("apply", "t", "--no-verify")
    write_legacy_names(yard)
    yard.run("destroy", "t", "--yes", "--allow-destroy", "web-2,dns.home.arpa")
    assert yard.guests() == {}


def addresses(yard: Yard) -> set[str]:
    return {row["address"] for row in yard.json("state", "show", STATE)["instances"]}


def changing_calls(yard: Yard) -> list[str]:
    journal = yard.running.on_loop(lambda: list(yard.running.world.journal.entries()))
    return [entry.path for entry in journal if entry.method != "GET"]


def write_legacy_names(yard: Yard) -> None:
    """Write the state as earlier versions named its resources."""
    with contextlib.closing(open_objects(yard.folder / ".stackyard" / "state")) as objects:
        service = StateService(objects)
        content = service.contents.read(STATE)
        assert content is not None
        text = content.body.data.decode()
        for present, legacy in LEGACY.items():
            text = re.sub(rf"(?<=[\".]){re.escape(present)}(?=[\".])", legacy, text)
        document = json.loads(text)
        document["serial"] += 1
        service.contents.write(STATE, json.dumps(document).encode(), Actor(principal="tests"))
