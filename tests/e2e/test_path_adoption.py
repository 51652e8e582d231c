"""What is there already is taken over as it is: guests, pools, networks, high availability, files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.deployment import CONTAINER, SMALL, WHOLE, edited, text_of
from tests.support.deployment_rig import Rig, running_rig
from tests.support.engine import real_engine
from tests.support.lab import proxmoxer_client
from tests.support.path import Yard, make_yard
from tests.support.provider import make_template

from stackyard import lab
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

WEB: dict[str, Any] = {"name": "web", "vmid": 500, "preset": "vm-xsmall", "image": "debian-12"}
DNS: dict[str, Any] = {
    "name": "dns",
    "type": "ct",
    "vmid": 501,
    "image": "debian-13-ct",
    "cores": 1,
    "memory": 512,
    "disk": 4,
}
# Every block and attribute that Proxmox does not give back as it was written.
RICH: dict[str, Any] = {
    "name": "rich",
    "vmid": 502,
    "image": "debian-12",
    "preset": "vm-xsmall",
    "started": False,
    "stop_on_destroy": True,
    "reboot_after_update": False,
    "machine": "q35",
    "bios": "ovmf",
    "efi_disk": {},
    "tpm": {},
    "agent": {"enabled": True, "timeout_s": 60},
    "tags": ["b", "a"],
    "startup": {"order": 3},
    "description": "it has\ntwo lines",
}


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    engine = real_engine(Flavour.TOFU)
    with lab.running(nodes=("pve1", "pve2"), ssh_port=0) as running:
        yield make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(engine.path))


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with running_rig(tmp_path, is_applied=False) as made:
        yield made


def lose_state(yard: Yard) -> None:
    """Let everything have been made by somebody whose state is not here."""
    shutil.rmtree(yard.folder / ".stackyard" / "state")


def whole() -> dict[str, Any]:
    """Return the large object, without what a token may not do and storages that a lab does not have."""
    document = edited(WHOLE, openbao_cluster__root_disk_datastore_by_node=None)
    docker = document["containers"]["docker-1"]
    del docker["device_passthrough"]
    docker |= {"tags": ["web"], "mount_points": [{"volume": "local-lvm", "path": "/data", "size": 8}]}
    splunk = {"vm_id": 110, "vm_pool_id": "apps", "cpu_cores": 2, "memory": 2048, "boot_disk_size": 4}
    more = {"cpu_type": "x86-64-v2-AES", "data_disk_size": 1}
    document |= {f"splunk_{name}": value for name, value in {**splunk, **more}.items()}
    document["network_cidrs"]["siem"] = "10.0.40.0/24"
    return {**document, "template_id": 9100}


def imported(planned: dict[str, Any]) -> set[str]:
    """Return what is imported and stays as it is."""
    return {one["subject"] for one in planned["changes"] if one["imported_as"] and one["action"] == "no-op"}


def changed(planned: dict[str, Any]) -> dict[str, dict[str, tuple[Any, Any]]]:
    """Return what else happens: attributes before and after, by subject."""
    return {
        one["subject"]: {d["attribute"]: (d["before"], d["after"]) for d in one["differences"]}
        for one in planned["changes"]
        if one["action"] != "no-op"
    }


def test_guests_of_a_site_are_taken_over_as_they_are(yard: Yard) -> None:
    yard.write_env("t", [WEB, DNS, RICH])
    yard.run("apply", "t", "--no-verify")
    before = yard.guests()
    lose_state(yard)
    planned = yard.json("plan", "t", "--adopt", "--out", "x.plan")
    assert imported(planned) == {
        "VM web (500 on pve1)",
        "container dns (501 on pve1)",
        "VM rich (502 on pve1)",
    }
    # Data for cloud-init is written again: nobody knows whether the file that is there is the same.
    assert {subject for subject in changed(planned) if not subject.startswith("file ")} == set()
    assert planned["guard"]["refused"] == []
    shown = yard.run("plan", "t", "--adopt").stdout
    assert "< import   container dns (501 on pve1)" in shown
    assert "3 to import" in shown
    yard.run("apply", "t", "--plan", "x.plan", "--no-verify")
    assert yard.guests() == before
    assert yard.json("plan", "t")["has_changes"] is False


def test_an_adoption_finds_the_same_differences_as_a_plan_of_who_made_the_guests(yard: Yard) -> None:
    quiet = [{**WEB, "started": False}, {**DNS, "started": False}, RICH]
    yard.write_env("t", quiet)
    yard.run("apply", "t", "--no-verify")
    other = [
        {**quiet[0], "memory": 2048, "agent": {"enabled": False}, "tags": ["x"], "protection": True},
        {
            **quiet[1],
            "features": {"nesting": True},
            "console": {"tty_count": 4},
            "memory": 640,
            "disk": 6,
        },
        {**quiet[2], "startup": {"order": 9}, "description": "", "machine": "pc", "bridge": "vmbr0"},
    ]
    yard.write_env("t", other)
    expected = changed(yard.json("plan", "t", status=None))
    lose_state(yard)
    found = changed(yard.json("plan", "t", "--adopt", status=None))
    guests = {subject: values for subject, values in found.items() if not subject.startswith("file ")}
    assert {subject: set(values) for subject, values in guests.items()} == {
        subject: set(values) for subject, values in expected.items() if not subject.startswith("file ")
    }
    assert guests["container dns (501 on pve1)"]["features[0].nesting"] == (False, True)
    assert len(guests) == 3


@pytest.mark.soak
def test_an_image_that_is_gone_does_not_make_an_adopted_disk_again(yard: Yard) -> None:
    yard.write_env("t", [{**WEB, "started": False}, {**DNS, "started": False}])
    yard.run("apply", "t", "--no-verify")
    lose_state(yard)
    api = proxmoxer_client(yard.running)
    for volume in api.nodes("pve1").storage("local").content.get():
        if volume["content"] != "snippets":
            api.nodes("pve1").storage("local").content(volume["volid"]).delete()
    planned = yard.json("plan", "t", "--adopt")
    assert imported(planned) == {"VM web (500 on pve1)", "container dns (501 on pve1)"}
    assert {one["action"] for one in planned["changes"]} == {"no-op", "create"}
    yard.run("apply", "t", "--adopt", "--no-verify")
    assert yard.json("plan", "t")["has_changes"] is False


def test_a_pool_that_is_there_is_refused_by_the_plan_and_taken_over_on_request(rig: Rig) -> None:
    yard = rig.yard
    rig.plant(edited(SMALL, datastore_default="local-lvm"))
    proxmoxer_client(yard.running).pools.post(poolid="infrastructure", comment="made by hand")
    planned = yard.json("plan", "deployment", status=3)
    [refused] = planned["guard"]["refused"]
    assert refused["code"] == "E-GUARD-UNMANAGED-OBJECT"
    assert "pool infrastructure would be created, but infrastructure exists" in refused["detail"]
    assert "--adopt" in refused["remedy"]
    lines = text_of(edited(SMALL, datastore_default="local-lvm")).splitlines()
    assert '"infrastructure": {' in lines[refused["where"]["line"] - 1]
    assert yard.codes("apply", "deployment", "--no-verify") == ["E-GUARD-UNMANAGED-OBJECT"]
    assert yard.guests() == {}
    planned = yard.json("plan", "deployment", "--adopt")
    assert changed(planned)["pool infrastructure"] == {"comment": ("made by hand", "what everything needs")}
    yard.run("apply", "deployment", "--adopt", "--no-verify")
    assert yard.json("plan", "deployment")["has_changes"] is False


def test_a_pool_of_another_state_is_not_taken_over(rig: Rig) -> None:
    yard = rig.yard
    rig.plant(edited(SMALL, datastore_default="local-lvm"))
    yard.write_env("t", [{**DNS, "started": False, "pool": "infrastructure"}], pools={"infrastructure": None})
    yard.run("apply", "t", "--no-verify")
    for adopt in ((), ("--adopt",)):
        error = yard.json("apply", "deployment", *adopt, status=1)["error"]
        assert [found["code"] for found in error["diagnostics"]] == ["E-GUARD-MANAGED-ELSEWHERE"]
        assert "the state env/t/lab manages it" in error["diagnostics"][0]["detail"]


def test_a_whole_deployment_is_taken_over_as_it_is(rig: Rig) -> None:
    yard = rig.yard
    make_template(yard.running, "pve1", 9100)
    rig.plant(whole())
    yard.run("apply", "deployment", "--no-verify")
    before = yard.guests()
    lose_state(yard)
    planned = yard.json("plan", "deployment", "--adopt")
    assert changed(planned) == {}
    assert imported(planned) >= {"pool apps", "pool infrastructure", "VM vm-a (250 on pve1)"}
    # Two pools more, and without the template.
    assert len(imported(planned)) == len(before) + 1
    yard.run("apply", "deployment", "--adopt", "--no-verify")
    assert yard.guests() == before
    assert yard.json("plan", "deployment", "--detailed-exitcode")["has_changes"] is False


@pytest.mark.soak
def test_high_availability_that_is_there_is_taken_over(rig: Rig) -> None:
    yard = rig.yard
    ha = {"ha": True, "ha_affinity_group": "apart"}
    mine: dict[str, Any] = {f"containers__my-container__{name}": value for name, value in ha.items()}
    second = {**CONTAINER, "vm_id": 124, "hostname": "second", "node_name": "pve2", **ha}
    rig.plant(
        edited(
            SMALL,
            datastore_default="local-lvm",
            **mine,
            containers__second=second,
            nodes__pve2={"role": "second"},
        )
    )
    yard.run("apply", "deployment", "--no-verify")
    lose_state(yard)
    refused = yard.json("plan", "deployment", status=3)["guard"]["refused"]
    assert [found["code"] for found in refused].count("E-GUARD-UNMANAGED-OBJECT") == 4
    planned = yard.json("plan", "deployment", "--adopt")
    assert changed(planned) == {}
    assert len(imported(planned)) == 6
    yard.run("apply", "deployment", "--adopt", "--no-verify")
    assert yard.json("plan", "deployment")["has_changes"] is False


@pytest.mark.soak
def test_networks_that_are_there_are_taken_over_without_a_reload(yard: Yard) -> None:
    site = yaml.safe_load((yard.folder / "site.yaml").read_text())
    networks = site.setdefault("networks", {})
    networks["inner"] = {"type": "bridge", "bridge": "vmbr7", "create": True}
    networks["lan"] = {
        "type": "simple",
        "zone": "zone1",
        "cidr": "10.66.0.0/24",
    }
    (yard.folder / "site.yaml").write_text(yaml.safe_dump(site, sort_keys=False))
    yard.run("apply", "site:shared", "-H", "lab", "--allow-network-reload", "pve1,pve2")
    lose_state(yard)
    refused = yard.json("plan", "site:shared", "-H", "lab", status=3)["guard"]["refused"]
    assert "E-GUARD-UNMANAGED-OBJECT" in {found["code"] for found in refused}
    planned = yard.json("plan", "site:shared", "-H", "lab", "--adopt")
    assert {subject.partition(" ")[0] for subject in imported(planned)} == {"bridge", "SDN"}
    yard.run("apply", "site:shared", "-H", "lab", "--adopt")
    assert yard.json("plan", "site:shared", "-H", "lab")["has_changes"] is False
