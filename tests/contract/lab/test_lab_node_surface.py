"""What nodes of the lab tell and do beside their guests: certificates, packages, logs, figures, consoles."""

from __future__ import annotations

import io
import itertools
import tarfile
from typing import Any

import pytest
from tests.support import lab_lxc
from tests.support.lab import LabClient, Refused
from tests.support.lab_lxc import as_root
from tests.support.lab_qemu import Q, done, failed, make, with_lab

from stackyard import serving
from stackyard.lab.contents import put_file, put_stand_in

N = "/nodes/pve1"
CERTIFICATES = f"{N}/certificates"


def pair(name: str = "web.example.com") -> tuple[str, str]:
    """Return a certificate and its key."""
    made = serving.make_certificate([name])
    return made.certificate_pem.decode(), made.key_pem.decode()


async def names(api: LabClient) -> list[str]:
    """Return the files of a node's certificates."""
    return [row["filename"] for row in await api.get(f"{CERTIFICATES}/info")]


# --- certificates


def test_served_certificate_is_the_one_that_is_listed() -> None:
    async def main(api: LabClient) -> None:
        rows = await api.get(f"{CERTIFICATES}/info")
        assert [row["filename"] for row in rows] == ["pve-root-ca.pem", "pve-ssl.pem"]
        assert rows[1]["fingerprint"] == api.running.fingerprint
        assert rows[1]["notafter"] > rows[1]["notbefore"]

    with_lab(main)


def test_custom_certificate_is_taken_shown_and_removed() -> None:
    async def main(api: LabClient) -> None:
        pem, key = pair()
        shown = await api.post(f"{CERTIFICATES}/custom", certificates=pem, key=key)
        assert (shown["filename"], shown["san"]) == ("pveproxy-ssl.pem", ["web.example.com"])
        assert (await names(api))[-1] == "pveproxy-ssl.pem"
        with pytest.raises(Refused, match="force flag is not set"):
            await api.post(f"{CERTIFICATES}/custom", certificates=pem, key=key)
        await api.post(f"{CERTIFICATES}/custom", certificates=pem, key=key, force=1)
        await api.delete(f"{CERTIFICATES}/custom")
        assert "pveproxy-ssl.pem" not in await names(api)
        await api.delete(f"{CERTIFICATES}/custom")

    with_lab(main)


def test_certificate_and_key_must_belong_together() -> None:
    async def main(api: LabClient) -> None:
        pem, _ = pair()
        _, other = pair()
        with pytest.raises(Refused, match="key does not match the certificate"):
            await api.post(f"{CERTIFICATES}/custom", certificates=pem, key=other)
        with pytest.raises(Refused, match=r"without .existing. key"):
            await api.post(f"{CERTIFICATES}/custom", certificates=pem)
        with pytest.raises(Refused, match="400"):
            await api.post(f"{CERTIFICATES}/custom", certificates="nothing", key=other)

    with_lab(main)


def test_certificate_is_ordered_renewed_and_revoked() -> None:
    async def main(api: LabClient) -> None:
        root, path = await as_root(api), f"{CERTIFICATES}/acme/certificate"
        with pytest.raises(Refused, match="400 ACME domain list in node configuration is missing!"):
            await api.post(path)
        await api.put(f"{N}/config", acme="domains=pve1.example.com")
        assert "account config file 'default' does not exist" in await failed(api, await api.post(path))
        account = {"contact": "a@example.com", "directory": "https://127.0.0.1/directory"}
        await done(api, await root.post("/cluster/acme/account", **account))
        await done(api, await api.post(path))
        [first] = [
            row for row in await api.get(f"{CERTIFICATES}/info") if row["filename"] == "pveproxy-ssl.pem"
        ]
        assert first["san"] == ["pve1.example.com"]
        with pytest.raises(Refused, match="400"):
            await api.post(path)
        with pytest.raises(Refused, match="does not expire within the next 30 days"):
            await api.put(path)
        await done(api, await api.put(path, force=1))
        [second] = [
            row for row in await api.get(f"{CERTIFICATES}/info") if row["filename"] == "pveproxy-ssl.pem"
        ]
        assert second["fingerprint"] != first["fingerprint"]
        await done(api, await api.delete(path))
        assert "pveproxy-ssl.pem" not in await names(api)

    with_lab(main)


# --- packages and subscription


