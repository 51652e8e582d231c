"""The inventory says what is true of every guest, or is not published at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from stackyard.desired import Desired
from stackyard.inventory import (
    Fact,
    Freshness,
    IncompleteError,
    freshness,
    open_inventory_target,
    read_facts,
    render,
)
from stackyard.inventory.ansible import as_list, as_yaml, group_name
from stackyard.inventory.contract import Origin, parse

ORIGIN = Origin(target="env:dev", desired="d", version="v", state="l/1")
WEB = {
    "key": "web-1",
    "name": "web",
    "node": "pve-1",
    "tags": ["app_k8s-repo", "docker"],
    "cloud_init": {"datastore": "local", "users": [{"name": "ops", "keys": []}]},
    "nics": [{"bridge": "vmbr0", "ipv4": "192.0.2.10/24", "gateway4": "192.0.2.1"}],
}
DNS: dict[str, Any] = {
    "key": "dns",
    "name": "dns",
    "node": "pve-1",
    "template": "local:vztmpl/debian.tar.zst",
    "root_disk": {"datastore": "local-lvm", "size_gib": 4},
    "password": {"secret": "passwords.root"},
}
VM, CT = "proxmox_virtual_environment_vm.web-1", "proxmox_virtual_environment_container.dns"
FACTS = {
    VM: Fact(vm_id=500, node="pve-1", mac="02:00:00:00:00:01"),
    CT: Fact(vm_id=501, node="pve-1", addresses=("192.0.2.20",)),
}


def desired(*, vms: tuple[dict[str, Any], ...] = (WEB,)) -> Desired:
    return Desired.model_validate({"vms": list(vms), "containers": [DNS]})


def codes(facts: dict[str, Fact], wanted: Desired | None = None) -> list[str]:
    with pytest.raises(IncompleteError) as raised:
        render(wanted or desired(), facts, ORIGIN)
    return [found.kind.code for found in raised.value.diagnostics]


def test_every_guest_is_there_with_what_it_is_reached_by() -> None:
    found = render(desired(), FACTS, ORIGIN, extras={"constants": {"ports": {"web": 80}}})
    web, dns = found.document["vms"]["web-1"], found.document["containers"]["dns"]
    assert (web["vmid"], web["ip"], web["gateway"], web["ansible_user"]) == (
        500,
        "192.0.2.10",
        "192.0.2.1",
        "ops",
    )
    assert (dns["ip"], dns["ansible_pct_vmid"], dns["ansible_user"]) == ("192.0.2.20", 501, "root")
    assert found.document["docker_vms"] == {"web-1": web}
    assert found.document["constants"] == {"ports": {"web": 80}}
    assert parse(found.data()).origin == ORIGIN
    assert b"passwords" not in found.data()


def test_a_guest_that_is_not_in_the_state_stops_everything() -> None:
    assert codes({VM: FACTS[VM]}) == ["E-INVENTORY-MISSING"]


def test_a_guest_that_nobody_wants_stops_everything() -> None:
    more = {**FACTS, "proxmox_virtual_environment_vm.old": Fact(vm_id=9, node="pve-1")}
    assert codes(more) == ["E-INVENTORY-EXTRA"]


def test_a_guest_that_runs_without_an_address_stops_everything() -> None:
    assert codes({**FACTS, CT: Fact(vm_id=501, node="pve-1")}) == ["E-INVENTORY-ADDRESS"]
    stopped = Desired.model_validate({"containers": [{**DNS, "started": False}]})
    found = render(stopped, {CT: Fact(vm_id=501, node="pve-1")}, ORIGIN)
    assert found.document["containers"]["dns"]["ip"] is None


def test_what_a_source_says_is_held_against_the_schema_too() -> None:
    with pytest.raises(IncompleteError) as raised:
        render(desired(), FACTS, ORIGIN, extras={"ingress": [{"name": "web", "port": 0}]})
    assert "ingress.0.port" in raised.value.diagnostics[0].detail


def test_every_problem_is_told_at_once() -> None:
    assert codes({"proxmox_virtual_environment_vm.old": Fact(vm_id=9, node="n")}) == [
        "E-INVENTORY-MISSING",
        "E-INVENTORY-MISSING",
        "E-INVENTORY-EXTRA",
    ]


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"schema_version": "3.0.0"}', b'{"schema_version": "2.0.0"}']
)
def test_what_is_no_inventory_of_this_version_is_refused(data: bytes) -> None:
    with pytest.raises(IncompleteError):
        parse(data)


def test_groups_come_from_tags_apps_nodes_and_types_and_keep_their_hosts() -> None:
    groups = as_list(render(desired(), FACTS, ORIGIN))
    assert groups["k8s_repo"] == {"hosts": ["web-1"]}
    assert groups["app_k8s_repo"] == groups["docker"] == groups["vms"] == {"hosts": ["web-1"]}
    assert groups["pve_1"] == {"hosts": ["dns", "web-1"]}
    assert groups["_meta"]["hostvars"]["web-1"]["ansible_host"] == "192.0.2.10"
    assert group_name("3d-print.er") == "_3d_print_er"


def test_texts_that_yaml_would_change_are_quoted() -> None:
    tricky = {**WEB, "tags": ["yes", "1e3", "0755"]}
    text = as_yaml(render(desired(vms=(tricky,)), FACTS, ORIGIN))
    assert yaml.safe_load(text)["all"]["hosts"]["web-1"]["proxmox_tags"] == ["0755", "1e3", "yes"]
    assert '"0755"' in text


def test_a_state_is_read_without_what_cannot_be_relied_on() -> None:
    attributes = {"vm_id": 500, "node_name": "n", "ipv4_addresses": [["127.0.0.1"], ["192.0.2.9"]]}
    rows = [
        {
            "mode": "managed",
            "type": "proxmox_virtual_environment_vm",
            "name": name,
            "instances": [{"attributes": attributes, **more}],
        }
        for name, more in (("a", {}), ("b", {"status": "tainted"}), ("c", {"deposed": "x"}))
    ]
    facts = read_facts(orjson.dumps({"resources": rows}))
    assert facts == {"proxmox_virtual_environment_vm.a": Fact(vm_id=500, node="n", addresses=("192.0.2.9",))}
    assert read_facts(None) == {}


@pytest.mark.parametrize(
    ("given", "reported", "known"),
    [
        # A virtual address wanders from guest to guest, and may be reported before the own one.
        ("10.0.0.20/24", ["10.0.0.10", "10.0.0.20"], ("10.0.0.20", "10.0.0.10")),
        # The guests of a lab are on the loopback range; the input says so, and not the guest.
        ("127.230.0.51/16", ["127.230.0.51", "fd31::1"], ("127.230.0.51", "fd31::1")),
        ("10.0.0.20/24", ["127.0.0.1", "10.0.0.33"], ("10.0.0.33",)),
        ("dhcp", ["127.230.0.51", "10.0.0.33"], ("10.0.0.33",)),
    ],
)
def test_the_address_that_the_input_gives_comes_first_once_it_is_reported(
    given: str, reported: list[str], known: tuple[str, ...]
) -> None:
    attributes = {
        "vm_id": 500,
        "node_name": "n",
        "ipv4_addresses": [["127.0.0.1"], reported],
        "initialization": [{"ip_config": [{"ipv4": [{"address": given}]}]}],
    }
    row = {
        "mode": "managed",
        "type": "proxmox_virtual_environment_vm",
        "name": "a",
        "instances": [{"attributes": attributes}],
    }

    facts = read_facts(orjson.dumps({"resources": [row]}))

    assert facts["proxmox_virtual_environment_vm.a"].addresses == known


def test_only_proof_makes_an_inventory_current() -> None:
    found = render(desired(), FACTS, ORIGIN)
    newer = Origin(target="env:dev", desired="other", version="v", state="l/1")
    assert freshness(found, ORIGIN) is Freshness.CURRENT
    assert freshness(found, newer) is Freshness.OWED
    assert freshness(found, None) is freshness(None, ORIGIN) is Freshness.UNKNOWN


def test_a_folder_keeps_versions_and_shows_one_of_them_as_a_whole(tmp_path: Path) -> None:
    shelf = open_inventory_target(tmp_path / "shelf")
    assert shelf.read() is None
    first = render(desired(), FACTS, ORIGIN)
    done = shelf.publish(first)
    assert done.is_new
    assert shelf.publish(first).is_new is False
    second = render(desired(), {**FACTS, VM: Fact(vm_id=777, node="pve-1")}, ORIGIN)
    for _ in range(30):
        shelf.publish(second)
        shelf.publish(first)
    shelf.publish(second)
    read = shelf.read()
    assert read is not None
    assert read.document == second.document
    assert yaml.safe_load(Path(done.where).read_text())["all"]["hosts"]["web-1"]["proxmox_vmid"] == 777
    assert len([name for name in os.listdir(tmp_path / "shelf") if name.isdigit()]) == 20


def test_those_who_publish_at_once_get_a_version_each_that_is_whole(tmp_path: Path) -> None:
    found = [
        render(desired(), {**FACTS, VM: Fact(vm_id=600 + number, node="pve-1")}, ORIGIN)
        for number in range(12)
    ]
    together = threading.Barrier(len(found))

    def publish(number: int) -> None:
        together.wait()
        open_inventory_target(tmp_path).publish(found[number])

    threads = [threading.Thread(target=publish, args=(number,)) for number in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    versions = sorted(name for name in os.listdir(tmp_path) if name.isdigit())
    assert versions == [f"{number:06d}" for number in range(1, 13)]
    ids = set()
    for name in versions:
        vm_id = yaml.safe_load((tmp_path / name / "inventory.yml").read_text())["all"]["hosts"]["web-1"][
            "proxmox_vmid"
        ]
        assert str(vm_id) in (tmp_path / name / "ansible_inventory.json").read_text()
        ids.add(vm_id)
    assert ids == set(range(600, 612))


def test_what_is_half_written_is_never_the_current_one(tmp_path: Path) -> None:
    shelf = open_inventory_target(tmp_path / "shelf")
    shelf.publish(render(desired(), FACTS, ORIGIN))
    # As a run leaves it that was killed between writing a version and naming it.
    half = tmp_path / "shelf" / "000002"
    half.mkdir()
    (half / "ansible_inventory.json").write_text("{")
    read = shelf.read()
    assert read is not None
    assert read.document["vms"]["web-1"]["vmid"] == 500
    assert shelf.publish(render(desired(), {**FACTS, VM: Fact(vm_id=777, node="pve-1")}, ORIGIN)).is_new
