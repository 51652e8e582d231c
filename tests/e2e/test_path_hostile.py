"""The path against guests and a cluster that answer with whatever may do harm: apply with verification."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import real_engine
from tests.support.lab_forging import Forgery, forged
from tests.support.path import Yard, make_yard

from stackyard import lab
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

AGENT = "GET /nodes/*/qemu/500/agent/network-get-interfaces"
INTERFACES = "GET /nodes/*/lxc/501/interfaces"
TEMPLATE = "2001:db8::1%{{ lookup('pipe','touch canary') }}"
FAST: dict[str, Any] = {"verify": {"timeout_s": 2}, "agent": {"timeout_s": 2}}
WEB: dict[str, Any] = {"name": "web", "vmid": 500, "preset": "vm-xsmall", "image": "debian-12", **FAST}
DNS: dict[str, Any] = {
    "name": "dns",
    "type": "ct",
    "vmid": 501,
    "image": "debian-13-ct",
    "cores": 1,
    "memory": 512,
    "disk": 4,
    "verify": {"timeout_s": 2},
}


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    engine = real_engine(Flavour.TOFU)
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        made = make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(engine.path))
        made.write_env("t", [WEB, DNS])
        yield made


@pytest.fixture
def canary(yard: Yard) -> Path:
    """Return the file that a command of a guest would make, if one was run."""
    return yard.folder / "canary"


def interfaces(*addresses: Any) -> list[dict[str, Any]]:
    listed = [{"ip-address": one, "ip-address-type": "ipv6"} for one in addresses]
    return [{"name": "eth0", "hardware-address": "02:00:00:00:00:01", "ip-addresses": listed}]


def test_an_address_with_a_template_in_it_is_published_nowhere(yard: Yard, canary: Path) -> None:
    forgeries: dict[str, Forgery] = {
        AGENT: lambda _: {"result": interfaces(TEMPLATE, "2001:DB8::7")},
        INTERFACES: lambda _: interfaces(TEMPLATE, "192.0.2.9", 7),
    }
    with forged(forgeries) as done:
        applied = yard.json("apply", "t")
    assert done
    found = {guest["name"]: guest["addresses"] for guest in applied["guests"]}
    assert found == {"web": ["2001:db8::7"], "dns": ["192.0.2.9"]}
    written = [path for path in (yard.folder / ".stackyard").rglob("*") if path.is_file()]
    assert not [path for path in written if b"lookup(" in path.read_bytes()]
    assert not canary.exists()


def test_a_guest_that_reports_nonsense_is_named_and_the_others_are_up(yard: Yard, canary: Path) -> None:
    many = {"result": interfaces(*["192.0.2.1"] * 100_000)}
    with forged({AGENT: lambda _: many}):
        applied = yard.json("apply", "t", status=1)
        assert [guest["name"] for guest in applied["guests"]] == ["dns"]
        (down,) = applied["down"]
        assert down["code"] == "E-GUEST-DOWN"
        assert "web (500 on pve1)" in down["detail"]
        assert "too many addresses: 100,000" in down["detail"]
        # It is there, and nothing has to be changed because of what it says.
        assert yard.json("plan", "t")["has_changes"] is False
        assert yard.json("drift", "t")["has_drift"] is False
        yard.run("destroy", "t", "--yes", "--allow-destroy", "web,dns")
    assert yard.guests() == {}
    assert not canary.exists()