def test_package_lists_are_refused_without_a_subscription_as_real_ones_are() -> None:
    async def main(api: LabClient) -> None:
        assert await api.get(f"{N}/apt/update") == []
        upid = await api.post(f"{N}/apt/update")
        assert await failed(api, upid) == "command 'apt-get update' failed: exit code 100"
        await api.put(f"{N}/subscription", key="pve1c-0123456789")
        await done(api, await api.post(f"{N}/apt/update"))
        newer = await api.get(f"{N}/apt/update")
        assert {row["Package"] for row in newer} == {"libpve-storage-perl", "pve-qemu-kvm"}
        assert all(row["OldVersion"] != row["Version"] for row in newer)
        assert "pve-qemu-kvm" in await api.get(f"{N}/apt/changelog", name="pve-qemu-kvm")
        versions = {row["Package"]: row for row in await api.get(f"{N}/apt/versions")}
        assert versions["pve-manager"]["ManagerVersion"].startswith("pve-manager/")

    with_lab(main)


def test_subscription_is_set_checked_and_removed() -> None:
    async def main(api: LabClient) -> None:
        assert (await api.get(f"{N}/subscription"))["status"] == "notfound"
        with pytest.raises(Refused, match="400"):
            await api.put(f"{N}/subscription", key="nonsense")
        await api.put(f"{N}/subscription", key="pve4p-00000000aa")
        shown = await api.get(f"{N}/subscription")
        assert (shown["status"], shown["level"], shown["key"]) == ("active", "p", "pve4p-00000000aa")
        await api.post(f"{N}/subscription", force=1)
        assert (await api.get("/nodes/pve2/subscription"))["status"] == "notfound"
        await api.delete(f"{N}/subscription")
        assert (await api.get(f"{N}/subscription"))["status"] == "notfound"

    with_lab(main)


# --- logs and figures


def test_journal_tells_what_a_node_did() -> None:
    async def main(api: LabClient) -> None:
        await make(api)
        lines = [row["t"] for row in await api.get(f"{N}/syslog", limit=0)]
        assert any("end task" in line and ":qmcreate:100:" in line and line.endswith("OK") for line in lines)
        assert await api.get(f"{N}/syslog", service="none") == []
        [page] = await api.get(f"{N}/syslog", start=1, limit=1)
        assert page == {"n": 2, "t": lines[1]}
        journal = await api.get(f"{N}/journal", lastentries=2)
        assert len(journal) == 4
        assert await api.get(f"{N}/journal", startcursor=journal[-1]) == ["", ""]

    with_lab(main)


@pytest.mark.parametrize(
    ("path", "field"),
    [
        (N, "memused"),
        (f"{N}/storage/local", "used"),
        (f"{Q}/100", "mem"),
        ("/nodes/pve1/lxc/200", "mem"),
    ],
)
@pytest.mark.parametrize(("frame", "step", "count"), [("hour", 60, 60), ("week", 1800, 336)])
def test_series_are_even_and_the_same_at_the_same_time(
    path: str, field: str, frame: str, step: int, count: int
) -> None:
    async def main(api: LabClient) -> None:
        api.world.clock.hold()
        await make(api)
        await lab_lxc.make(api, 200)
        await done(api, await api.post(f"{Q}/100/status/start"))
        await done(api, await api.post("/nodes/pve1/lxc/200/status/start"))
        api.world.clock.advance(3600)
        series = await api.get(f"{path}/rrddata", timeframe=frame, cf="AVERAGE")
        times = [point["time"] for point in series]
        assert len(times) == count
        assert {later - earlier for earlier, later in itertools.pairwise(times)} == {step}
        assert field in series[-1]
        assert series == await api.get(f"{path}/rrddata", timeframe=frame)
        graph = await api.get(f"{path}/rrd", timeframe=frame, ds=field)
        assert graph["image"].startswith("\x89PNG")
        with pytest.raises(Refused, match="No DS called 'none'"):
            await api.get(f"{path}/rrd", timeframe=frame, ds="none")

    with_lab(main)


def test_stopped_guest_has_no_load_before_its_start() -> None:
    async def main(api: LabClient) -> None:
        await make(api)
        series = await api.get(f"{Q}/100/rrddata", timeframe="hour")
        assert "cpu" not in series[-1]
        assert series[-1]["maxmem"] > 0
        with pytest.raises(Refused, match="500"):
            await api.get(f"{Q}/999/rrddata", timeframe="hour")

    with_lab(main)


def test_report_and_counters_name_the_guests_of_the_node() -> None:
    async def main(api: LabClient) -> None:
        await make(api, name="web", net0="virtio,bridge=vmbr0", cipassword="very-secret")
        await done(api, await api.post(f"{Q}/100/status/start"))
        report = await api.get(f"{N}/report")
        assert "qemu 100 web running" in report
        assert "$5$" not in report
        [counter] = await api.get(f"{N}/netstat")
        assert (counter["vmid"], counter["dev"]) == ("100", "net0")
        assert {"name": "vzdump"} in await api.get(N)

    with_lab(main)


# --- consoles


