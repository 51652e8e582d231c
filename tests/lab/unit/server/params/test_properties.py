"""Property strings: read with aliases and left-out keys, printed as Proxmox prints them."""

from __future__ import annotations

from typing import Any

import pytest

from pvelab.server import facts
from pvelab.server.params import properties
from pvelab.server.params.texts import FormatError

FACTS = facts.load()


def schema(name: str, route: str = "POST /nodes/{node}/qemu") -> properties.PropertySchema:
    found: properties.PropertySchema = FACTS.schema(route, name)["format"]
    return found


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("scsi[n]", "local-lvm:4,size=8G,ssd=1", {"file": "local-lvm:4", "size": 8 * 2**30, "ssd": 1}),
        ("scsi[n]", "file=local-lvm:4,backup=off", {"file": "local-lvm:4", "backup": 0}),
        ("scsi[n]", "volume=local-lvm:4", {"file": "local-lvm:4"}),
        ("ide[n]", "file=local-lvm:cloudinit,", {"file": "local-lvm:cloudinit"}),
        ("net[n]", "model=virtio,bridge=vmbr0", {"model": "virtio", "bridge": "vmbr0"}),
        ("net[n]", "virtio,bridge=vmbr0", {"model": "virtio", "bridge": "vmbr0"}),
        (
            "net[n]",
            "virtio=BC:24:11:00:00:01,tag=5",
            {"model": "virtio", "macaddr": "BC:24:11:00:00:01", "tag": 5},
        ),
        ("agent", "1", {"enabled": 1}),
        ("agent", "enabled=yes,fstrim_cloned_disks=0", {"enabled": 1, "fstrim_cloned_disks": 0}),
        ("memory", "1024", {"current": 1024}),
    ],
)
def test_a_property_string_is_read_by_its_schema(name: str, text: str, values: dict[str, Any]) -> None:
    assert properties.parse(schema(name), text) == values


@pytest.mark.parametrize(
    ("name", "values", "text"),
    [
        (
            "scsi[n]",
            {"ssd": 0, "file": "local-lvm:vm-100-disk-0", "size": 8 * 2**30, "aio": "io_uring", "backup": 1},
            "local-lvm:vm-100-disk-0,aio=io_uring,backup=1,size=8G,ssd=0",
        ),
        (
            "net[n]",
            {"bridge": "vmbr0", "firewall": 0, "model": "virtio", "macaddr": "BC:24:11:00:00:01"},
            "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=0",
        ),
        ("net[n]", {"bridge": "vmbr0", "model": "virtio"}, "virtio,bridge=vmbr0"),
    ],
)
def test_values_are_printed_as_proxmox_prints_them(name: str, values: dict[str, Any], text: str) -> None:
    assert properties.render(schema(name), values) == text
    assert properties.parse(schema(name), text) == values


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("local:1,ssd=1,ssd=0", "duplicate key in comma-separated list property: ssd"),
        ("local:1,local:2", "duplicate key in comma-separated list property: file"),
        ("local:1,volume=local:2", "key 'file' is already defined (via alias)"),
        ("local:1,=2", "missing key in comma-separated list property"),
        ("local:1,nope=2", "invalid key in comma-separated list property: nope"),
    ],
)
def test_a_property_string_that_cannot_be_read_says_why(text: str, problem: str) -> None:
    with pytest.raises(FormatError) as caught:
        properties.parse(schema("scsi[n]"), text)
    assert str(caught.value) == problem
