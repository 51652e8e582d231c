"""Rows of the table of what Proxmox would refuse: what an answer says, and that no answer refuses nothing."""

from __future__ import annotations

from typing import Any

import pytest

from stackyard.desired import Desired
from stackyard.guard import Cluster, Node
from stackyard.guard.facts import (
    PERMISSIONS,
    ApiRead,
    Facts,
    cpu_flags_of,
    machines_of,
    permissions_on,
    volume_info,
)
from stackyard.guard.hardware import find_cpu_flags, find_machines
from stackyard.guard.implied import ImpliedCalls
from stackyard.guard.sources import ask_sizes, find_small_disks

GIB = 2**30
CLUSTER = Cluster(
    nodes=tuple(Node(name=name, memory_bytes=64 * GIB, bridges=frozenset()) for name in ("pve1", "pve2")),
    storages=(),
    guests=(),
)
OLD = [{"id": "pc-q35-9.2", "type": "q35", "version": "9.2"}, {"id": "pc-i440fx-9.2", "type": "i440fx"}]
NEW = [*OLD, {"id": "pc-q35-9.2+pve1", "type": "q35", "version": "9.2+pve1"}]


def implied(*files: dict[str, Any], written: frozenset[str] = frozenset(), **vm: Any) -> ImpliedCalls:
    one = {"key": "web", "name": "web", "node": "pve1", "vm_id": 100, **vm}
    desired = Desired.model_validate({"vms": [one], "files": list(files)})
    return ImpliedCalls(desired=desired, created=frozenset(("web",)), files=written)


def facts(answers: dict[ApiRead, Any]) -> Facts:
    return Facts(cluster=CLUSTER, answers=answers)


@pytest.mark.parametrize(
    ("machine", "rows", "is_refused"),
    [
        ("pc-q35-9.2", OLD, False),
        ("q35", OLD, False),
        ("pc", OLD, False),
        ("type=q35,viommu=intel", OLD, False),
        ("viommu=virtio", OLD, False),
        # A Proxmox that lists no revisions does not say which there are.
        ("pc-q35-9.2+pve1", OLD, False),
        ("pc-q35-9.2+pve1", NEW, False),
        ("pc-q35-9.2+pve0", NEW, False),
        ("pc-i440fx-9.2.pxe", NEW, False),
        ("pc-q35-9.2+pve2", NEW, True),
        ("pc-q35-11.0", OLD, True),
        ("virt", OLD, True),
        ("pc-q35-11.0", None, False),
        ("pc-q35-11.0", [], False),
    ],
)
def test_a_machine_type_is_refused_where_the_node_lists_others_alone(
    machine: str, rows: Any, is_refused: bool
) -> None:
    found = list(find_machines(implied(machine=machine), facts({machines_of("pve1"): rows})))
    assert bool(found) is is_refused


def test_a_proxmox_that_does_not_list_cpu_flags_refuses_none() -> None:
    model = implied(cpu={"flags": ("+aes", "+nonsense")})
    unknown: tuple[dict[ApiRead, Any], ...] = ({}, {cpu_flags_of("pve1"): None}, {cpu_flags_of("pve1"): []})
    for answer in unknown:
        assert list(find_cpu_flags(model, facts(answer))) == []
    (found,) = find_cpu_flags(model, facts({cpu_flags_of("pve1"): [{"name": "aes"}]}))
    assert found.field == ("cpu", "flags", 1)


def test_what_a_path_itself_says_counts_before_what_is_inherited() -> None:
    listed = {"/storage": {"Datastore.Audit": 1}}
    inherited = facts({PERMISSIONS: listed})
    assert inherited.may("/storage/local", "Datastore.Audit") is True
    taken = facts({PERMISSIONS: listed, permissions_on("/storage/local"): {"/storage/local": {}}})
    assert taken.may("/storage/local", "Datastore.Audit") is False
    assert facts({}).may("/storage/local", "Datastore.Audit") is None


@pytest.mark.parametrize(("checksum", "is_refused"), [("ab" * 32, True), (None, False)])
def test_the_size_of_an_image_is_known_from_another_node_that_has_the_same(
    checksum: str | None, is_refused: bool
) -> None:
    image = {
        "kind": "download",
        "content": "import",
        "url": "https://images.test/a.qcow2",
        "checksum": checksum,
    }
    image["checksum_algorithm"] = "sha256" if checksum else None
    model = implied(
        {**image, "key": "image/a@pve1", "node": "pve1"},
        {**image, "key": "image/a@pve2", "node": "pve2"},
        written=frozenset(("image/a@pve1",)),
        disks=[
            {"interface": "scsi0", "datastore": "local-lvm", "size_gib": 3, "file": {"file": "image/a@pve1"}}
        ],
    )
    there = volume_info("pve2", "local:import/a.qcow2")
    assert (there in ask_sizes(model, CLUSTER)) is is_refused
    found = list(find_small_disks(model, facts({there: {"size": 4 * GIB}})))
    assert bool(found) is is_refused