def test_console_tickets_are_for_one_user_console_and_port() -> None:
    async def main(api: LabClient) -> None:
        await make(api)
        with pytest.raises(Refused, match="VM 100 not running"):
            await api.post(f"{Q}/100/vncproxy")
        await done(api, await api.post(f"{Q}/100/status/start"))
        first = await api.post(f"{Q}/100/vncproxy", websocket=1, generate__password=1)
        second = await api.post(f"{Q}/100/vncproxy")
        assert (first["port"], second["port"]) == (5900, 5901)
        assert "BEGIN CERTIFICATE" in first["cert"]
        assert len(first["password"]) == 8
        tickets = api.world.tickets
        assert tickets.console_fits(first["ticket"], "root@pam!lab", "/vms/100", 5900)
        assert not tickets.console_fits(first["ticket"], "root@pam!lab", "/vms/101", 5900)
        await api.pass_time(11)
        assert await api.done(first["upid"]) == "connection timed out"

    with_lab(main)


def test_terminals_need_something_at_the_other_end() -> None:
    async def main(api: LabClient) -> None:
        await make(api)
        with pytest.raises(Refused, match="unable to find a serial interface"):
            await api.post(f"{Q}/100/termproxy")
        await api.put(f"{Q}/100/config", serial0="socket")
        assert (await api.post(f"{Q}/100/termproxy"))["ticket"].startswith("PVEVNC:")
        with pytest.raises(Refused, match="serial interface 'serial1' is not configured"):
            await api.post(f"{Q}/100/termproxy", serial="serial1")
        await lab_lxc.make(api, 200)
        assert (await api.post("/nodes/pve1/lxc/200/termproxy"))["user"] == "root@pam!lab"
        assert (await api.post("/nodes/pve1/lxc/200/spiceproxy"))["type"] == "spice"
        root = await as_root(api)
        assert (await root.post(f"{N}/termproxy"))["port"] >= 5900
        with pytest.raises(Refused, match="not allowed to run command 'upgrade'"):
            await api.post(f"{N}/vncshell", cmd="upgrade")
        for path in (f"{Q}/100/vncwebsocket", "/nodes/pve1/lxc/200/vncwebsocket"):
            with pytest.raises(Refused, match="501"):
                await api.get(path, port=5900, vncticket="x")

    with_lab(main)


def test_monitor_answers_what_is_known_and_refuses_the_rest() -> None:
    async def main(api: LabClient) -> None:
        await make(api, name="web", scsi0="local-lvm:1")
        path = f"{Q}/100/monitor"
        assert await api.post(path, command="info status") == "ERROR: VM 100 not running\n"
        await done(api, await api.post(f"{Q}/100/status/start"))
        assert await api.post(path, command="info status") == "VM status: running\r\n"
        await api.post(path, command="stop")
        assert (await api.get(f"{Q}/100/status/current"))["qmpstatus"] == "paused"
        assert "local-lvm:vm-100-disk-0" in await api.post(path, command="info block")
        root = await as_root(api)
        assert "unknown command" in await root.post(path, command="device_add x")
        with pytest.raises(Refused, match="limiting to root user"):
            await api.post(path, command="device_add x")
        assert await api.post(f"{Q}/100/dbus-vmstate", action="start") is None

    with_lab(main)


# --- all guests of a node at once


def test_all_guests_go_to_another_node() -> None:
    async def main(api: LabClient) -> None:
        await make(api, 100)
        await make(api, 101)
        await done(api, await api.post(f"{Q}/101/status/start"))
        await lab_lxc.make(api, 200)
        with pytest.raises(Refused, match="'max-workers' parameter or max_workers in"):
            await api.post(f"{N}/migrateall", target="pve2")
        with pytest.raises(Refused, match="target is local node"):
            await api.post(f"{N}/migrateall", target="pve1", maxworkers=1)
        await done(api, await api.post(f"{N}/migrateall", target="pve2", maxworkers=2))
        places = {row["vmid"]: row["node"] for row in await api.get("/cluster/resources", type="vm")}
        assert places == {100: "pve2", 101: "pve2", 200: "pve2"}
        status = await api.get("/nodes/pve2/qemu/101/status/current")
        assert status["status"] == "running"

    with_lab(main)


def test_running_vms_are_suspended_together() -> None:
    async def main(api: LabClient) -> None:
        await make(api, 100, scsi0="local-lvm:1")
        await make(api, 101, scsi0="local-lvm:1")
        await done(api, await api.post(f"{Q}/100/status/start"))
        await done(api, await api.post(f"{N}/suspendall"))
        assert (await api.get(f"{Q}/100/status/current"))["lock"] == "suspended"
        assert "lock" not in await api.get(f"{Q}/101/status/current")
        await api.post("/access/users", userid="ann@pve", password="secret-word")
        ann = await api.with_password("ann@pve", "secret-word")
        for path, params in (("suspendall", {}), ("migrateall", {"target": "pve2", "maxworkers": 1})):
            with pytest.raises(Refused, match="403"):
                await ann.post(f"{N}/{path}", **params)

    with_lab(main)


