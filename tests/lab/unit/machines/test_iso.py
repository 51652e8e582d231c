"""The CD image of a cloud-init drive, read back by a reader that follows the standard alone."""

from __future__ import annotations

import struct

import pytest

from pvelab.machines.qemu.iso import write_iso

_SECTOR = 2048


def _descriptors(image: bytes) -> dict[int, bytes]:
    found = {}
    for number in range(16, 32):
        sector = image[number * _SECTOR : (number + 1) * _SECTOR]
        assert sector[1:6] == b"CD001"
        found[sector[0]] = sector
        if sector[0] == 255:
            return found
    raise AssertionError("no end of the descriptors")


def _files(image: bytes, descriptor: bytes) -> dict[bytes, bytes]:
    """Return the files of the root folder that a volume descriptor names."""
    where, size = struct.unpack("<I", descriptor[158:162])[0], struct.unpack("<I", descriptor[166:170])[0]
    folder, found, position = image[where * _SECTOR : where * _SECTOR + size], {}, 0
    while position < len(folder) and folder[position]:
        record = folder[position : position + folder[position]]
        start, length = struct.unpack("<I", record[2:6])[0], struct.unpack("<I", record[10:14])[0]
        assert struct.unpack(">I", record[6:10])[0] == start
        if not record[25] & 2:
            name = record[33 : 33 + record[32]]
            found[name] = image[start * _SECTOR : start * _SECTOR + length]
        position += record[0]
    return found


def test_the_files_are_there_under_their_long_names_and_under_short_ones() -> None:
    files = {"user-data": b"#cloud-config\n" * 400, "meta-data": b"instance-id: one\n", "vendor-data": b""}
    image = write_iso("cidata", files)
    found = _descriptors(image)
    joliet = {name.decode("utf-16-be"): content for name, content in _files(image, found[2]).items()}
    assert joliet == files
    assert sorted(_files(image, found[1]).values()) == sorted(files.values())


def test_the_label_is_the_one_that_cloud_init_looks_for() -> None:
    found = _descriptors(write_iso("cidata", {"meta-data": b"x"}))
    assert found[1][40:72].strip() == b"CIDATA"
    assert found[2][40:72].decode("utf-16-be").strip("\0") == "cidata"


def test_the_image_is_as_long_as_it_says() -> None:
    image = write_iso("cidata", {"a": b"1" * 5000, "b": b"2"})
    sectors = struct.unpack("<I", _descriptors(image)[1][80:84])[0]
    assert len(image) == sectors * _SECTOR


def test_names_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="too many files"):
        write_iso("cidata", {f"a-rather-long-name-{number}": b"" for number in range(60)})
