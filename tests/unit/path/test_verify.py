"""A guest is up when what it reports proves it; a report that cannot be used is an error of that guest."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from tests.support.lab_forging import deep, forged

from stackyard import lab
from stackyard.clients.proxmox import AnswerUnusableError, Client, Connection, Token, Trust
from stackyard.desired import Container, Vm
from stackyard.path.verify import GuestDownError, GuestUp, verify_guest

VM = Vm.model_validate(
    {
        "key": "web",
        "name": "web",
        "node": "pve1",
        "vm_id": 500,
        "nics": [{"bridge": "vmbr0"}],
        "verify": {"timeout_s": 1},
    }
)
CT = Container.model_validate(
    {
        "key": "dns",
        "name": "dns",
        "node": "pve1",
        "vm_id": 501,
        "template": "local:vztmpl/debian.tar.zst",
        "root_disk": {"datastore": "local-lvm", "size_gib": 4},
        "nics": [{"bridge": "vmbr0"}],
        "verify": {"timeout_s": 1},
    }
)
ROWS = [
    {"type": "qemu", "vmid": 500, "node": "pve1", "name": "web", "status": "running"},
    {"type": "lxc", "vmid": 501, "node": "pve1", "name": "dns", "status": "running"},
]


@pytest.fixture(scope="module")
def running() -> Iterator[lab.Running]:
    with lab.running(nodes=("pve1",)) as it:
        yield it


def verified(running: lab.Running, guest: Vm | Container, report: Any, rows: Any = ROWS) -> GuestUp:
    """Verify a guest of a cluster that lists these rows, and that makes this report."""
    connection = Connection(
        endpoint=running.url,
        credentials=Token(text=running.api_token),
        trust=Trust(fingerprint=running.fingerprint),
    )
    answers = {
        "* /cluster/resources": lambda _: rows,
        "* /nodes/pve1/qemu/500/agent/*": lambda _: report,
        "* /nodes/pve1/lxc/501/interfaces": lambda _: report,
    }

    async def main() -> GuestUp:
        async with Client(connection) as client:
            return await verify_guest(client, guest)

    with forged(answers, refused=True):
        return asyncio.run(main())


def interface(*addresses: Any) -> list[dict[str, Any]]:
    return [{"name": "eth0", "ip-addresses": [{"ip-address": one} for one in addresses]}]


def test_addresses_are_those_that_others_can_use(running: lab.Running) -> None:
    reported = interface("127.0.0.1", "fe80::1%2", "2001:DB8::7", "192.0.2.1", "0.0.0.0")
    assert verified(running, CT, reported).addresses == ("2001:db8::7", "192.0.2.1")
    assert verified(running, VM, {"result": reported}).addresses == ("2001:db8::7", "192.0.2.1")


REPORTS: dict[str, Any] = {
    "a template": interface("2001:db8::1%{{ lookup('pipe','id') }}"),
    "numbers": interface(7, 3232235777),
    "a text": "eth0",
    "texts": ["eth0"],
    "a number": 7,
    "many interfaces": [{}] * 100_000,
    "many addresses": interface(*["192.0.2.1"] * 100_000),
    "deep": deep(900),
    "deeper than JSON is read": deep(100_000),
    "larger than an answer may be": orjson.Fragment(b'"' + b"a" * (65 * 2**20) + b'"'),
}


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS.keys())
@pytest.mark.parametrize("guest", [VM, CT], ids=["vm", "container"])
def test_a_report_that_cannot_be_used_is_an_error_of_the_guest(
    running: lab.Running, guest: Vm | Container, report: Any
) -> None:
    with pytest.raises(GuestDownError) as raised:
        verified(running, guest, {"result": report} if isinstance(guest, Vm) else report)
    assert guest.name in raised.value.detail
    assert len(raised.value.detail) < 500


@pytest.mark.parametrize(
    "rows",
    [
        None,
        7,
        "text",
        {},
        [7],
        [{}],
        [{"type": "qemu"}],
        [{**ROWS[0], "vmid": "500"}],
        [{**ROWS[0], "vmid": []}],
        [{**ROWS[0], "node": {}}],
        [{**ROWS[0], "status": 7}],
        [{**ROWS[0], "tags": ["a"]}],
        [{**ROWS[0], "maxmem": "much"}],
        [{"type": "storage", "node": "pve1"}],
    ],
)
def test_a_cluster_that_lists_nonsense_is_an_answer_that_cannot_be_used(
    running: lab.Running, rows: Any
) -> None:
    with pytest.raises(AnswerUnusableError, match="GET /cluster/resources was answered, and"):
        verified(running, VM, {"result": interface("192.0.2.1")}, rows)
