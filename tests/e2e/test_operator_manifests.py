"""The manifests that a new site has, run as a user runs them: guests and nodes are logged in to by SSH."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.operating import Ground, laid_out, manifest_text
from tests.support.ports import free_port

from pvelab.machines.bubblewrap import find_bubblewrap
from stackyard import lab

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(600)]

WHERE = ("-H", "lab")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    found = asyncio.run(find_bubblewrap())
    if isinstance(found, str):
        pytest.skip(found)
    folder = tmp_path_factory.mktemp("operator")
    with laid_out(folder, guests=lab.Kind.SANDBOX, controller_port=free_port()) as made:
        yield made


@pytest.fixture
def ground(shared: Ground, monkeypatch: pytest.MonkeyPatch) -> Ground:
    return shared.enter(monkeypatch)


def nodes_of(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {node["name"]: node for node in document["nodes"]}


def passed(node: dict[str, Any]) -> set[str]:
    return {phase["name"] for phase in node["phases"] if phase["status"] == "passed"}


def test_the_how_to_creates_shows_destroys_and_tests_a_manifest_in_the_published_form(ground: Ground) -> None:
    page = (Path(__file__).parents[2] / "docs" / "howto" / "operator.md").read_text()
    [block] = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    lines = [shlex.split(line)[1:] for line in block.splitlines()]
    assert [line[0] for line in lines] == ["create", "manifest", "destroy", "test"]
    shown = [ground.yard.run(*line) for line in lines]
    assert "completed" in shown[0].stdout
    assert "running" in shown[1].stdout
    ended = shown[-1]
    document = json.loads(ended.stdout)
    assert (document["scenario"], document["success"], "error" in document) == ("test", True, False)
    assert document["duration_seconds"] > 0
    names = [phase["name"] for phase in document["phases"]]
    assert names == ["check_hosts", "plan_guests", "create_nodes", "verify_nodes", "destroy_nodes"]
    assert {phase["status"] for phase in document["phases"]} == {"passed"}
    edge = nodes_of(document)["edge"]
    assert document["context"]["vm_id"] == document["context"]["edge_vm_id"] == edge["vm_id"] == 99001
    assert document["context"]["vm_ip"] == document["context"]["edge_ip"] == edge["ip"]
    wanted = {"create_guest", "wait_address", "wait_ssh", "apply_spec", "verify_users", "verify_packages"}
    assert wanted | {"verify_services", "verify_spec", "destroy_guest"} <= passed(edge)
    assert ground.yard.guests() == {}
    written = [Path(path) for path in document["logs"]]
    assert {path.suffix for path in written if path.exists()} == {".json", ".md", ".xml"}


def test_a_preview_and_an_error_are_one_json_object_each_and_touch_nothing(ground: Ground) -> None:
    preview = json.loads(
        ground.yard.run(
            "create", "-M", "n3-full", *WHERE, "--dry-run", "--json-output", "--depth", "2"
        ).stdout
    )
    shown = [(node["name"], node["depth"], node["where"]) for node in preview["nodes"]]
    assert shown == [("root-pve", 0, "local"), ("leaf-pve", 1, "delegated")]
    wrong = ground.yard.run("test", "-M", "nobody", *WHERE, "--json-output", status=65)
    said = json.loads(wrong.stdout)
    assert (said["success"], said["scenario"]) == (False, "test")
    assert "nobody" in said["error"]
    for line in (("--vm-id", "edge"), ("--vm-id", "=5"), ("--vm-id", "edge=five"), ("--target", "nobody")):
        ground.yard.run("create", "-M", "n1-basic", *WHERE, *line, status=64)
    refused = ground.yard.json("destroy", "-M", "n1-basic", *WHERE, status=1)
    assert refused["error"]["code"] == "E-NOT-CONFIRMED"
    assert ground.yard.json("destroy", "env:dev", "-M", "n1-basic", *WHERE, status=64)["error"]
    assert ground.yard.guests() == {}
    assert ground.book("n3-full").read() is None


def test_a_guest_without_a_spec_is_not_logged_in_to_where_verify_ssh_is_off(ground: Ground) -> None:
    node = {"name": "plain", "type": "vm", "vmid": 3000, "preset": "vm-xsmall", "image": "debian-12"}
    text = manifest_text("quiet", node, verify_ssh=False)
    (ground.yard.folder / "quiet.json").write_text(text)
    line = ("--manifest-file", "quiet.json", *WHERE)
    created = nodes_of(ground.yard.json("create", *line))["plain"]
    assert created["status"] == "completed"
    [login] = [phase for phase in created["phases"] if phase["name"] == "wait_ssh"]
    assert login["status"] == "skipped"
    view = ground.yard.json("manifest", "status", *line)
    [shown] = view["nodes"]
    assert (shown["status"], shown["vm_id"], shown["power"], shown["drift"]) == (
        "completed",
        3000,
        "running",
        [],
    )
    assert shown["ip"] == created["ip"]
    ground.yard.json("destroy", *line, "--yes")
    gone = ground.yard.json("manifest", "status", *line, "--detailed-exitcode", status=2)
    assert gone["nodes"][0]["drift"] == ["not there"]
    assert gone["runs"]["lab"]["verb"] == "destroy"


def test_push_pull_and_a_container_become_what_their_specs_say_and_disks_are_honoured(ground: Ground) -> None:
    vm = {"type": "vm", "preset": "vm-small", "image": "debian-12", "spec": "base"}
    box = {"type": "ct", "image": "debian-13-ct", "cores": 1, "memory": 512, "disk": 4, "spec": "base"}
    text = manifest_text(
        "mix",
        {"name": "pushed", "vmid": 3010, **vm},
        {"name": "pulled", "vmid": 3011, **vm, "disk": 20, "execution": {"mode": "pull"}},
        {"name": "box", "vmid": 3012, **box, "depends_on": ["pushed"]},
    )
    (ground.yard.folder / "mix.json").write_text(text)
    line = ("--manifest-file", "mix.json", *WHERE)
    made = nodes_of(ground.yard.json("create", *line))
    assert {name: node["status"] for name, node in made.items()} == dict.fromkeys(made, "completed")
    assert "apply_spec" in passed(made["pushed"]) & passed(made["box"])
    assert "wait_spec" in passed(made["pulled"])
    guests = ground.yard.guests()
    assert "size=20G" in guests[3011]["config"]["scsi0"], "the disk of the node, not of its preset"
    assert guests[3012]["type"] == "lxc", "a container is a container"
    ground.yard.json("destroy", *line, "--yes")
    assert ground.yard.guests() == {}


@pytest.mark.soak
@pytest.mark.parametrize(("name", "deepest"), [("n2-quick", 1), ("n3-full", 2)])
def test_nodes_inside_nodes_are_verified_at_every_depth(ground: Ground, name: str, deepest: int) -> None:
    document = ground.yard.json("test", "-M", name, *WHERE)
    assert document["success"] is True
    edge = nodes_of(document)["edge"]
    assert (edge["depth"], edge["status"]) == (deepest, "destroyed")
    assert {"apply_spec", "verify_ssh", "verify_users", "verify_packages", "verify_spec"} <= passed(edge)
    assert all(node["ip"] for node in document["nodes"]), "no node is without an address"
    assert ground.yard.guests() == {}
