"""What Proxmox says of a guest becomes the model; every key that does not fit is named."""

from __future__ import annotations

from typing import Any

import pytest

from stackyard.desired import Container, Vm
from stackyard.path.importing.configuration import TranslatedGuest
from stackyard.path.importing.container import translate_container
from stackyard.path.importing.vm import translate_vm

DISK = "local-lvm:vm-100-disk-0,size=8G"
PLAIN_VM = {"name": "web", "memory": "1024", "cores": 2, "cpu": "host", "ostype": "l26", "scsi0": DISK}
PLAIN_CT = {
    "hostname": "dns",
    "memory": 512,
    "swap": 512,
    "cores": 1,
    "ostype": "debian",
    "arch": "amd64",
    "rootfs": "local-lvm:vm-200-disk-0,size=4G",
}


def translated_vm(**more: Any) -> TranslatedGuest:
    row = {"vmid": 100, "name": "web", "node": "pve1", "status": "running"}
    config = {key: value for key, value in {**PLAIN_VM, **more}.items() if value is not None}
    return translate_vm(row, {**config, "digest": "x", "vmgenid": "x", "meta": "x", "unused0": "x"})


def translated_ct(**more: Any) -> TranslatedGuest:
    row = {"vmid": 200, "name": "dns", "node": "pve1", "status": "stopped", "pool": "home"}
    config = {key: value for key, value in {**PLAIN_CT, **more}.items() if value is not None}
    return translate_container(row, {**config, "digest": "x"})


def vm(**more: Any) -> Vm:
    found = translated_vm(**more)
    assert isinstance(found.guest, Vm), found.lacks
    return found.guest


def container(**more: Any) -> Container:
    found = translated_ct(**more)
    assert isinstance(found.guest, Container), found.lacks
    return found.guest


@pytest.mark.parametrize(
    ("config", "keys"),
    [
        ({"parallel0": "/dev/parport0"}, ["parallel0"]),
        ({"scsi0": f"{DISK},werror=stop,wwn=0x5"}, ["scsi0.werror", "scsi0.wwn"]),
        ({"scsi0": "/dev/disk/by-id/x,size=8G"}, ["scsi0"]),
        ({"scsi0": "local-lvm:vm-100-disk-0,size=528K"}, ["scsi0.size"]),
        ({"ide0": "none,media=cdrom", "ide2": "local:iso/a.iso,media=cdrom"}, ["ide2"]),
        ({"net1": "virtio=BC:24:11:00:00:01,bridge=vmbr0"}, ["net1"]),
        ({"net0": "virtio=BC:24:11:00:00:01"}, ["net0.bridge"]),
        ({"usb0": "spice"}, ["usb0.host"]),
        ({"audio0": "device=AC97"}, ["audio0.driver"]),
        ({"smbios1": "uuid=1,serial=abc"}, ["smbios1.serial"]),
        ({"cpu": "host,hidden=1"}, ["cpu.hidden"]),
        ({"cores": "many"}, ["cores"]),
        ({"name": None}, ["name"]),
        ({"lock": "backup"}, ["lock"]),
        ({"tags": "Prod"}, ["tags.0"]),
        ({"efidisk0": "local-lvm:vm-100-disk-1,size=4M"}, ["configuration"]),
        (
            {
                "ide2": "local-lvm:vm-100-cloudinit,media=cdrom",
                "cicustom": "user=local:snippets/u.yaml",
                "ciuser": "a",
            },
            ["cicustom.user"],
        ),
    ],
)
def test_what_a_machine_has_beyond_the_model_is_named_by_its_key(
    config: dict[str, Any], keys: list[str]
) -> None:
    found = translated_vm(**config)
    assert ([lack.key for lack in found.lacks], found.guest) == (keys, None)


@pytest.mark.parametrize(
    ("config", "keys"),
    [
        ({"timezone": "host"}, ["timezone"]),
        ({"description": " x\n"}, ["description"]),
        ({"net0": "name=a0,bridge=vmbr0,ip6=FD00::0:1/64"}, ["net0.ip6"]),
        ({"net0": "name=a0,bridge=vmbr0", "net1": "name=b0,bridge=vmbr0,ip=dhcp"}, ["net0"]),
        ({"lxc": [["lxc.cgroup2.devices.allow", "c 1:3 rwm"]]}, ["lxc.cgroup2.devices.allow"]),
        ({"mp0": "local-lvm:vm-200-disk-1,mp=/x,size=100M"}, ["mp0.size"]),
        ({"mp1": "/mnt/a,mp=/a"}, ["mp1"]),
        ({"rootfs": "/mnt/x,size=4G"}, ["rootfs"]),
        ({"rootfs": "tank:subvol-200-disk-0,size=0T"}, ["rootfs.size"]),
        ({"net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,link_down=1"}, ["net0.link_down"]),
        ({"features": "nesting=1,force_rw_sys=1"}, ["features.force_rw_sys"]),
        ({"memory": None}, ["memory"]),
    ],
)
def test_what_a_container_has_beyond_the_model_is_named_by_its_key(
    config: dict[str, Any], keys: list[str]
) -> None:
    found = translated_ct(**config)
    assert ([lack.key for lack in found.lacks], found.guest) == (keys, None)


