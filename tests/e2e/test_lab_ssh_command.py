"""`stackyard lab guests` and `stackyard lab ssh`, where nothing runs inside guests."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import stackyard

SEED = """nodes: [pve1]
calls:
  - path: /nodes/{node1}/qemu
    parameters: &vm
      vmid: 100
      name: web1
      ide2: local-lvm:cloudinit
      net0: virtio,bridge=vmbr0
      ipconfig0: ip=10.31.2.100/16
      ciuser: ops
      cipassword: word
  - path: /nodes/{node1}/qemu/100/status/start
  - path: /nodes/{node1}/qemu
    parameters: {<<: *vm, vmid: 101, name: stopped}
  - path: /nodes/{node1}/qemu
    parameters: {vmid: 102, name: closed, net0: "virtio,bridge=vmbr0"}
  - path: /nodes/{node1}/qemu/102/status/start
"""


@pytest.fixture
def name(tmp_path: Path) -> Iterator[str]:
    """Run a lab without sandboxes."""
    seed = tmp_path / "seed.yaml"
    seed.write_text(SEED)
    name = f"guests-{os.getpid()}"
    done = stackyard("lab", "up", "--name", name, "--port", "0", "--seed", str(seed), "--guests", "recorded")
    assert done.status == 0, done.stderr
    yield name
    stackyard("lab", "down", "--name", name)


def test_guests_are_listed_with_what_a_client_needs(name: str) -> None:
    document = json.loads(stackyard("lab", "guests", "--name", name, "--json").stdout)
    assert document["kind"] == "recorded"
    found = {one["name"]: one for one in document["guests"]}
    assert set(found) == {"web1", "closed"}
    assert found["web1"]["users"] == ["ops"]
    assert found["web1"]["addresses"] == ["10.31.2.100"]
    assert found["web1"]["host_key"].startswith("ssh-ed25519 ")
    assert found["web1"]["port"] > 0
    everyone = json.loads(stackyard("lab", "guests", "--all", "--name", name, "--json").stdout)["guests"]
    assert [one["port"] for one in everyone if one["name"] == "stopped"] == [None]


def test_the_command_line_of_ssh_is_shown_with_json(name: str, tmp_path: Path) -> None:
    done = stackyard(
        "lab", "ssh", "--name", name, "100", "-i", str(tmp_path / "key"), "--json", "--", "id", "-u"
    )
    document = json.loads(done.stdout)
    assert document["argv"][0] == "ssh"
    assert document["argv"][-4:] == ["ops@127.0.0.1", "--", "id", "-u"]
    known = next(word for word in document["argv"] if word.startswith("UserKnownHostsFile=")).partition("=")[
        2
    ]
    assert Path(known).read_text() == f"guest-100 {document['guest']['host_key']}\n"


def test_a_guest_that_cannot_be_reached_is_named_with_the_reason(name: str) -> None:
    for guest, status, text in (
        ("nosuch", 65, "there is no guest 'nosuch'"),
        ("stopped", 69, "is stopped"),
        ("closed", 69, "Nobody can log in"),
    ):
        done = stackyard("lab", "ssh", "--name", name, guest)
        assert done.status == status, done
        assert text in done.stderr


def test_a_machine_without_ssh_says_so(name: str, tmp_path: Path) -> None:
    done = stackyard("lab", "ssh", "--name", name, "web1", env={"PATH": str(tmp_path)})
    assert done.status == 1
    assert "`ssh` was not found" in done.stderr
