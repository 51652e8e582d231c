"""What Proxmox would refuse is known before the first change: each row of the guard's table, both ways."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import real_engine
from tests.support.lab import proxmoxer_client
from tests.support.path import Yard, make_yard

from pvelab.world.storage.contents import put_stand_in
from stackyard import lab
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

IMAGE = "local:import/big.qcow2"
WEB: dict[str, Any] = {"name": "web", "vmid": 500, "cores": 1, "memory": 512, "disk": 4, "image": IMAGE}
DNS: dict[str, Any] = {"name": "dns", "vmid": 501, "type": "ct", "cores": 1, "memory": 512, "disk": 4}


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    with lab.running(nodes=("pve1", "pve2"), ssh_port=0) as running:
        put(running, IMAGE)
        yield make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(real_engine(Flavour.TOFU).path))


def put(running: lab.Running, volume: str) -> None:
    """Put an image of 400 MiB with a disk of 3.5 GiB inside, or any other file, onto a node."""
    world = running.world

    def write() -> None:
        with world.store.transaction():
            put_stand_in(world, volume, "pve1", 400 * 2**20)

    running.on_loop(write)


def refusals(yard: Yard, *guests: dict[str, Any]) -> list[dict[str, Any]]:
    """Plan an env of these guests; return what the guard refuses of it."""
    yard.write_env("t", list(guests))
    ended = yard.run("plan", "t", "--json", status=None)
    found: list[dict[str, Any]] = ended.document["guard"]["refused"]
    assert ended.status == (3 if found else 0), ended.document
    return found


def line_of(yard: Yard, text: str, file: str = "envs/t.yaml") -> int:
    lines = (yard.folder / file).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_a_hundred_disks_that_are_smaller_than_their_image_are_refused_before_anything_is_made(
    yard: Yard,
) -> None:
    guests = [{**WEB, "name": f"web{n}", "vmid": 500 + n, "disk": 3} for n in range(100)]
    found = refusals(yard, *guests)
    assert [one["code"] for one in found] == ["E-GUARD-DISK-TOO-SMALL"] * 100
    assert found[0]["detail"] == f"web0 has a disk of 3 GiB, and its image {IMAGE} has 3.5 GiB."
    assert {one["where"]["file"] for one in found} == {"envs/t.yaml"}
    assert found[0]["where"]["line"] == line_of(yard, "disk: 3")
    assert yard.guests() == {}


def test_a_disk_that_is_smaller_than_an_image_which_is_downloaded_first_makes_no_guest(yard: Yard) -> None:
    yard.write_env("t", [{**WEB, "image": "debian-12", "disk": 3}])
    yard.run("plan", "t")
    error = yard.json("apply", "t", status=1)["error"]
    (found,) = (one for one in error["diagnostics"] if "image" in one["detail"])
    assert "Disk scsi0 has 3 GiB, and its image local:import/debian-12.qcow2 has 3.5 GiB" in found["detail"]
    assert (found["where"]["file"], found["where"]["line"]) == ("envs/t.yaml", line_of(yard, "- name: web"))
    assert yard.guests() == {}
    # The image is there now: the next plan knows.
    assert [one["code"] for one in refusals(yard, {**WEB, "image": "debian-12", "disk": 3})] == [
        "E-GUARD-DISK-TOO-SMALL"
    ]


def test_a_plan_that_is_refused_is_shown_whole_and_saved_and_ends_with_3(yard: Yard) -> None:
    assert refusals(yard, {**WEB, "disk": 3})
    ended = yard.run("plan", "t", "--json", "--detailed-exitcode", "--out", "t.plan", status=3)
    assert [change["action"] for change in ended.document["changes"]].count("create") >= 1
    assert (yard.folder / "t.plan").is_file()
    assert "envs/t.yaml:" in yard.run("plan", "t", status=3).stdout
    assert yard.codes("apply", "t", "--plan", "t.plan") == ["E-GUARD-DISK-TOO-SMALL"]
    assert yard.guests() == {}
    # What drifted is another question, and is answered as before.
    yard.run("drift", "t")
    assert refusals(yard, WEB) == []
    yard.run("plan", "t", "--detailed-exitcode", status=2)


# What a guest is made from, the field that says so, and what is said of it.
MISSING: list[tuple[dict[str, Any], str, str]] = [
    ({**WEB, "image": "local:import/bug.qcow2"}, "image:", f"There is {IMAGE}."),
    ({**WEB, "image": "tank:import/big.qcow2"}, "image:", "that pve1 does not have"),
    ({**DNS, "image": "local:vztmpl/gone.tar.zst"}, "image:", "is not on pve1"),
    ({**WEB, "cloud_init": {"user_data": "local:snippets/gone.yaml"}}, "user_data:", "is not on pve1"),
    ({**WEB, "cdrom": {"file": "local:iso/gone.iso"}}, "file:", "is not on pve1"),
    ({**WEB, "image": None, "disk": None, "clone": {"vm_id": 900}}, "clone:", "900, which is not there"),
]


def numbered(guests: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return guests that can be in one env: each with its own name and number."""
    return [{**guest, "name": f"{guest['name']}-{n}", "vmid": 500 + n} for n, guest in enumerate(guests)]