def test_a_key_that_is_left_to_proxmox_is_not_missed() -> None:
    row = {"vmid": 100, "name": "web", "node": "pve1", "status": "running"}
    found = translate_vm(
        row, {**PLAIN_VM, "parallel0": "/dev/parport0", "localtime": 1}, ["parallel0", "localtime"]
    )
    assert found.lacks == ()


def test_what_is_not_set_means_what_the_provider_takes_it_for() -> None:
    guest = vm(cpu=None, ostype=None)
    assert (guest.cpu.type, guest.os_type, guest.agent.enabled, guest.on_boot) == (
        "qemu64",
        "other",
        False,
        False,
    )
    assert (guest.serials, guest.nics, guest.memory.floating_mib) == ((), (), 0)
    assert "kvm64" in translated_vm(cpu=None).notes[0]
    found = translated_ct(cores=None, swap=None)
    assert isinstance(found.guest, Container)
    assert (found.guest.cpu.cores, found.guest.memory.swap_mib, found.guest.pool) == (1, 0, "home")
    assert "cores" in found.notes[0]


def test_disks_come_in_an_order_that_does_not_depend_on_the_configuration() -> None:
    more = {f"{slot}": f"local-lvm:vm-100-{slot},size=1G" for slot in ("virtio1", "sata0", "scsi10", "scsi2")}
    assert [disk.interface for disk in vm(**more).disks] == ["scsi0", "scsi2", "scsi10", "sata0", "virtio1"]


def test_a_size_between_two_gibibytes_counts_as_the_smaller_and_is_noted() -> None:
    found = translated_vm(scsi0="local-lvm:vm-100-disk-0,size=2252M")
    assert isinstance(found.guest, Vm)
    assert found.guest.disks[0].size_gib == 2
    assert found.notes == ("has 2.20 GiB on scsi0, which counts as 2",)


def test_cloud_init_needs_a_drive_to_be_told_anything() -> None:
    settings = {"net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0", "ipconfig0": "ip=dhcp", "ciuser": "anna"}
    without = translated_vm(**settings)
    assert isinstance(without.guest, Vm)
    assert (without.guest.cloud_init, without.guest.nics[0].ipv4) == (None, None)
    assert "no drive" in without.notes[0]
    told = vm(
        **settings, ide2="local-lvm:vm-100-cloudinit,media=cdrom,size=4M", sshkeys="ssh-ed25519%20AAAA%20a%0A"
    )
    assert told.cloud_init is not None
    assert (told.cloud_init.interface, told.cloud_init.upgrade, told.nics[0].ipv4) == ("ide2", True, "dhcp")
    assert [(user.name, user.keys) for user in told.cloud_init.users] == [("anna", ("ssh-ed25519 AAAA a",))]


def test_the_only_card_keeps_its_address_without_words_and_several_are_told_by_theirs() -> None:
    one = {"net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0"}
    assert vm(**one).nics[0].mac is None
    two = vm(**one, net1="e1000=BC:24:11:00:00:02,bridge=vmbr1,tag=4")
    assert [(nic.mac, nic.model, nic.vlan) for nic in two.nics] == [
        ("BC:24:11:00:00:01", "virtio", None),
        ("BC:24:11:00:00:02", "e1000", 4),
    ]


@pytest.mark.parametrize(
    ("boot", "wanted"),
    [
        ("order=scsi0;ide2;net0", ()),
        ("order=net0;scsi0", ("net0", "scsi0")),
        ("order=scsi0", ("scsi0",)),
        ("cdn", ()),
    ],
)
def test_only_an_unusual_order_of_booting_is_said(boot: str, wanted: tuple[str, ...]) -> None:
    more = {"net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0", "ide2": "none,media=cdrom"}
    assert vm(boot=boot, bootdisk="scsi0", **more).boot_order == wanted


def test_volumes_of_a_container_are_told_from_paths_of_the_node() -> None:
    guest = container(mp0="local-lvm:vm-200-disk-1,mp=/data,size=10G,backup=1", mp1="/mnt/x,mp=/x,ro=1")
    assert [(mount.volume, mount.size_gib, mount.backup) for mount in guest.mounts] == [
        ("local-lvm", 10, True),
        ("/mnt/x", None, False),
    ]
    maps = [["lxc.idmap", "u 0 100000 1000"], ["lxc.idmap", "g 0 100000 1000"]]
    assert [one.type for one in container(lxc=maps).id_maps] == ["uid", "gid"]
