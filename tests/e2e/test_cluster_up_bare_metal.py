"""`cluster up` for machines of their own: nothing is asked of Proxmox, and the machines are waited for."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proxmoxer import ResourceException
from tests.support.cluster_network import NETWORK_FILES
from tests.support.cluster_repo import SCHEMATIC, ClusterRepo, cluster_on_lab
from tests.support.forking import fork_program
from tests.support.lab import proxmoxer_client

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

_LOOK_EVERY_S = 0.05
_OF_PROXMOX = ("proxmox_node", "vm_id", "vm_memory", "vm_cores")
_WITHOUT_PROXMOX = dict.fromkeys(
    (
        *("proxmox_api_url", "proxmox_node", "proxmox_insecure"),
        *("proxmox_api_token_id", "proxmox_api_token_secret"),
    )
)


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[ClusterRepo]:
    with cluster_on_lab(tmp_path) as made:
        made.write(NETWORK_FILES)
        yield made


def node(repo: ClusterRepo, number: int, **changes: Any) -> dict[str, Any]:
    found = {key: value for key, value in repo.node(number).items() if key not in _OF_PROXMOX}
    return {**found, **changes}


def make_machines(repo: ClusterRepo, count: int) -> list[str]:
    """Put machines on the lab that are in no file; return the addresses that DHCP gave them."""
    lab = proxmoxer_client(repo.running)
    host = lab.nodes("pve1")
    url = f"{repo.running.factory_url}/image/{SCHEMATIC}/v1.12.1/metal-amd64.iso"
    upid = host.storage("local")("download-url").post(url=url, content="iso", filename="metal.iso")
    wait(host, upid)
    for number in range(count):
        mac = f"BC:24:11:00:00:{number + 1:02X}"
        settings: dict[str, Any] = {
            "vmid": 900 + number,
            "cpu": "x86-64-v2-AES",
            "memory": 4096,
            "scsihw": "virtio-scsi-pci",
            "scsi0": "local-lvm:20",
            "ide2": "local:iso/metal.iso,media=cdrom",
            "boot": "order=scsi0;ide2",
            "net0": f"virtio={mac},bridge=vmbr0",
            "agent": "1",
        }
        wait(host, host.qemu.post(**settings))
    return [start(host, 900 + number) for number in range(count)]


def wait(host: Any, upid: str) -> None:
    while (status := host.tasks(upid).status.get())["status"] != "stopped":
        time.sleep(_LOOK_EVERY_S)
    assert status["exitstatus"] == "OK", status


def start(host: Any, vmid: int) -> str:
    wait(host, host.qemu(vmid).status.start.post())
    while True:
        try:
            found = host.qemu(vmid).agent("network-get-interfaces").get()["result"]
        except ResourceException:
            # The agent answers once the machine is up.
            time.sleep(_LOOK_EVERY_S)
            continue
        addresses: list[str] = [one["ip-address"] for link in found for one in link.get("ip-addresses", ())]
        return next(one for one in addresses if one.startswith("127.") and one != "127.0.0.1")


def test_machines_without_proxmox_become_a_cluster_and_stay_as_they_are(
    repo: ClusterRepo,
) -> None:
    addresses = make_machines(repo, 2)
    nodes = [node(repo, number, address=address) for number, address in enumerate(addresses)]
    repo.describe(nodes=nodes, **_WITHOUT_PROXMOX)
    ended = repo.json("cluster", "up")
    steps = {row["step"]: row["outcome"] for row in ended["steps"]}
    assert "vms" not in steps
    assert steps["configure k8s-0"] == steps["etcd"] == "done"
    assert len(repo.list_etcds()) == 1
    assert repo.json("cluster", "up")["has_changes"] is False
    assert repo.json("cluster", "status")["is_healthy"] is True


def test_machines_that_are_not_there_yet_are_waited_for(repo: ClusterRepo) -> None:
    (address,) = make_machines(repo, 1)
    host = proxmoxer_client(repo.running).nodes("pve1")
    wait(host, host.qemu(900).status.stop.post())
    repo.describe(nodes=[node(repo, 0, address=address)], **_WITHOUT_PROXMOX)
    out, end = os.pipe()
    with open(os.devnull, "r+b") as nothing:
        streams = (nothing.fileno(), end, nothing.fileno())
        run = fork_program(
            ("cluster", "up", "--events"), streams=streams, cwd=repo.root, env={**os.environ, **repo.env}
        )
    os.close(end)
    waited_for = list[str]()
    with open(out, "rb") as events:
        for line in events:
            event = json.loads(line)
            if event["type"] == "step.waiting" and not waited_for:
                waited_for.append(event["waiting_for"])
                wait(host, host.qemu(900).status.start.post())
    assert run.wait() == 0
    assert address in waited_for[0]