def lines_of(yard: Yard, guest: dict[str, Any]) -> range:
    """Return the lines at which a guest is described."""
    text = (yard.folder / "envs/t.yaml").read_text().splitlines()
    first = line_of(yard, f"- name: {guest['name']}")
    later = (number for number, line in enumerate(text, 1) if number > first and "- name: " in line)
    return range(first, next(later, len(text) + 1))


def said_of(yard: Yard, guest: dict[str, Any], found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what was found at the lines of a guest."""
    assert {one["where"]["file"] for one in found} == {"envs/t.yaml"}
    return [one for one in found if one["where"]["line"] in lines_of(yard, guest)]


def test_what_a_guest_is_made_from_and_is_missing_is_refused_at_its_line(yard: Yard) -> None:
    guests = numbered(
        {key: value for key, value in guest.items() if value is not None} for guest, _, _ in MISSING
    )
    found = refusals(yard, *guests)
    assert [one["code"] for one in found] == ["E-PREFLIGHT-IMAGE"] * len(MISSING)
    text = (yard.folder / "envs/t.yaml").read_text().splitlines()
    for guest, (_, field, said) in zip(guests, MISSING, strict=True):
        (one,) = said_of(yard, guest, found)
        assert said in one["detail"]
        line = one["where"]["line"]
        assert any(field in text[number - 1] for number in (line, line - 1)), (field, one)
    report = yard.run("preflight", "env:t", "--json", status=1).document
    places = sorted((one["detail"], one["where"]["line"]) for one in found)
    assert sorted((one["detail"], one["where"]["line"]) for one in report["errors"]) == places


def test_what_a_guest_is_made_from_and_is_there_passes(yard: Yard) -> None:
    for volume in ("local:vztmpl/base.tar.zst", "local:snippets/user.yaml", "local:iso/tools.iso"):
        put(yard.running, volume)
    proxmoxer_client(yard.running).nodes("pve1").qemu.post(vmid=900, scsi0="local-lvm:2")
    data = {"user_data": "local:snippets/user.yaml"}
    assert (
        refusals(
            yard,
            {**WEB, "cloud_init": data, "cdrom": {"file": "local:iso/tools.iso"}},
            {**DNS, "image": "local:vztmpl/base.tar.zst"},
            {"name": "copy", "vmid": 502, "memory": 512, "cores": 1, "clone": {"vm_id": 900}},
        )
        == []
    )


def test_a_clone_is_refused_that_is_smaller_than_its_source_or_whose_source_is_elsewhere(yard: Yard) -> None:
    api: Any = proxmoxer_client(yard.running)
    api.nodes("pve1").qemu.post(vmid=900, scsi0="local-lvm:8")
    api.nodes("pve2").qemu.post(vmid=901, scsi0="local-lvm:8")
    copy = {"name": "copy", "vmid": 502, "memory": 512, "cores": 1}
    disks = [{"interface": "scsi0", "size_gib": 4}]
    (small,) = refusals(yard, {**copy, "clone": {"vm_id": 900}, "disks": disks})
    assert small["code"] == "E-GUARD-DISK-TOO-SMALL"
    assert "whose scsi0 has 8.0 GiB; 4 is less" in small["detail"]
    (elsewhere,) = refusals(yard, {**copy, "clone": {"vm_id": 901}})
    assert "which is on pve2, and the input says pve1" in elsewhere["detail"]
    assert refusals(yard, {**copy, "clone": {"vm_id": 901, "node": "pve2"}}) == []


def test_a_plan_that_changes_nothing_asks_for_nothing_more(yard: Yard) -> None:
    yard.write_env("t", [WEB])
    yard.run("apply", "t", "--no-verify")
    before = calls(yard)
    yard.run("plan", "t")
    more = calls(yard)[len(before) :]
    asked = re.compile(r"/content/|/capabilities/|/hardware/|/mapping/|query-url")
    assert [call for call in more if asked.search(call)] == []
    # One for the snippet of the guest: whether the token would see it.
    assert more.count("GET /access/permissions") == 1


def calls(yard: Yard) -> list[str]:
    """Return the paths that were asked for so far."""
    world = yard.running.world
    return [f"{one.method} {one.path}" for one in yard.running.on_loop(lambda: list(world.journal.entries()))]


def weaken(yard: Yard, grants: dict[str, str]) -> Yard:
    """Return another site that uses a token with privilege separation whose user is an administrator."""
    api: Any = proxmoxer_client(yard.running)
    api.access.users.post(userid="ops@pve")
    api.access.acl.put(path="/", users="ops@pve", roles="Administrator")
    made = api.access.users("ops@pve").token("ci").post(privsep=1)
    for path, role in grants.items():
        api.access.acl.put(path=path, tokens="ops@pve!ci", roles=role)
    weaker = dataclasses.replace(yard.running, api_token=f"ops@pve!ci={made['value']}")
    return make_yard(weaker, yard.folder.parent / "weaker", **yard.env)


def test_a_token_with_privilege_separation_is_told_what_it_lacks_and_how_to_grant_it(yard: Yard) -> None:
    yard = weaken(yard, {})
    found = refusals(yard, WEB)
    assert {one["code"] for one in found} == {"E-PREFLIGHT-PRIVILEGE"}
    said = {one["detail"].split()[0]: one["detail"] for one in found}
    assert {"SDN.Use", "VM.Allocate", "VM.Config.Disk", "Datastore.AllocateSpace"} <= said.keys()
    assert said["SDN.Use"] == (
        "SDN.Use is missing on /sdn/zones/localnetwork/vmbr0; it is needed for the network card of web. "
        "The token ops@pve!ci does not have it: pveum acl modify /sdn/zones/localnetwork/vmbr0 --tokens "
        "'ops@pve!ci' --roles PVESDNUser"
    )
    assert not any("which has none" in one["detail"] for one in found)
    assert {one["where"]["file"] for one in found if one["where"]} == {"envs/t.yaml"}
    report = yard.run("preflight", "env:t", "--json", status=1).document
    assert said["SDN.Use"] in [one["detail"] for one in report["errors"]]


def test_a_token_with_the_roles_that_the_refusals_name_plans_and_applies(yard: Yard) -> None:
    yard = weaken(
        yard,
        {
            "/vms": "PVEVMAdmin",
            "/storage": "PVEDatastoreAdmin",
            "/sdn/zones/localnetwork": "PVESDNUser",
            "/nodes/pve1": "PVEAuditor",
        },
    )
    assert refusals(yard, WEB) == []
    yard.run("apply", "t", "--no-verify")
    # A change needs what its attributes need: the token has lost everything but that.
    api: Any = proxmoxer_client(yard.running)
    api.access.roles.post(roleid="tagger", privs="VM.Audit,VM.Config.Options")
    api.access.acl.put(path="/vms", tokens="ops@pve!ci", roles="PVEVMAdmin", delete=1)
    api.access.acl.put(path="/vms", tokens="ops@pve!ci", roles="tagger")
    assert refusals(yard, {**WEB, "tags": ["blue"]}) == []
    found = refusals(yard, {**WEB, "tags": ["blue"], "memory": 1024})
    assert [one["detail"].split()[0] for one in found if one["code"] == "E-PREFLIGHT-PRIVILEGE"] == [
        "VM.Config.Memory"
    ]


ROOT_ONLY: list[tuple[dict[str, Any], str]] = [
    ({**DNS, "features": {"keyctl": True}}, "the features keyctl"),
    ({**DNS, "unprivileged": False, "features": {"nesting": True}}, "features and is privileged"),
    ({**DNS, "devices": [{"path": "/dev/net/tun"}]}, "the device /dev/net/tun"),
    ({**DNS, "mounts": [{"path": "/srv", "volume": "/tank/srv"}]}, "the folder /tank/srv"),
    ({**WEB, "pci_devices": [{"device": "hostpci0", "id": "0000:01:00.0"}]}, "the PCI device"),
    ({**WEB, "usb_devices": [{"host": "046d:c52b"}]}, "the USB device 046d:c52b without a mapping"),
    ({**WEB, "usb_devices": [{"mapping": "stick"}, {"host": "1-2"}]}, "the USB device 1-2"),
    ({**WEB, "kvm_arguments": "-cpu host"}, "arguments for KVM"),
]


def test_what_root_alone_may_set_is_refused_to_a_token(yard: Yard) -> None:
    put(yard.running, "local:vztmpl/base.tar.zst")
    api: Any = proxmoxer_client(yard.running)
    api.cluster.mapping.usb.post(id="stick", map=["node=pve1,id=046d:c52b"])
    template = {"image": "local:vztmpl/base.tar.zst"}
    guests = numbered({**guest, **(template if guest["name"] == "dns" else {})} for guest, _ in ROOT_ONLY)
    found = refusals(yard, *guests)
    assert [one["code"] for one in found] == ["E-GUARD-ROOT-ONLY"] * len(ROOT_ONLY)
    for guest, (_, said) in zip(guests, ROOT_ONLY, strict=True):
        (one,) = said_of(yard, guest, found)
        assert said in one["detail"]
    error = yard.json("apply", "t", "--no-verify", status=1)["error"]
    assert error["code"] == "E-GUARD-REFUSED"
    assert yard.guests() == {}


def test_features_that_a_token_may_set_pass(yard: Yard) -> None:
    put(yard.running, "local:vztmpl/base.tar.zst")
    assert refusals(yard, {**DNS, "image": "local:vztmpl/base.tar.zst", "features": {"nesting": True}}) == []
    yard.run("apply", "t", "--no-verify")


LACKING: list[tuple[dict[str, Any], str, str]] = [
    ({"cores": 99}, "E-PREFLIGHT-CPU", "web has 99 processors, and pve1 has"),
    ({"cpu": {"type": "Pentium9"}}, "E-GUARD-NO-SUCH-CPU", "Pentium9, which pve1 does not know"),
    (
        {"pci_devices": [{"device": "hostpci0", "mapping": "gpu"}]},
        "E-GUARD-NO-SUCH-DEVICE",
        "the PCI mapping gpu, which does not exist; there is card.",
    ),
    (
        {"pci_devices": [{"device": "hostpci0", "mapping": "card"}]},
        "E-GUARD-NO-SUCH-DEVICE",
        "the PCI mapping card, which has no device of pve1.",
    ),
    (
        {"usb_devices": [{"mapping": "printer"}]},
        "E-GUARD-NO-SUCH-DEVICE",
        "the USB mapping printer, which does not exist; there is stick.",
    ),
    (
        {"usb_devices": [{"mapping": "stick"}]},
        "E-GUARD-NO-SUCH-DEVICE",
        "the USB mapping stick, which has no device of pve1.",
    ),
    (
        {"machine": "pc-q35-9.7"},
        "E-GUARD-NO-SUCH-MACHINE",
        "pc-q35-9.7, which pve1 does not have. There is pc-q35-9.",
    ),
    ({"machine": "q36"}, "E-GUARD-NO-SUCH-MACHINE", "machine type q36, which pve1"),
    ({"machine": "pc-q35-9.2+pve7"}, "E-GUARD-NO-SUCH-MACHINE", "type pc-q35-9.2+pve7, which"),
    ({"machine": "virt"}, "E-GUARD-NO-SUCH-MACHINE", "type virt, which pve1"),
    (
        {"cpu": {"flags": ["+aes", "+avx512f"]}},
        "E-GUARD-NO-SUCH-CPU-FLAG",
        "the CPU flag +avx512f; pve1 lets guests set aes, ",
    ),
    (
        {"disks": [{"interface": "scsi0", "datastore": "isos"}]},
        "E-PREFLIGHT-CONTENT",
        "isos on pve1 takes iso",
    ),
]


def test_hardware_and_contents_that_a_node_does_not_have_are_refused(yard: Yard) -> None:
    api: Any = proxmoxer_client(yard.running)
    entry = "node=pve2,path=0000:01:00.0,id=10de:1eb8,iommugroup=12"
    api.cluster.mapping.pci.post(id="card", map=[entry])
    api.cluster.mapping.usb.post(id="stick", map=["node=pve2,id=046d:c52b"])
    api.storage.post(storage="isos", type="dir", path="/srv/isos", content="iso")
    bare = {key: value for key, value in WEB.items() if key not in ("disk", "image")}
    # Devices that are not there end a plan before what the nodes are asked about the guests.
    devices = [row for row in LACKING if row[1] == "E-GUARD-NO-SUCH-DEVICE"]
    for rows in (devices, [row for row in LACKING if row not in devices]):
        guests = numbered({**(bare if "disks" in change else WEB), **change} for change, _, _ in rows)
        found = refusals(yard, *guests)
        for guest, (_, code, said) in zip(guests, rows, strict=True):
            about = [one for one in said_of(yard, guest, found) if one["code"] == code]
            assert len(about) == 1, (guest, found)
            assert said.replace("web has", f"{guest['name']} has") in about[0]["detail"]


def test_hardware_that_a_node_has_passes(yard: Yard) -> None:
    api: Any = proxmoxer_client(yard.running)
    entry = "node=pve1,path=0000:01:00.0,id=10de:1eb8,iommugroup=12,subsystem-id=10de:0001"
    api.cluster.mapping.pci.post(id="card", map=[entry])
    api.cluster.qemu("custom-cpu-models").post(**{"cputype": "fast", "reported-model": "kvm64"})
    api.cluster.mapping.usb.post(id="stick", map=["node=pve1,id=046d:c52b"])
    guest = {**WEB, "cores": 4, "cpu": {"type": "custom-fast", "flags": ["+aes", "-pcid"]}}
    guest["usb_devices"] = [{"mapping": "stick"}, {"host": "spice"}]
    guest["pci_devices"] = [{"device": "hostpci0", "mapping": "card"}]
    assert refusals(yard, guest) == []
    for machine in ("q35", "pc", "pc-q35-9.2+pve1", "pc-i440fx-8.1.pxe", "q35,viommu=virtio"):
        assert refusals(yard, {**guest, "machine": machine}) == []


def test_an_import_says_what_an_apply_to_its_guests_would_meet(yard: Yard) -> None:
    api: Any = proxmoxer_client(yard.running)
    api.nodes("pve1").qemu.post(
        vmid=700, name="old", memory=512, scsi0="local-lvm:2", net0="virtio,bridge=vmbr0"
    )
    assert yard.json("import", "env:home", "-H", "lab", "--dry-run", "--filter", "old")["foreseen"] == []
    yard = weaken(yard, {"/vms": "PVEAuditor", "/storage": "PVEDatastoreUser", "/nodes/pve1": "PVEAuditor"})
    found = yard.json("import", "env:home", "-H", "lab", "--filter", "old")["foreseen"]
    lacking = {one["detail"].split()[0] for one in found if one["code"] == "E-PREFLIGHT-PRIVILEGE"}
    assert {"VM.Config.CPU", "VM.PowerMgmt", "SDN.Use"} <= lacking
    assert "VM.Audit" not in lacking
    assert found[0]["where"]["file"] == "envs/home.yaml"


def test_memory_may_be_promised_up_to_the_limit_of_the_site(yard: Yard) -> None:
    guests = [{**WEB, "name": f"web{n}", "vmid": 500 + n, "memory": 40 * 1024} for n in range(3)]
    template = {**WEB, "name": "base", "vmid": 510, "memory": 60 * 1024, "is_template": True}
    stopped = {**WEB, "name": "off", "vmid": 511, "memory": 60 * 1024, "started": False}
    yard.write_env("t", [*guests, template, stopped])
    warned = yard.json("plan", "t")["guard"]["warnings"]
    assert [one["code"] for one in warned] == ["W-GUARD-OVERCOMMITS-MEMORY"]
    assert "may use 120.0 GiB" in warned[0]["detail"]
    settings = yard.folder / "site.yaml"
    text = settings.read_text()
    limited = text.replace("defaults:\n", "defaults:\n  overcommit: {memory: 1.5}\n", 1)
    assert limited != text
    settings.write_text(limited)
    (found,) = refusals(yard, *guests)
    assert found["code"] == "E-GUARD-TOO-MUCH-MEMORY"
    assert "the site allows 1.5 times that" in found["detail"]
    assert refusals(yard, *guests[:2]) == []
    yard.run("apply", "t", "--no-verify")
    settings.write_text(text.replace("defaults:\n", "defaults:\n  overcommit: {memory: 1}\n", 1))
    # They need no more than before.
    assert refusals(yard, *({**guest, "tags": ["blue"]} for guest in guests[:2])) == []


def test_a_usb_device_that_root_gave_to_a_guest_is_removed_by_root_alone(yard: Yard) -> None:
    yard.write_env("t", [WEB])
    yard.run("apply", "t", "--no-verify")
    api: Any = proxmoxer_client(yard.running)

    def give() -> None:
        world = yard.running.world
        with world.store.transaction():
            guest = world.guests.get(500)
            assert guest is not None
            world.guests.update(guest, config={**guest["config"], "usb0": "host=046d:c52b"})

    yard.running.on_loop(give)
    assert api.nodes("pve1").qemu(500).config.get()["usb0"] == "host=046d:c52b"
    (found,) = (one for one in refusals(yard, WEB) if one["code"] == "E-GUARD-ROOT-ONLY")
    assert "web has the USB device 046d:c52b without a mapping now" in found["detail"]
    assert found["where"]["line"] == line_of(yard, "- name: web")


def test_room_may_be_promised_up_to_the_limit_of_the_site(yard: Yard) -> None:
    api: Any = proxmoxer_client(yard.running)
    total = api.nodes("pve1").storage("local-lvm").status.get()["total"] // 2**30
    guests = [{**WEB, "name": f"web{n}", "vmid": 500 + n, "disk": total + 10} for n in range(2)]
    settings = yard.folder / "site.yaml"
    text = settings.read_text()

    def limit(times: float) -> None:
        settings.write_text(
            text.replace("defaults:\n", f"defaults:\n  overcommit: {{storage: {times}}}\n", 1)
        )

    limit(3)
    yard.write_env("t", guests)
    guard = yard.json("plan", "t")["guard"]
    assert (guard["refused"], [one["code"] for one in guard["warnings"]]) == (
        [],
        ["W-GUARD-OVERCOMMITS-STORAGE"],
    )
    limit(2)
    (found,) = refusals(yard, *guests)
    assert found["code"] == "E-GUARD-TOO-MUCH-STORAGE"
    assert (found["where"]["file"], found["where"]["line"]) == ("envs/t.yaml", line_of(yard, "disk: "))
    limit(3)
    yard.run("apply", "t", "--no-verify")
    # They need no more than before, also where one is made again.
    limit(1)
    assert refusals(yard, *({**guest, "tags": ["blue"]} for guest in guests)) == []
    again = yard.run("plan", "t", "--recreate", "web0", "--allow-destroy", "web0", "--json")
    assert [one["code"] for one in again.document["guard"]["refused"]] == []


ENOUGH = {
    "/vms": "PVEVMAdmin",
    "/storage": "PVEDatastoreAdmin",
    "/sdn/zones/localnetwork": "PVESDNUser",
    "/nodes/pve1": "PVEAuditor",
}


@pytest.mark.parametrize(
    ("path", "lacking"),
    [
        ("/storage/local-lvm", "Datastore.AllocateSpace"),
        ("/sdn/zones/localnetwork/vmbr0", "SDN.Use"),
        ("/vms/500", "VM.Allocate"),
    ],
)
def test_a_role_that_takes_away_on_a_deeper_path_is_foreseen(yard: Yard, path: str, lacking: str) -> None:
    yard = weaken(yard, ENOUGH)
    assert refusals(yard, WEB) == []
    api: Any = proxmoxer_client(yard.running)
    # Proxmox leaves such a path out of the list of what a token may do, as one without an own entry.
    api.access.acl.put(path=path, tokens="ops@pve!ci", roles="NoAccess")
    found = refusals(yard, WEB)
    assert {one["code"] for one in found} == {"E-PREFLIGHT-PRIVILEGE"}, found
    (said,) = (one for one in found if one["detail"].startswith(f"{lacking} is missing on {path};"))
    assert (said["where"]["file"], said["where"]["line"]) == ("envs/t.yaml", line_of(yard, "- name: web"))
    report = yard.run("preflight", "env:t", "--json", status=1).document
    assert said["detail"] in [one["detail"] for one in report["errors"]]
    assert yard.json("apply", "t", "--no-verify", status=1)["error"]["code"] == "E-GUARD-REFUSED"
    api.access.acl.put(path=path, tokens="ops@pve!ci", roles="NoAccess", delete=1)
    assert refusals(yard, WEB) == []


def test_files_are_removed_by_a_token_that_may_administrate_their_datastore(yard: Yard) -> None:
    put(yard.running, "local:vztmpl/base.tar.zst")
    yard = weaken(yard, {**ENOUGH, "/nodes/pve1": "Administrator"})
    other = {**DNS, "name": "other", "vmid": 502, "image": "local:vztmpl/base.tar.zst"}
    yard.write_env("t", [{**DNS, "image": "debian-13-ct"}, other])
    yard.run("apply", "t", "--no-verify")
    # What writes files is not enough to remove one, which is what the end of their last guest does.
    api: Any = proxmoxer_client(yard.running)
    privileges = "Datastore.Audit,Datastore.AllocateSpace,Datastore.AllocateTemplate"
    api.access.roles.post(roleid="writer", privs=privileges)
    api.access.acl.put(path="/storage/local", tokens="ops@pve!ci", roles="writer")
    yard.write_env("t", [other])
    allowed = ("--allow-destroy", "dns", "--allow-destroy", "t-debian-13-ct.tar.zst")
    (found,) = yard.run("plan", "t", *allowed, "--json", status=3).document["guard"]["refused"]
    assert found["code"] == "E-PREFLIGHT-PRIVILEGE"
    said = "Datastore.Allocate is missing on /storage/local; it is needed for the removal of t-debian-13-ct"
    assert found["detail"].startswith(said)
    line = line_of(yard, "  debian-13-ct:", "site.yaml")
    assert (found["where"]["file"], found["where"]["line"]) in (("site.yaml", line), ("site.yaml", line + 1))
    api.access.acl.put(path="/storage/local", tokens="ops@pve!ci", roles="writer", delete=1)
    yard.run("apply", "t", *allowed, "--no-verify")
    assert [guest["vmid"] for guest in yard.guests().values()] == [502]
