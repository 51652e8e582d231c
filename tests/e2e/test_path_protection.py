"""Guests with a firewall, backups and copies: made, drifted from, moved, and never cut off by a removal."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.engine import real_engine
from tests.support.judges import find_judge
from tests.support.path import SMALL_GUEST, Yard, make_yard, mirror_of
from tests.support.provider import lab_api

from pvelab.seeds import PREPARED_STORAGES, Seed
from stackyard import lab
from stackyard.clients import proxmox
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

TANK = {"type": "zfspool", "pool": "tank", "content": "images,rootdir"}
SEED = Seed(name="zfs", nodes=("pve1", "pve2"), storages={**PREPARED_STORAGES, "tank": TANK})
CLUSTER: dict[str, Any] = {
    "pools": {"nightly": {}},
    "backups": {"nightly": {"schedule": "22:30", "storage": "local", "pool": "nightly"}},
    "firewall": {"groups": {"web": [{"type": "in", "action": "ACCEPT", "macro": "HTTP"}]}},
}
FIREWALL: dict[str, Any] = {
    "options": {"input_policy": "REJECT"},
    "rules": [
        {"security_group": "web"},
        {"type": "in", "action": "ACCEPT", "macro": "SSH", "source": "guest/office"},
        {"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": 8080, "source": "+guest/peers"},
    ],
    "aliases": {"office": "192.0.2.0/24"},
    "ipsets": {"peers": ["10.1.0.0/16", "guest/office"]},
}
WEB: dict[str, Any] = {
    **SMALL_GUEST,
    "root_disk": {"datastore": "tank"},
    "nics": [{"firewall": True, "ipv4": "dhcp"}],
    "backup": "nightly",
    "firewall": FIREWALL,
    "replication": {"target": "pve2", "schedule": "daily"},
}
RULES = "/nodes/pve1/lxc/101/firewall/rules"


@pytest.fixture(params=["builtin", pytest.param("bpg", marks=pytest.mark.bpg)])
def yard(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Yard]:
    engine = real_engine(Flavour.TOFU)
    env = {"STACKYARD_TOFU": str(engine.path), "STACKYARD_PROVIDER": request.param}
    if request.param == "bpg":
        settings = mirror_of(find_judge("bpg"), engine.path, tmp_path / "bpg")
        env["STACKYARD_TOFU_CONFIG"] = str(settings)
    with lab.running(ssh_port=0, seed=SEED) as running:
        made = make_yard(running, tmp_path / "site", **env)
        (made.folder / "hypervisors").mkdir()
        (made.folder / "hypervisors" / "home.yaml").write_text(yaml.safe_dump(CLUSTER))
        made.write_env("t", [WEB])
        yield made


def changed(yard: Yard) -> set[str]:
    return {change["subject"] for change in yard.json("plan", "t", status=None)["changes"]}


async def check_made(api: proxmox.Client) -> None:
    rows = await api.get(RULES)
    assert [(row["type"], row["action"]) for row in rows] == [("group", "web"), *[("in", "ACCEPT")] * 2]
    options = await api.get(RULES.replace("rules", "options"))
    wanted = {"enable": 1, "dhcp": 1, "policy_in": "REJECT"}
    assert {key: options[key] for key in wanted} == wanted
    members = (await api.get("/pools", {"poolid": "nightly"}))[0]["members"]
    assert [member["vmid"] for member in members] == [101]
    [job] = await api.get("/cluster/replication")
    assert (job["id"], job["target"], job["schedule"]) == ("101-0", "pve2", "daily")


async def test_a_guest_is_made_with_all_of_it_and_kept_so(yard: Yard) -> None:
    yard.run("apply", "hypervisor:home", "-H", "lab")
    yard.run("apply", "t", "--no-verify")
    assert changed(yard) == set()
    async with lab_api(yard.running) as api:
        await check_made(api)
        await api.put(f"{RULES}/1", {"action": "DROP"})
        assert changed(yard) == {"firewall rules 101/rules"}
        assert yard.json("drift", "t")["has_drift"] is True
        yard.run("apply", "t", "--no-verify")
        assert (await api.get(RULES))[1]["action"] == "ACCEPT"
        if yard.env["STACKYARD_PROVIDER"] == "builtin":
            # Without a state all of it is found again; bpg cannot import aliases.
            shutil.rmtree(yard.folder / ".stackyard" / "state")
            found = [one["code"] for one in yard.json("plan", "t", status=3)["guard"]["refused"]]
            assert found.count("E-GUARD-UNMANAGED-OBJECT") == 4
            yard.run("apply", "t", "--adopt", "--no-verify")
            assert changed(yard) == set()
        bare = {key: value for key, value in WEB.items() if key not in ("firewall", "replication", "backup")}
        yard.write_env("t", [{**bare, "pool": "nightly"}])
        refused = yard.codes("apply", "t")
        assert sorted(refused) == [*["E-GUARD-DESTROYS-OBJECT"] * 4, "E-GUARD-FIREWALL-STAYS"]
        yard.write_env("t", [{**bare, "pool": "nightly", "firewall": {"options": {"enabled": False}}}])
        gone = "101/rules,101/office,101/peers,101-0"
        yard.run("apply", "t", "--no-verify", "--allow-destroy", gone)
        yard.write_env("t", [{**bare, "pool": "nightly"}])
        yard.run("apply", "t", "--no-verify")
        assert (await api.get(RULES), await api.get("/cluster/replication")) == ([], [])
        # Proxmox chooses the id of the second, which nobody knows before.
        box = {key: value for key, value in WEB.items() if key != "vmid"} | {"name": "box"}
        yard.write_env("t", [WEB, box])
        yard.run("apply", "t", "--no-verify")
        assert changed(yard) == set()
        yard.run("destroy", "t", "--yes", "--allow-destroy", "web,box")
        assert (yard.guests(), await api.get("/cluster/replication")) == ({}, [])


async def test_a_replication_is_turned_round_with_a_guest_that_somebody_moved(yard: Yard) -> None:
    replicated = {key: value for key, value in WEB.items() if key not in ("firewall", "backup")}
    yard.write_env("t", [{**replicated, "started": False}])
    yard.run("apply", "t", "--no-verify")
    async with lab_api(yard.running) as api:

        async def read_job() -> tuple[str, str]:
            [job] = await api.get("/cluster/replication")
            return str(job["source"]), str(job["target"])

        assert await read_job() == ("pve1", "pve2")
        upid = await api.post("/nodes/pve1/lxc/101/migrate", {"target": "pve2"})
        await proxmox.wait_for(api, upid, timeout_s=60)
        # Proxmox turns the job round with its guest: the plan changes neither, and an apply leaves both so.
        assert await read_job() == ("pve2", "pve1")
        planned = yard.json("plan", "t")
        assert (planned["changes"], planned["guard"]["warnings"][0]["code"]) == ([], "W-GUARD-ELSEWHERE")
        yard.run("apply", "t", "--no-verify")
        assert await read_job() == ("pve2", "pve1")
        # Somebody points it elsewhere by hand: that is drift, and put right for where the guest is.
        await api.put("/cluster/replication/101-0", {"schedule": "hourly"})
        assert changed(yard) == {"replication 101-0"}
        yard.run("apply", "t", "--no-verify")
        assert (await read_job(), changed(yard)) == (("pve2", "pve1"), set())