# --- what a node can do


@pytest.mark.parametrize(
    ("path", "params", "expected"),
    [
        ("capabilities/qemu/cpu", {}, {"name": "host", "custom": 0, "vendor": "default"}),
        ("capabilities/qemu/cpu", {"arch": "aarch64"}, {"name": "cortex-a57", "custom": 0, "vendor": "ARM"}),
        ("capabilities/qemu/machines", {}, {"id": "pc-q35-9.0", "type": "q35", "version": "9.0"}),
        ("capabilities/qemu", {}, {"name": "machines"}),
    ],
)
def test_capabilities_are_listed(path: str, params: dict[str, Any], expected: dict[str, Any]) -> None:
    async def main(api: LabClient) -> None:
        assert expected in await api.get(f"{N}/{path}", **params)

    with_lab(main)


def test_graphics_card_can_be_divided_and_others_cannot() -> None:
    async def main(api: LabClient) -> None:
        kinds = await api.get(f"{N}/hardware/pci/0000:01:00.0/mdev")
        assert kinds[0]["type"] == "nvidia-230"
        assert await api.get(f"{N}/hardware/pci/0000:02:00.0/mdev") == []
        with pytest.raises(Refused, match="500"):
            await api.get(f"{N}/hardware/pci/nothing/mdev")

    with_lab(main)


def test_tags_and_identities_are_told() -> None:
    async def main(api: LabClient) -> None:
        assert "latest" in await api.get(f"{N}/query-oci-repo-tags", reference="library/debian")
        one, other = [await api.get(f"/nodes/{node}/storage/local/identity") for node in ("pve1", "pve2")]
        assert one["type"] == "dir"
        assert one["id"] != other["id"]

    with_lab(main)


# --- appliances

OVF = """<?xml version="1.0"?>
<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1"
 xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData">
 <References><File ovf:id="file1" ovf:href="web-disk1.vmdk"/></References>
 <DiskSection>
  <Disk ovf:capacity="8" ovf:capacityAllocationUnits="byte * 2^30" ovf:fileRef="file1"/>
 </DiskSection>
 <VirtualSystem ovf:id="web 1"><VirtualHardwareSection>
  <Item><rasd:ResourceType>3</rasd:ResourceType><rasd:VirtualQuantity>2</rasd:VirtualQuantity></Item>
  <Item><rasd:AllocationUnits>byte * 2^20</rasd:AllocationUnits><rasd:ResourceType>4</rasd:ResourceType>
   <rasd:VirtualQuantity>4096</rasd:VirtualQuantity></Item>
  <Item><rasd:ResourceSubType>VmxNet3</rasd:ResourceSubType><rasd:ResourceType>10</rasd:ResourceType></Item>
 </VirtualHardwareSection></VirtualSystem>
</Envelope>"""


def test_description_in_an_appliance_becomes_the_arguments_of_a_vm() -> None:
    async def main(api: LabClient) -> None:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            member = tarfile.TarInfo("web.ovf")
            member.size = len(OVF)
            archive.addfile(member, io.BytesIO(OVF.encode()))
        blob = api.world.blobs.put(packed.getvalue())
        with api.world.store.transaction():
            put_file(api.world, "local:import/web.ova", "pve1", blob)
            put_stand_in(api.world, "local:import/plain.qcow2", "pve1", 2**20)
            put_stand_in(api.world, "local:import/none.ova", "pve1", 2**20)
        path = f"{N}/storage/local/import-metadata"
        found = await api.get(path, volume="local:import/web.ova")
        assert found["create-args"] == {"name": "web-1", "cores": 2, "memory": 4096}
        assert found["disks"] == {
            "scsi0": {"volid": "local:import/web.ova/web-disk1.vmdk", "size": 8 * 2**30}
        }
        assert found["net"] == {"net0": {"model": "vmxnet3"}}
        for volume, text in (
            ("local:import/plain.qcow2", "is not an OVA/OVF file"),
            ("local:import/none.ova", "the lab has no bytes of it"),
            ("local:import/absent.ova", "does not exist"),
            ("local:iso/x.iso", "content type needs to be 'import'"),
            ("local-lvm:vm-1-disk-0", "storage ID mismatch"),
        ):
            with pytest.raises(Refused, match=text):
                await api.get(path, volume=volume)

    with_lab(main)
