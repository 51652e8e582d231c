"""Files that several targets use, and what new images and new data mean for guests that exist."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.engine import real_engine
from tests.support.lab import proxmoxer_client
from tests.support.path import Yard, make_yard

from stackyard import lab
from stackyard.engine.version import Flavour
from stackyard.path.environment import EnvironmentSource
from stackyard.path.plan import make_plan
from stackyard.path.run import RunSettings, open_run
from stackyard.sources.store import ChosenStore
from stackyard.state import StateService
from stackyard.state.model import StateHead

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

WEB: dict[str, Any] = {"name": "web", "vmid": 500, "preset": "vm-xsmall", "image": "debian-12"}


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    engine = real_engine(Flavour.TOFU)
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        yield make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(engine.path))


def files(yard: Yard, content: str) -> set[str]:
    rows = proxmoxer_client(yard.running).nodes("pve1").storage("local").content.get(content=content)
    return {row["volid"] for row in rows}


def warnings(document: dict[str, Any]) -> list[str]:
    return [found["code"] for found in document["guard"]["warnings"]]


def test_two_envs_use_one_image_and_neither_takes_it_from_the_other(yard: Yard) -> None:
    image = "local:import/debian-12.qcow2"
    yard.write_env("t", [{**WEB, "started": False}])
    yard.write_env("u", [{**WEB, "name": "db", "vmid": 501, "started": False}])
    yard.run("apply", "t", "--no-verify")
    assert image in files(yard, "import")
    yard.run("apply", "u", "--no-verify")
    assert set(yard.guests()) == {500, 501}
    assert yard.json("plan", "u")["has_changes"] is False
    # The owner goes, and leaves what the other uses.
    destroyed = yard.json("destroy", "t", "--allow-destroy", "web")
    assert warnings(destroyed) == ["W-GUARD-FILE-KEPT"]
    assert image in files(yard, "import")
    assert yard.json("plan", "u")["has_changes"] is False
    yard.run("destroy", "u", "--allow-destroy", "db")
    assert yard.guests() == {}


def test_another_file_of_the_same_name_is_refused_before_anything_is_made(yard: Yard) -> None:
    yard.write_env("t", [{**WEB, "started": False}])
    yard.run("apply", "t", "--no-verify")
    path = yard.folder / "site.yaml"
    site = yaml.safe_load(path.read_text())
    url = "https://images.example/other/debian-12.qcow2"
    site["images"]["other"] = {**site["images"]["debian-12"], "url": url, "file_name": "debian-12.qcow2"}
    path.write_text(yaml.safe_dump(site))
    yard.write_env("u", [{**WEB, "name": "db", "vmid": 501, "image": "other"}])
    assert yard.codes("apply", "u", "--no-verify") == ["E-GUARD-FILE-DIFFERS"]
    assert set(yard.guests()) == {500}


def test_a_new_image_is_not_applied_to_a_guest_that_exists(yard: Yard) -> None:
    yard.write_env("t", [{**WEB, "started": False}])
    yard.run("apply", "t", "--no-verify")
    before = yard.guests()[500]["config"]
    path = yard.folder / "site.yaml"
    site = yaml.safe_load(path.read_text())
    site["images"]["newer"] = {**site["images"]["debian-12"], "file_name": "newer.qcow2"}
    path.write_text(yaml.safe_dump(site))
    yard.write_env("t", [{**WEB, "image": "newer", "started": False}])
    make_plan = yard.json("plan", "t", status=3)
    assert warnings(make_plan) == ["W-GUARD-OTHER-IMAGE"]
    assert not [change for change in make_plan["changes"] if change["subject"].startswith("VM ")]
    yard.run("apply", "t", "--no-verify", "--allow-destroy", "debian-12.qcow2")
    assert yard.guests()[500]["config"]["vmgenid"] == before["vmgenid"]
    # It is remembered until the guest is created again, which names every disk that would be lost.
    assert [found["code"] for found in yard.json("drift", "t")["not_applied"]] == ["W-GUARD-OTHER-IMAGE"]
    error = yard.json("apply", "t", "--recreate", "web", "--no-verify", status=1)["error"]
    assert "disk scsi0 (" in error["diagnostics"][0]["detail"]
    yard.run("apply", "t", "--recreate", "web", "--allow-destroy", "web", "--no-verify")
    assert yard.guests()[500]["config"]["vmgenid"] != before["vmgenid"]
    assert warnings(yard.json("plan", "t")) == []


def test_new_data_for_cloud_init_is_said_to_be_unread_until_the_guest_has_read_it(yard: Yard) -> None:
    yard.write_env("t", [{**WEB, "started": False, "packages": ["curl"]}])
    yard.run("apply", "t", "--no-verify")
    assert warnings(yard.json("plan", "t")) == []
    yard.write_env("t", [{**WEB, "started": False, "packages": ["curl", "jq"]}])
    assert "W-GUARD-OTHER-DATA" in warnings(yard.json("plan", "t"))
    yard.run("apply", "t", "--no-verify")
    drift = yard.json("drift", "t")
    assert (drift["has_drift"], [found["code"] for found in drift["not_applied"]]) == (
        False,
        ["W-GUARD-OTHER-DATA"],
    )
    yard.run("apply", "t", "--recreate", "web", "--allow-destroy", "web", "--no-verify")
    assert yard.json("drift", "t")["not_applied"] == []


def test_a_guest_that_was_deleted_by_hand_is_created_from_the_image_of_the_input(yard: Yard) -> None:
    yard.write_env("t", [{**WEB, "started": False}])
    yard.run("apply", "t", "--no-verify")
    path = yard.folder / "site.yaml"
    site = yaml.safe_load(path.read_text())
    site["images"]["newer"] = {**site["images"]["debian-12"], "file_name": "newer.qcow2"}
    path.write_text(yaml.safe_dump(site))
    yard.write_env("t", [{**WEB, "image": "newer", "started": False}])
    proxmoxer_client(yard.running).nodes("pve1").qemu("500").delete()
    make_plan = yard.json("plan", "t", "--allow-destroy", "debian-12.qcow2")
    assert warnings(make_plan) == []
    (created,) = [change for change in make_plan["changes"] if change["subject"].startswith("VM ")]
    assert created["action"] == "create"
    yard.run("apply", "t", "--no-verify", "--allow-destroy", "debian-12.qcow2")
    assert yard.json("plan", "t")["has_changes"] is False


def test_a_saved_plan_does_not_delete_a_file_that_came_into_use_since(yard: Yard) -> None:
    yard.write_env("t", [{**WEB, "started": False}, {**WEB, "name": "w", "vmid": 502, "image": "debian-13"}])
    yard.run("apply", "t", "--no-verify")
    yard.write_env("t", [{**WEB, "name": "w", "vmid": 502, "image": "debian-13"}])
    allowed = ("--allow-destroy", "web,debian-12.qcow2")
    yard.run("plan", "t", *allowed, "--out", "t.plan")
    yard.write_env("u", [{**WEB, "name": "db", "vmid": 501, "started": False}])
    yard.run("apply", "u", "--no-verify")
    error = yard.json("apply", "t", "--plan", "t.plan", *allowed, "--no-verify", status=65)["error"]
    assert error["code"] == "E-PLAN-MOVED"
    assert "local:import/debian-12.qcow2" in files(yard, "import")


def test_a_file_under_another_key_is_the_same_file(yard: Yard) -> None:
    path = yard.folder / "site.yaml"
    site = yaml.safe_load(path.read_text())
    named = {**site["images"]["debian-12"], "file_name": "one.qcow2"}
    path.write_text(yaml.safe_dump({**site, "images": {**site["images"], "first": named}}))
    yard.write_env("t", [{**WEB, "image": "first", "started": False}])
    yard.run("apply", "t", "--no-verify")
    path.write_text(yaml.safe_dump({**site, "images": {**site["images"], "second": named}}))
    yard.write_env("t", [{**WEB, "image": "second", "started": False}])
    make_plan = yard.json("plan", "t")
    assert {change["action"] for change in make_plan["changes"]} <= {"update", "no-op"}
    yard.run("apply", "t", "--no-verify")
    assert "local:import/one.qcow2" in files(yard, "import")
    assert yard.json("plan", "t")["has_changes"] is False


def test_one_plan_reads_the_index_of_all_states_once(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.write_env("one", [{**WEB, "started": False}])
    yard.run("apply", "one", "--no-verify")
    # Its image is there already: both the guests and the files of the other state are asked for.
    yard.write_env("two", [{**WEB, "name": "other", "vmid": 501}])
    for name, value in yard.env.items():
        monkeypatch.setenv(name, value)
    reads: list[str] = []
    heads = StateService.heads

    def counted(self: StateService, prefix: str = "") -> Iterator[StateHead]:
        reads.append("heads")
        yield from heads(self, prefix)

    monkeypatch.setattr(StateService, "heads", counted)
    resolved = EnvironmentSource.find(str(yard.folder)).resolve("two", None)

    async def plan() -> int:
        settings = RunSettings(store=ChosenStore(base=yard.folder / ".stackyard"))
        async with open_run(resolved, settings) as run, make_plan(run) as made:
            return len(made.changes.planned)

    assert asyncio.run(plan()) > 0
    assert len(reads) == 1
