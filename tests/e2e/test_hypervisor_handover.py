"""Networks and pools of site.yaml become those of hypervisors: handed over, and never made or destroyed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.path import SMALL_GUEST, Yard, make_yard, provider_settings

from stackyard import lab
from stackyard.sources.site.load import Site
from stackyard.state import Actor, StateService

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

OLD, NEW = "site/shared/lab", "hypervisor/lab/lab"
RELOAD = ("--allow-network-reload", "pve1,pve2")


@pytest.fixture(params=["builtin", pytest.param("bpg", marks=pytest.mark.bpg)])
def yard(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Yard]:
    env = provider_settings(request.param, tmp_path)
    with lab.running(nodes=("pve1", "pve2"), ssh_port=0) as running:
        made = make_yard(running, tmp_path / "site", **env)
        site = yaml.safe_load((made.folder / "site.yaml").read_text())
        site.setdefault("networks", {}).update(
            inner={"type": "bridge", "bridge": "vmbr7", "create": True, "vlan_aware": True},
            dmz={"type": "vlan", "bridge": "vmbr7", "tag": 30, "create": True},
            lan={"type": "simple", "zone": "zone1", "cidr": "10.66.0.0/24"},
        )
        site["pools"] = {"apps": {"comment": "what people use"}}
        (made.folder / "site.yaml").write_text(yaml.safe_dump(site, sort_keys=False))
        yield made


@contextlib.contextmanager
def states(yard: Yard) -> Iterator[StateService]:
    with contextlib.closing(Site.open(yard.folder).store.open()) as objects:
        yield StateService(objects)


def put_back(yard: Yard) -> None:
    """Let everything be in the state that an older version made."""
    with states(yard) as service:
        content = service.contents.read(NEW)
    assert content is not None
    shutil.rmtree(yard.folder / ".stackyard" / "state")
    with states(yard) as service:
        service.contents.write(OLD, content.body.data, Actor(principal="older"))


KILLED = """
import os, signal, sys
from stackyard.cli.main import main
from stackyard.state.run_lock import RunLock
left, store = [{}], RunLock.store
def store_and_die(self, *args, **named):
    version = store(self, *args, **named)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return version
