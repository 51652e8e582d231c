"""What a preflight finds on a host, each on a lab in which it is so."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.lab import proxmoxer_client
from tests.support.path import Yard, make_yard
from tests.support.preflight import codes, details, look, with_role

from stackyard import lab
from stackyard.base.errors import ExitStatus
from stackyard.operator.preflight import (
    PreflightError,
    PreflightReport,
    PreflightUnreachableError,
    Purpose,
    Status,
    inspect,
    subject_of,
)
from stackyard.sources.site import ConfigResolver

NODE = {"name": "edge", "type": "vm", "preset": "vm-small", "image": "debian-12", "vmid": 99001}
IMAGE = "local:iso/debian-13-pve.img"
# What the guest of n1-basic needs, and nothing more.
GUEST = (
    *("VM.Allocate", "VM.Audit", "VM.PowerMgmt", "VM.GuestAgent.Audit", "VM.Config.CPU", "VM.Config.Memory"),
    *("VM.Config.Disk", "VM.Config.Network", "VM.Config.HWType", "VM.Config.Options"),
    *("VM.Config.Cloudinit", "VM.Config.CDROM"),
)
ENOUGH = {
    "/vms": GUEST,
    "/storage/local-lvm": ("Datastore.AllocateSpace",),
    "/storage/local": ("Datastore.Audit", "Datastore.Allocate", "Datastore.AllocateTemplate"),
    "/nodes/pve1": ("Sys.AccessNetwork", "Sys.Audit"),
    "/sdn/zones/localnetwork/vmbr0": ("SDN.Use",),
}


@pytest.fixture(autouse=True)
def no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture(scope="module")
def shared() -> Iterator[lab.Running]:
    """A lab that tests only look at."""
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        yield running


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Yard]:
    """A lab that a test may change, and a site for it."""
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        yield make_yard(running, tmp_path / "site")


def manifest(*nodes: dict[str, Any]) -> str:
    return json.dumps({"schema_version": 2, "name": "m", "nodes": [{**NODE, **node} for node in nodes]})


def test_a_host_is_ready_alone_and_with_a_manifest(shared: lab.Running, tmp_path: Path) -> None:
    site = make_yard(shared, tmp_path / "site").folder
    alone, carrying = look(site), look(site, text=manifest({}))
    assert alone.is_ready
    assert carrying.is_ready
    assert alone.exit_status is ExitStatus.DONE
    assert {check.name for check in alone.checks} == {check.name for check in carrying.checks}
    assert {check.status for check in alone.checks} == {Status.OK}
    carrying.raise_errors()


def test_a_host_that_does_not_answer_is_one_finding_and_the_rest_is_still_looked_at(tmp_path: Path) -> None:
    with lab.running(nodes=("pve1",)) as running:
        site = make_yard(running, tmp_path / "site").folder
    report = look(site, text=manifest({}))
    assert codes(report)[0] == "E-PREFLIGHT-API"
    assert len(report.errors) == 1
    by_name = {check.name: check.status for check in report.checks}
    assert by_name["rights"] is Status.SKIPPED
    assert by_name["tools"] is Status.OK
    assert report.exit_status is ExitStatus.UNREACHABLE
    with pytest.raises(PreflightUnreachableError, match="lab is not ready"):
        report.raise_errors()


def test_a_certificate_that_is_not_the_known_one_is_named_with_its_fingerprint(tmp_path: Path) -> None:
    async def looked() -> tuple[PreflightReport, str]:
        # In one loop with the lab, which sees the connection to its end.
        async with lab.start(nodes=("pve1",)) as running:
            other = dataclasses.replace(running, fingerprint=":".join(["AB"] * 32))
            resolver = ConfigResolver(make_yard(other, tmp_path / "site").folder)
            return await inspect(subject_of(resolver, "lab")), running.fingerprint

    report, fingerprint = asyncio.run(looked())
    assert codes(report) == ["E-PREFLIGHT-CERTIFICATE"]
    assert fingerprint in details(report, "E-PREFLIGHT-CERTIFICATE")[0]
    assert report.exit_status is ExitStatus.UNREACHABLE


def test_a_token_that_is_wrong_is_found_and_never_shown(shared: lab.Running, tmp_path: Path) -> None:
    secret = "11111111-2222-3333-4444-555555555555"
    wrong = dataclasses.replace(shared, api_token=f"root@pam!lab={secret}")
    report = look(make_yard(wrong, tmp_path / "site").folder)
    assert codes(report) == ["E-PREFLIGHT-TOKEN"]
    assert report.exit_status is ExitStatus.FAILED
    assert secret not in json.dumps(report.document())


def test_a_host_without_a_token_is_a_finding_among_others(shared: lab.Running, tmp_path: Path) -> None:
    site = make_yard(shared, tmp_path / "site").folder
    node = (site / "nodes" / "lab.yaml").read_text()
    (site / "nodes" / "other.yaml").write_text(node.replace("api_token: lab", "api_token: nobody"))
    (site / "secrets.yaml").unlink()
    report = look(site, host="other")
    assert codes(report) == ["E-PREFLIGHT-SECRET"]
    assert {check.status for check in report.checks if check.name == "api"} == {Status.SKIPPED}


def test_exactly_what_is_needed_is_enough(shared: lab.Running, tmp_path: Path) -> None:
    yard = with_role(shared, tmp_path / "site", ENOUGH, name="exact")
    report = look(yard.folder, text=manifest({}))
    assert details(report, "E-PREFLIGHT-PRIVILEGE") == []
    assert report.is_ready, report.findings


def test_each_missing_privilege_is_named_with_its_path(shared: lab.Running, tmp_path: Path) -> None:
    site = with_role(shared, tmp_path / "site", ENOUGH, name="lacking").folder
    api: Any = proxmoxer_client(shared)
    roles = {path: f"lacking-{number}" for number, path in enumerate(sorted(ENOUGH))}
    for path, privileges in ENOUGH.items():
        for privilege in privileges:
            api.access.roles(roles[path]).put(privs=",".join(p for p in privileges if p != privilege))
            report = look(site, text=manifest({}))
            is_advised = privilege == "Sys.Audit"
            said = details(report, "W-PREFLIGHT-PRIVILEGE" if is_advised else "E-PREFLIGHT-PRIVILEGE")
            where = path if path != "/vms" else "/vms/99001"
            assert [text.partition(";")[0] for text in said] == [f"{privilege} is missing on {where}"]
            assert report.is_ready is is_advised
        api.access.roles(roles[path]).put(privs=",".join(privileges))


def test_a_token_that_may_do_nothing_is_told_everything_at_once(shared: lab.Running, tmp_path: Path) -> None:
    yard = with_role(shared, tmp_path / "site", {"/pool": ("Pool.Audit",)}, name="nothing")
    missing = {text.split()[0] for text in details(look(yard.folder), "E-PREFLIGHT-PRIVILEGE")}
    assert {*GUEST} - {"VM.GuestAgent.Audit"} <= missing
    assert {"Datastore.AllocateSpace", "Datastore.Allocate", "Sys.AccessNetwork"} <= missing


def test_a_pool_gives_what_its_guests_need(own: Yard, tmp_path: Path) -> None:
    proxmoxer_client(own.running).pools.post(poolid="web")
    grants = {**ENOUGH, "/pool/web": GUEST}
    del grants["/vms"]
    yard = with_role(own.running, tmp_path / "pooled", grants)
    text = manifest({"pool": "web"})
    assert details(look(yard.folder, text=text), "E-PREFLIGHT-PRIVILEGE") == []
    assert details(look(yard.folder, text=manifest({})), "E-PREFLIGHT-PRIVILEGE")


def test_a_datastore_without_snippets_is_told_how_to_get_them(own: Yard) -> None:
    proxmoxer_client(own.running).storage("local").put(content="iso,vztmpl,import")
    for report in (look(own.folder), look(own.folder, text=manifest({}))):
        assert codes(report)[0] == "E-PREFLIGHT-CONTENT"
        assert "pvesm set local --content import,iso,vztmpl,snippets" in report.errors[0].detail


def test_datastores_and_bridges_that_are_not_there_are_all_named(own: Yard) -> None:
    node = own.folder / "nodes" / "lab.yaml"
    node.write_text(node.read_text().replace("datastore: local-lvm", "datastore: tank"))
    text = manifest(
        {"nics": [{"bridge": "vmbr7"}]}, {"name": "b", "vmid": 99002, "nics": [{"bridge": "vmbr8"}]}
    )
    report = look(own.folder, text=text)
    assert {"E-GUARD-NO-SUCH-STORAGE", "E-GUARD-NO-SUCH-BRIDGE"} == {e.kind.code for e in report.errors}
    assert len(details(report, "E-GUARD-NO-SUCH-BRIDGE")) == 2
    general = look(own.folder)
    assert "lab has" not in general.summary
    assert details(general, "E-GUARD-NO-SUCH-STORAGE") == [
        "pve1 has no datastore tank; it has local, local-lvm."
    ]


def test_a_datastore_that_is_off_is_found(own: Yard) -> None:
    proxmoxer_client(own.running).storage("local-lvm").put(disable=1)
    report = look(own.folder, text=manifest({}))
    assert "E-PREFLIGHT-STORAGE-OFF" in codes(report) or "E-GUARD-NO-SUCH-STORAGE" in codes(report)
    assert not report.is_ready


def test_what_does_not_fit_into_memory_disks_and_processors_is_found_at_once(own: Yard) -> None:
    text = manifest({"memory": 70000}, {"name": "big", "vmid": 99002, "disk": 100000, "cores": 99})
    report = look(own.folder, text=text)
    assert {error.kind.code for error in report.errors} == {
        "E-GUARD-TOO-MUCH-MEMORY",
        "E-GUARD-TOO-MUCH-STORAGE",
        "E-PREFLIGHT-CPU",
    }
    assert look(own.folder, text=text, purpose=Purpose.DESTROY).is_ready, "to destroy needs no room"


def test_guests_that_are_there_need_no_room_again(own: Yard) -> None:
    proxmoxer_client(own.running).nodes("pve1").qemu.post(vmid=99001, name="edge", memory=512)
    text = manifest({"disk": 100000})
    assert "E-GUARD-TOO-MUCH-STORAGE" not in codes(look(own.folder, text=text))


def test_an_image_that_is_not_there_is_found_before_anything_is_made(own: Yard) -> None:
    text = manifest({"image": IMAGE})
    report = look(own.folder, text=text)
    assert details(report, "E-PREFLIGHT-IMAGE") == [f"edge uses {IMAGE}, which is not on pve1."]
    with pytest.raises(PreflightError) as caught:
        report.raise_errors()
    assert caught.value.diagnostics[0].kind.code == "E-PREFLIGHT-IMAGE"


def test_an_image_that_the_host_cannot_download_is_found(own: Yard) -> None:
    settings = own.folder / "site.yaml"
    # The lab asks only this machine for real, and nothing of it listens there.
    settings.write_text(
        settings.read_text().replace("https://cloud.debian.org/images/cloud/bookworm", "http://127.0.0.1:9")
    )
    report = look(own.folder, text=manifest({}))
    (said,) = details(report, "E-PREFLIGHT-DOWNLOAD")
    assert said.startswith("pve1 cannot download http://127.0.0.1:9/")


@pytest.mark.parametrize(("nested", "is_ready"), [(True, True), (False, False)])
def test_nested_virtualisation_is_read_on_the_host_itself(own: Yard, *, nested: bool, is_ready: bool) -> None:
    world = own.running.world

    def change() -> None:
        with world.store.transaction():
            world.store.put("nodes", "pve1", {**world.cluster.nodes()["pve1"], "nested": nested})

    own.running.on_loop(change)
    report = look(own.folder, text=manifest({"type": "pve"}))
    assert ("E-PREFLIGHT-NESTED" not in codes(report)) is is_ready
    assert "W-PREFLIGHT-CPU-TYPE" not in codes(report), "a node inside a node has the processors of its host"
    slow = look(own.folder, text=manifest({"type": "pve", "cpu": {"type": "kvm64"}}))
    assert "W-PREFLIGHT-CPU-TYPE" in codes(slow)


def test_without_ssh_nested_virtualisation_cannot_be_told_and_snippets_cannot_be_written(
    shared: lab.Running, tmp_path: Path
) -> None:
    site = make_yard(shared, tmp_path / "site").folder
    node = (site / "nodes" / "lab.yaml").read_text()
    (site / "nodes" / "other.yaml").write_text(node)
    for key in (site / ".stackyard").rglob("id_ed25519"):
        key.unlink()
    report = look(site, host="other", text=manifest({"type": "pve"}))
    assert {"E-PREFLIGHT-SSH", "W-PREFLIGHT-NESTED-UNKNOWN"} <= set(codes(report))
    assert "passwords.node_other" in details(report, "E-PREFLIGHT-SSH")[0]
    assert "W-PREFLIGHT-SSH" not in codes(look(site, host="other")), "a host alone needs none"


def test_a_clock_that_is_off_is_a_warning(own: Yard) -> None:
    own.running.on_loop(lambda: own.running.world.clock.advance(3600))
    report = look(own.folder)
    assert report.is_ready
    assert "ahead of that of this machine" in details(report, "W-PREFLIGHT-CLOCK")[0]


def test_a_guest_that_nobody_can_log_in_to_and_one_without_a_way_out_are_warnings(own: Yard) -> None:
    text = manifest({"nics": [{"bridge": "vmbr0", "ipv4": "10.31.0.50/24"}]})
    report = look(own.folder, text=text)
    assert report.is_ready, report.errors
    assert details(report, "W-PREFLIGHT-GATEWAY") == ["edge has a fixed address and no gateway."]


def test_a_node_that_is_not_in_the_cluster_or_offline_is_found(own: Yard) -> None:
    node = own.folder / "nodes" / "lab.yaml"
    text = node.read_text()
    node.write_text(text.replace("node: pve1", "node: pve9"))
    for report in (look(own.folder), look(own.folder, text=manifest({}))):
        assert "E-GUARD-NO-SUCH-NODE" in codes(report)
        assert not report.is_ready


def test_a_host_that_answers_nonsense_is_no_crash(own: Yard) -> None:
    own.running.add_fault("answer", path="/nodes/pve1/dns", status=500, reason="it broke")
    report = look(own.folder)
    assert codes(report) == ["W-PREFLIGHT-UNKNOWN"]
    assert report.is_ready


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ("fe80::be24:11ff:fe3e:1%vmbr0 pve1.home.arpa pve1", True),
        ("169.254.7.1 pve1", True),
        ("10.0.12.61 pve1 # fe80::1", False),
        ("fe80::1 other", False),
    ],
)
def test_a_name_that_leads_to_a_link_local_address_is_found(own: Yard, line: str, is_found: bool) -> None:
    api: Any = proxmoxer_client(own.running)
    api.nodes("pve1").hosts.post(data=f"127.0.0.1 localhost\n{line}\n")
    report = look(own.folder)
    assert ("W-PREFLIGHT-LINK-LOCAL" in codes(report)) is is_found
    assert report.is_ready, "it is a warning"
