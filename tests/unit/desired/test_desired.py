"""The model: frozen, hashable, strict, JSON in and out, and what it refuses."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackyard.desired import (
    Container,
    Desired,
    Disk,
    Download,
    Nic,
    Secret,
    Secrets,
    Snippet,
    Subnet,
    Vm,
    problems,
)

FULL: dict[str, Any] = {
    "vms": [
        {
            "key": "web",
            "name": "web",
            "node": "pve1",
            "vm_id": 100,
            "tags": ["b", "a", "b"],
            "cpu": {"cores": 2, "sockets": 1, "type": "host", "numa": True, "flags": ["+aes"]},
            "memory": {"dedicated_mib": 2048, "floating_mib": 1024},
            "numa_nodes": [{"device": "numa0", "cpus": "0-1", "memory_mib": 2048}],
            "bios": "ovmf",
            "efi_disk": {"datastore": "local-lvm"},
            "tpm": {"datastore": "local-lvm"},
            "disks": [
                {"interface": "scsi0", "datastore": "local-lvm", "size_gib": 20, "file": {"file": "debian"}},
                {"interface": "virtio1", "datastore": "local-lvm", "cache": "writeback", "iothread": True},
            ],
            "cdrom": {"file": "local:iso/tools.iso"},
            "nics": [
                {"mac": "02:00:00:aa:bb:cc", "vlan": 20, "ipv4": "192.0.2.10/24", "gateway4": "192.0.2.1"}
            ],
            "cloud_init": {
                "users": [
                    {"name": "ops", "keys": ["ssh-ed25519 AAAA"], "password": {"secret": "passwords.ops"}}
                ],
                "user_data": {"text": ["#cloud-config\npassword: ", {"secret": "passwords.ops"}]},
            },
            "pci_devices": [{"device": "hostpci0", "mapping": "gpu"}],
            "usb_devices": [{"host": "046d:c52b"}],
            "startup": {"order": 3, "up_delay_s": 10},
        }
    ],
    "containers": [
        {
            "key": "dns",
            "name": "dns",
            "node": "pve2",
            "template": {"file": "template"},
            "root_disk": {"datastore": "local-lvm"},
            "mounts": [{"path": "/srv", "volume": "local-lvm", "size_gib": 4}],
            "nics": [{"ipv4": "dhcp", "ipv6": "auto"}],
            "features": {"nesting": True, "mount": ["nfs"]},
            "devices": [{"path": "/dev/dri/renderD128", "gid": 44}],
            "depends_on": ["web"],
        }
    ],
    "files": [
        {
            "kind": "download",
            "key": "debian",
            "node": "pve1",
            "content": "import",
            "url": "https://example.org/a",
        },
        {
            "kind": "download",
            "key": "template",
            "node": "pve2",
            "content": "vztmpl",
            "url": "https://example.org/t",
        },
        {"kind": "snippet", "key": "hook", "node": "pve1", "file_name": "hook.sh", "content": "true"},
    ],
    "pools": [{"name": "prod"}],
    "bridges": [{"node": "pve1", "name": "vmbr1", "ports": ["eno1"], "vlan_aware": True}],
    "vlans": [{"node": "pve1", "name": "vmbr1.20"}],
    "zones": [{"type": "vxlan", "name": "zone1", "peers": ["192.0.2.1", "192.0.2.2"]}],
    "vnets": [{"name": "vnet1", "zone": "zone1", "tag": 100}],
    "subnets": [{"vnet": "vnet1", "cidr": "198.51.100.0/24", "gateway": "198.51.100.1", "snat": True}],
}


def changed(*path: str | int, to: Any) -> dict[str, Any]:
    """Return FULL with one value changed."""

    def change(value: Any, rest: tuple[str | int, ...]) -> Any:
        if not rest:
            return to
        head, *tail = rest
        if isinstance(value, list):
            assert isinstance(head, int)
            copy = list(value) if head < len(value) else [*value, None]
            copy[head] = change(copy[head], tuple(tail))
            return copy
        return {**value, head: change(value.get(head), tuple(tail))}

    result = change(FULL, path)
    assert isinstance(result, dict)
    return result


def texts(document: dict[str, Any]) -> list[str]:
    return [problem.text for problem in problems(Desired.model_validate(document))]


def test_the_whole_model_survives_the_way_through_json() -> None:
    desired = Desired.model_validate(FULL)
    again = Desired.from_json(desired.to_json())
    assert again == desired
    assert hash(again) == hash(desired)
    assert again.digest() == desired.digest()
    assert problems(desired) == ()


def test_two_spellings_of_one_meaning_are_one_value() -> None:
    desired = Desired.model_validate(FULL)
    assert desired.vms[0].tags == ("a", "b")
    assert desired.vms[0].nics[0].mac == "02:00:00:AA:BB:CC"


def test_a_model_cannot_be_changed() -> None:
    desired = Desired.model_validate(FULL)
    with pytest.raises(pydantic.ValidationError):
        desired.vms[0].name = "other"


def test_any_change_changes_the_digest() -> None:
    one = Desired.model_validate(FULL)
    other = Desired.model_validate(changed("vms", 0, "disks", 0, "size_gib", to=21))
    assert one.digest() != other.digest()


@pytest.mark.parametrize(
    ("document", "part"),
    [
        (changed("vms", 0, "cores", to=2), "Extra inputs"),
        (changed("vms", 0, "cpu", "cores", to="2"), "valid integer"),
        (changed("vms", 0, "cpu", "cores", to=True), "valid integer"),
        (changed("vms", 0, "protection", to="yes"), "valid boolean"),
        (changed("vms", 0, "vm_id", to=99), "greater than or equal to 100"),
        (changed("vms", 0, "name", to="under_score"), "match pattern"),
        (changed("vms", 0, "bios", to="seabios"), "needs `bios: ovmf`"),
        (changed("vms", 0, "disks", 1, "interface", to="scsi0"), "more than one drive: scsi0"),
        (changed("vms", 0, "disks", 1, "ssd", to=True), "`ssd` does not exist for virtio"),
        (changed("vms", 0, "memory", "floating_mib", to=4096), "at most `dedicated_mib`"),
        (changed("vms", 0, "nics", 0, "mac", to="01:00:00:00:00:00"), "multicast"),
        (changed("vms", 0, "nics", 0, "ipv4", to="999.1.1.1/24"), "999"),
        (changed("vms", 0, "nics", 0, "ipv4", to="192.0.2.10"), "prefix length"),
        (changed("vms", 0, "nics", 0, "gateway4", to="10.0.0.1"), "outside the network"),
        (changed("vms", 0, "nics", 0, "gateway4", to="192.0.2.10"), "own address"),
        (changed("vms", 0, "nics", 0, "ipv4", to="dhcp"), "belongs to a static"),
        (changed("vms", 0, "pci_devices", 0, "id", to="0000:01:00.0"), "exactly one of"),
        (changed("containers", 0, "template", to=None), "name one"),
        (changed("containers", 0, "root_disk", to=None), "needs its `root_disk`"),
        (changed("containers", 0, "mounts", 0, "size_gib", to=None), "needs a `size_gib`"),
        (changed("files", 0, "checksum", to="00"), "go together"),
        (changed("subnets", 0, "gateway", to="192.0.2.1"), "outside 198.51.100.0/24"),
        (changed("zones", 0, "peers", to=[]), "at least 1 item"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is(document: dict[str, Any], part: str) -> None:
    with pytest.raises(pydantic.ValidationError) as caught:
        Desired.model_validate(document)
    assert part in str(caught.value)
    assert caught.value.errors()[0]["loc"]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (changed("containers", 0, "key", to="web"), "The key web is used twice: by web and by dns."),
        (changed("containers", 0, "vm_id", to=100), "The vm id 100 is used twice: by web and by dns."),
        (
            changed("vms", 0, "disks", 0, "file", "file", to="gone"),
            "web uses the file gone, which is not declared.",
        ),
        (
            changed("containers", 0, "depends_on", to=["nobody"]),
            "dns waits for nobody, which is no guest here.",
        ),
        (changed("vnets", 0, "zone", to="zone2"), "The vnet vnet1 is in zone2, which is no zone here."),
        (
            changed("subnets", 0, "vnet", to="vnet2"),
            "The subnet 198.51.100.0/24 is of vnet2, which is no vnet here.",
        ),
        (
            changed("containers", 0, "nics", 0, to={"vlan": 20, "ipv4": "192.0.2.10/24"}),
            "The address 192.0.2.10 is used twice: by web and by dns.",
        ),
        (
            changed("containers", 0, "nics", 0, "mac", to="02:00:00:AA:BB:CC"),
            "The MAC address 02:00:00:AA:BB:CC is used twice: by web and by dns.",
        ),
        (changed("vms", 0, "depends_on", to=["dns"]), "These wait for each other: web -> dns -> web."),
        (changed("vms", 0, "depends_on", to=["web"]), "These wait for each other: web -> web."),
        (
            changed("affinities", to=[{"name": "apart", "guests": ["web", "nobody"]}]),
            "The rule apart is for nobody, which is no guest here.",
        ),
        (
            changed("affinities", to=[{"name": "apart", "guests": ["web", "dns"]}]),
            "The rule apart is for dns, which is not under high availability.",
        ),
    ],
)
def test_contradictions_between_parts_are_found(document: dict[str, Any], expected: str) -> None:
    assert expected in texts(document)


def test_the_same_address_on_two_networks_is_no_contradiction() -> None:
    assert texts(changed("containers", 0, "nics", 0, to={"vlan": 21, "ipv4": "192.0.2.10/24"})) == []


def test_long_chains_and_diamonds_are_no_cycle() -> None:
    plain = {"name": "x", "node": "pve1"}
    chain = [{**plain, "key": f"k{n}", "depends_on": [f"k{n - 1}"] if n else []} for n in range(3000)]
    diamond = [
        {**plain, "key": "top", "depends_on": ["left", "right"]},
        {**plain, "key": "left", "depends_on": ["bottom"]},
        {**plain, "key": "right", "depends_on": ["bottom"]},
        {**plain, "key": "bottom"},
    ]
    assert texts({"vms": chain}) == []
    assert texts({"vms": diamond}) == []


def test_nothing_at_all_is_empty() -> None:
    assert Desired().is_empty
    assert not Desired.model_validate({"pools": [{"name": "a"}]}).is_empty


def test_secrets_show_no_value_and_mask_it_in_texts() -> None:
    secrets = Secrets({"passwords.ops": "correct horse battery"})
    assert "horse" not in repr(secrets)
    assert secrets.reveal(Secret(secret="passwords.ops")) == "correct horse battery"
    assert "horse" not in secrets.redactor()("it is correct horse battery, he said")


WORDS = ["vms", "containers", "files", "key", "name", "node", "nics", "kind", "zones", "type"]
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
)


@given(DOCUMENTS)
def test_any_document_is_read_or_refused_with_places(document: Any) -> None:
    found: list[Any] = []
    try:
        desired = Desired.model_validate(document)
    except pydantic.ValidationError as err:
        found = err.errors()
        desired = None
    if desired is None:
        assert found
    else:
        assert Desired.from_json(desired.to_json()) == desired


def test_the_parts_are_values_of_their_own() -> None:
    disk = Disk(interface="scsi0", datastore="local-lvm")
    vm = Vm(key="a", name="a", node="pve1", disks=(disk,), nics=(Nic(),))
    assert {vm, vm.model_copy()} == {vm}
    assert Container(
        key="c",
        name="c",
        node="pve1",
        template="local:vztmpl/x.tar.zst",
        root_disk={"datastore": "local"},  # type: ignore[arg-type]
    ).unprivileged
    assert Snippet(kind="snippet", key="s", node="n", file_name="a.yaml", content="x").datastore == "local"
    assert Subnet(vnet="v1", cidr="10.0.0.0/8").snat is False
    assert Download(kind="download", key="d", node="n", content="iso", url="https://example.org/x").verify_tls


def test_a_user_without_a_name_is_the_images_own_and_has_keys_alone() -> None:
    base = {"key": "a", "name": "a", "node": "pve1"}
    one = Vm.model_validate({**base, "cloud_init": {"users": [{"keys": ["ssh-ed25519 AAAA x"]}]}})
    assert one.cloud_init is not None
    assert one.cloud_init.users[0].name is None
    for cloud_init in (
        {"users": [{"sudo": True}]},
        {"users": [{}, {"name": "b"}]},
        {"users": [{}], "packages": ["curl"]},
    ):
        with pytest.raises(pydantic.ValidationError, match="name"):
            Vm.model_validate({**base, "cloud_init": cloud_init})


def test_only_an_imported_container_needs_no_beginning() -> None:
    base = {"key": "a", "name": "a", "node": "pve1", "root_disk": {"datastore": "local"}}
    assert Container.model_validate({**base, "imported": True}).template is None
    with pytest.raises(pydantic.ValidationError, match="name one"):
        Container.model_validate(base)
