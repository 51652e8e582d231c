"""Names of volumes: what they say, where files are, and what volumes can do."""

from __future__ import annotations

import pytest

from pvelab.server.problems import PveError
from pvelab.world.storage.volume_features import base_volume_id, is_base, name_in_format, owner_of
from pvelab.world.storage.volume_names import list_format, normal_filename, parse_name, path_of, volume_at

DIR = {"type": "dir", "path": "/var/lib/vz", "content-dirs": "iso=images/cd"}
STORAGES = {
    "local": {"type": "dir", "path": "/var/lib/vz"},
    "inner": {"type": "dir", "path": "/var/lib/vz/snippets/x"},
    "thin": {"type": "lvmthin", "vgname": "pve"},
}


@pytest.mark.parametrize(
    ("name", "content", "chosen", "vmid"),
    [
        ("iso/a.iso", "iso", "raw", None),
        ("iso/A.IMG", "iso", "raw", None),
        ("vztmpl/a.tar.zst", "vztmpl", "raw", None),
        ("import/a b.qcow2", "import", "qcow2", None),
        ("snippets/a.yaml", "snippets", "raw", None),
        ("backup/vzdump-lxc-101-2026_01_01-00_00_00.tar.zst", "backup", "raw", 101),
        ("100/vm-100-disk-0.qcow2", "images", "qcow2", 100),
        ("100/base-100-disk-0.raw/101/vm-101-disk-0.qcow2", "images", "qcow2", 101),
    ],
)
def test_a_file_name_says_what_the_file_is(name: str, content: str, chosen: str, vmid: int | None) -> None:
    parsed = parse_name(DIR, name)
    assert (parsed.content, parsed.format, parsed.vmid) == (content, chosen, vmid)


@pytest.mark.parametrize(
    "name", ["x", "iso/a.txt", "iso/a/b.iso", "vztmpl/a.zip", "backup/a.iso", "import/../a.raw"]
)
def test_other_file_names_cannot_be_read(name: str) -> None:
    with pytest.raises(PveError, match="unable to parse"):
        parse_name(DIR, name)


def test_block_storages_have_volumes_of_guests_alone() -> None:
    thin, pool = STORAGES["thin"], {"type": "zfspool", "pool": "tank"}
    assert parse_name(thin, "vm-100-cloudinit").vmid == 100
    assert parse_name(pool, "basevol-100-disk-0/subvol-101-disk-0").format == "subvol"
    with pytest.raises(PveError, match=r"unable to parse lvm volume name 'iso/a.iso'"):
        parse_name(thin, "iso/a.iso")


def test_paths_lead_to_volumes_and_back() -> None:
    assert path_of(DIR, "local:iso/a.iso") == "/var/lib/vz/images/cd/a.iso"
    assert (
        path_of(STORAGES["local"], "local:100/vm-100-disk-0.raw")
        == "/var/lib/vz/images/100/vm-100-disk-0.raw"
    )
    assert path_of(STORAGES["thin"], "thin:vm-100-disk-0") == "/dev/pve/vm-100-disk-0"
    assert volume_at(STORAGES, "/var/lib/vz/snippets/a.yaml") == "local:snippets/a.yaml"
    assert volume_at(STORAGES, "/var/lib/vz/snippets/x/snippets/a.yaml") == "inner:snippets/a.yaml"
    for path in ("/etc/passwd", "/var/lib/vz/template/iso/a.txt", "/var/lib/vz/snippets/..", "/var/lib/vz"):
        assert volume_at(STORAGES, path) is None


def test_names_of_uploads_are_made_harmless() -> None:
    assert normal_filename("../../etc/pass wd;x.iso") == "pass_wd_x.iso"
    assert normal_filename("C:\\temp\\a.iso\n") == "a.iso"
    assert list_format("vztmpl", "a.tar.gz") == "tgz"
    assert list_format("vztmpl", "a.tar") == "tar"


def test_volumes_of_templates_and_copies_are_named_after_their_kind() -> None:
    assert base_volume_id("local:100/vm-100-disk-0.qcow2") == "local:100/base-100-disk-0.qcow2"
    assert base_volume_id("tank:subvol-100-disk-0") == "tank:basevol-100-disk-0"
    assert is_base("tank:basevol-100-disk-0")
    assert not is_base("tank:basevol-100-disk-0/subvol-101-disk-0")
    assert owner_of("tank:basevol-100-disk-0/subvol-101-disk-0") == 101
    assert owner_of("local:iso/a.iso") is None
    assert name_in_format("local:100/vm-100-disk-0.raw", "subvol", files=False) == "subvol-100-disk-0"
    assert name_in_format("tank:subvol-100-disk-0", "raw", files=True) == "vm-100-disk-0.raw"
