"""Finding the method behind a path."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pvelab import api as resources
from pvelab.server import facts
from pvelab.server.call import Call
from pvelab.server.coverage import render
from pvelab.server.decode import decode_form, decode_path
from pvelab.server.routing import Table, collect, route
from stackyard.base.errors import InternalError

FACTS = facts.load()
TABLE = Table(FACTS, collect(resources))


def test_every_declared_method_is_found_by_its_path() -> None:
    for name in FACTS.methods:
        found = TABLE.find(*name.split(" ", 1))
        assert found is not None, name
        assert found.endpoint.method.route == name


@pytest.mark.parametrize(
    ("path", "volume"),
    [
        ("/nodes/pve/storage/local/content/local:iso%2Fnoble.img", "local:iso/noble.img"),
        ("/nodes/pve/storage/local/content/local:iso/noble.img", "local:iso/noble.img"),
        ("//nodes//pve/storage/local/content/local:100/vm-100-disk-0.raw/", "local:100/vm-100-disk-0.raw"),
    ],
)
def test_a_volume_takes_the_rest_of_the_path(path: str, volume: str) -> None:
    found = TABLE.find("GET", decode_path(path))
    assert found is not None
    assert found.parameters == {"node": "pve", "storage": "local", "volume": volume}


def test_a_network_in_an_ip_set_keeps_its_slash() -> None:
    found = TABLE.find("GET", decode_path("/cluster/firewall/ipset/web/10.0.0.0%2F8"))
    assert found is not None
    assert found.parameters == {"name": "web", "cidr": "10.0.0.0/8"}


@pytest.mark.parametrize(
    "path", ["/foo", "/nodes/pve/foo", "/version/x", "/../version", "/nodes/pve/qemu/100/x"]
)
def test_a_path_that_proxmox_has_not_is_not_found(path: str) -> None:
    assert TABLE.find("GET", decode_path(path)) is None


def test_a_route_that_proxmox_does_not_declare_cannot_be_bound() -> None:
    @route("GET /nodes/{node}/nonsense")
    def handler(_call: Call) -> Any:
        return None

    with pytest.raises(InternalError, match="does not declare"):
        Table(FACTS, [handler])


def test_a_route_cannot_be_bound_twice() -> None:
    @route("GET /version")
    def handler(_call: Call) -> Any:
        return None

    with pytest.raises(InternalError, match="twice"):
        Table(FACTS, [handler, handler])


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (b"a=1&b=2", {"a": "1", "b": "2"}),
        (b"comment=&x=1", {"comment": "", "x": "1"}),
        (b"delete=a&delete=b&delete=c", {"delete": ["a", "b", "c"]}),
        (b"flag", {"flag": None}),
        (b"a=1;b=2", {"a": "1", "b": "2"}),
        (b"name=a+b%20c%26d", {"name": "a b c&d"}),
        (b"net0=virtio%2Cbridge%3Dvmbr0", {"net0": "virtio,bridge=vmbr0"}),
        (b"sshkeys=ssh-ed25519%2520AAAA%250A", {"sshkeys": "ssh-ed25519%20AAAA%0A"}),
        (b"bad=%ff%fe&u=%C3%A4", {"bad": "��", "u": "ä"}),
        (b"", {}),
        (b"&&=x&", {}),
    ],
)
def test_a_form_is_read_as_proxmox_reads_it(form: bytes, expected: dict[str, Any]) -> None:
    assert decode_form(form) == expected


def test_the_coverage_page_tells_every_method_and_why_one_is_missing() -> None:
    page = render()
    assert "| `GET /version` | yes |" in page
    assert "| `GET /cluster/ceph/status` | yes |" in page
    assert re.search(r"^\| `POST /cluster/config/join` \| 501: \w.+ \|$", page, re.MULTILINE)
    assert sum(page.count(f"`{name}`") for name in FACTS.methods) == len(FACTS.methods)