RunLock.store = store_and_die
sys.exit(main(sys.argv[1:]))
"""


def kill_after(yard: Yard, stored: int) -> None:
    """Apply, and die with the locks of both states once so many states are stored."""
    code = KILLED.format(stored)
    command = [sys.executable, "-c", code, "apply", "site:shared", "-H", "lab"]
    ended = subprocess.run(
        command, cwd=yard.folder, env={**os.environ, **yard.env}, capture_output=True, text=True
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr


def instances(yard: Yard, name: str) -> int:
    with states(yard) as service:
        content = service.contents.read(name)
        return 0 if content is None else content.version.instances


def taken(document: dict[str, Any]) -> set[tuple[str, str]]:
    return {(row["object"], row["from"]) for row in document["takes_over"]}


def test_objects_of_an_old_state_are_handed_over_and_neither_made_nor_destroyed(yard: Yard) -> None:
    yard.write_env(
        "t",
        [
            {**SMALL_GUEST, "network": "inner"},
            {**SMALL_GUEST, "name": "db", "vmid": 102, "bridge": "vmbr77", "pool": "app"},
        ],
    )
    refused = yard.json("plan", "t", status=3)
    declared = "hypervisor:lab declares it, and was not applied since: stackyard apply hypervisor:lab"
    for finding, said in zip(
        refused["guard"]["refused"],
        (declared, "Did you mean `vmbr7` or", "Did you mean `apps`?"),
        strict=True,
    ):
        assert said in finding["detail"]
        assert finding["where"]["file"] == "envs/t.yaml"
    # No engine was asked.
    assert refused["changes"] == []
    assert yard.json("apply", "site:shared", "-H", "lab", *RELOAD)["target"] == "hypervisor:lab"
    put_back(yard)
    everything = {
        ("bridge vmbr7 on pve1", "site:shared"),
        ("VLAN vmbr7.30 on pve1", "site:shared"),
        ("SDN zone zone1", "site:shared"),
        ("SDN vnet lan", "site:shared"),
        ("SDN subnet 10.66.0.0/24", "site:shared"),
        ("pool apps", "site:shared"),
    }
    planned = yard.json("plan", "hypervisor:lab", "--detailed-exitcode", status=2)
    assert (planned["changes"], taken(planned)) == ([], everything)
    shown = yard.run("plan", "site:shared", "-H", "lab").stdout
    assert "take over bridge vmbr7 on pve1 from site:shared (state site/shared/lab)" in shown
    assert (instances(yard, OLD), instances(yard, NEW)) == (8, 0)
    # Whoever destroys a hypervisor that was never applied does not mean the networks of the older target.
    left = yard.json("destroy", "hypervisor:lab", "--yes")
    (note,) = left["guard"]["warnings"]
    assert (left["applied"], note["code"]) == (None, "W-HYPERVISOR-NOT-TAKEN-OVER")
    assert "bridge vmbr7 on pve1" in note["detail"]
    assert (instances(yard, OLD), instances(yard, NEW)) == (8, 0)
    older = yard.json("destroy", "site:shared", "-H", "lab", "--dry-run", *RELOAD, status=None)
    assert len([one for one in older["changes"] if one["action"] == "delete"]) == 8
    kill_after(yard, 1)
    assert (instances(yard, OLD), instances(yard, NEW)) == (8, 8)
    half = yard.json("destroy", "hypervisor:lab", "--dry-run", *RELOAD, status=None)
    assert len([one for one in half["changes"] if one["action"] == "delete"]) == 8
    for name in ("hypervisor:lab", "site:shared"):
        half = yard.json("plan", name, "-H", "lab")
        assert (half["changes"], taken(half)) == ([], everything)
        assert yard.json("drift", name, "-H", "lab")["has_drift"] is False
    doomed = yard.json("destroy", "site:shared", "-H", "lab", "--dry-run", *RELOAD, status=None)
    assert len([one for one in doomed["changes"] if one["action"] == "delete"]) == 8
    yard.run("apply", "site:shared", "-H", "lab")
    assert (instances(yard, OLD), instances(yard, NEW)) == (0, 8)
    history = yard.run("state", "versions", OLD, "--json").stdout
    assert "taken over by hypervisor:lab" in history
    assert yard.json("plan", "site:shared", "-H", "lab")["has_changes"] is False


def test_files_that_come_later_take_over_from_the_node(yard: Yard) -> None:
    yard.run("apply", "hypervisor:lab", *RELOAD)
    files = yard.folder / "hypervisors"
    files.mkdir()
    (files / "home.yaml").write_text("api: lab\n")
    refused = yard.json("plan", "hypervisor:lab", status=65)["error"]
    assert (refused["code"], "apply hypervisor:home" in refused["remedy"]) == (
        "E-HYPERVISOR-HANDED-OVER",
        True,
    )
    # The older name is both, in the order in which they can be applied.
    first, second = yard.json("plan", "site:shared", "-H", "lab")["targets"]
    assert (first["target"], first["changes"]) == ("hypervisor:home", [])
    assert (second["target"], second["waits"]["code"]) == ("hypervisor:lab", "E-HYPERVISOR-HANDED-OVER")
    out = yard.json("plan", "site:shared", "-H", "lab", "--out", "x.plan", status=64)["error"]["detail"]
    assert "`hypervisor:lab`" in out
    assert "`hypervisor:home`" in out
    planned = yard.json("plan", "hypervisor:home")
    assert planned["changes"] == []
    assert ("pool apps", "hypervisor:lab") in taken(planned)
    assert ("bridge vmbr7 on pve1", "hypervisor:lab") not in taken(planned)
    applied = yard.json("apply", "site:shared", "-H", "lab")["targets"]
    assert [one["target"] for one in applied] == ["hypervisor:home", "hypervisor:lab"]
    drifted = yard.json("drift", "site:shared", "-H", "lab")["targets"]
    assert [one["has_drift"] for one in drifted] == [False, False]
    assert "hypervisor:home" in yard.run("plan", "site:shared", "-H", "lab").stdout
    # The same bridge, written into the file of its node; the VLAN on it stays in site.yaml.
    (files / "lab.yaml").write_text("node: pve1\nbridges:\n  vmbr7:\n    vlan_aware: true\n")
    assert yard.json("plan", "hypervisor:lab")["changes"] == []
    yard.run("apply", "hypervisor:lab")
    site = yaml.safe_load((yard.folder / "site.yaml").read_text())
    del site["networks"]["inner"]["create"], site["networks"]["inner"]["vlan_aware"]
    (yard.folder / "site.yaml").write_text(yaml.safe_dump(site, sort_keys=False))
    assert yard.json("plan", "hypervisor:lab")["has_changes"] is False
    destroyed = yard.json("destroy", "site:shared", "-H", "lab", status=64)["error"]["detail"]
    assert "hypervisor" in destroyed
