"""A node of type `pve` from an image of plain Debian: Proxmox VE is installed, and guests run inside."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.operating import Ground, laid_out, manifest_text

from pvelab.machines.bubblewrap import find_bubblewrap
from stackyard import lab

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(600)]

TOP: dict[str, Any] = {
    "name": "top",
    "type": "pve",
    "cores": 4,
    "memory": 8192,
    "disk": 40,
    "image": "debian-12",
    "vmid": 700,
}
LEAF: dict[str, Any] = {
    "name": "leaf",
    "type": "vm",
    "cores": 1,
    "memory": 512,
    "disk": 4,
    "image": "debian-12",
    "vmid": 701,
    "parent": "top",
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    found = asyncio.run(find_bubblewrap())
    if isinstance(found, str):
        pytest.skip(found)
    with laid_out(tmp_path_factory.mktemp("operator"), guests=lab.Kind.SANDBOX) as made:
        yield made


@pytest.fixture
def ground(shared: Ground, monkeypatch: pytest.MonkeyPatch) -> Ground:
    return shared.enter(monkeypatch)


def test_debian_becomes_a_node_also_where_nothing_runs_inside_of_it(ground: Ground) -> None:
    line = ("--manifest-json", manifest_text("lone", {**TOP, "vmid": 710}), "-H", "lab")
    [top] = json.loads(ground.yard.run("create", *line, "--json-output").stdout)["nodes"]
    assert [phase["status"] for phase in top["phases"] if phase["name"] == "setup_pve"] == ["passed"]
    [again] = json.loads(ground.yard.run("create", *line, "--json-output").stdout)["nodes"]
    assert "setup_pve" not in {phase["name"] for phase in again["phases"]}, "it is one already"
    ground.yard.run("destroy", *line, "--yes")


@pytest.mark.soak
def test_debian_becomes_a_node_and_guests_run_inside_of_it(ground: Ground) -> None:
    text = manifest_text("plain", TOP, LEAF)
    ended = ground.yard.run("test", "--manifest-json", text, "-H", "lab", "--json-output")
    document = json.loads(ended.stdout)
    nodes = {node["name"]: node for node in document["nodes"]}
    phases = {phase["name"]: phase["status"] for phase in nodes["top"]["phases"]}
    assert phases["setup_pve"] == "passed"
    assert nodes["leaf"]["ip"]
    assert document["success"]
    assert ground.yard.guests() == {}
