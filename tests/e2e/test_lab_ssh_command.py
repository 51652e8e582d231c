"""`stackyard lab guests` and `stackyard lab ssh`, where nothing runs inside guests."""

from __future__ import annotations

import json
import os
import subprocess
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


def test_a_node_is_logged_in_to_as_root(name: str) -> None:
    done = stackyard("lab", "ssh", "--name", name, "pve1", "--json", "--", "qm", "set", "101", "--tags", "a")
    document = json.loads(done.stdout)
    assert document["node"]["users"] == ["root"]
    for argv, expected in (
        (document["argv"], "update VM 101"),
        ([*document["argv"][:-6], "hostname"], "pve1"),
    ):
        ran = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert expected in ran.stdout


def test_a_node_that_is_down_is_not_reached(name: str) -> None:
    stackyard("lab", "faults", "add", "node-down", "node=pve1", "--name", name)
    done = stackyard("lab", "ssh", "--name", name, "pve1")
    assert done.status == 69
    assert "'pve1' is offline" in done.stderr


def test_a_guest_that_cannot_be_reached_is_named_with_the_reason(name: str) -> None:
    for guest, status, text in (
        ("nosuch", 65, "there is no guest 'nosuch'"),
        ("stopped", 69, "is stopped"),
    ):
        done = stackyard("lab", "ssh", "--name", name, guest)
        assert done.status == status, done
        assert text in done.stderr


def test_a_machine_without_ssh_says_so(name: str, tmp_path: Path) -> None:
    done = stackyard("lab", "ssh", "--name", name, "web1", env={"PATH": str(tmp_path)})
    assert done.status == 1
    assert "`ssh` was not found" in done.stderr


def test_the_owner_of_a_lab_logs_in_to_every_guest_that_runs() -> None:
    lab = f"owner-{os.getpid()}"
    done = stackyard("lab", "up", "--name", lab, "--port", "0", "--seed", "homelab", "--guests", "recorded")
    assert done.status == 0, done.stderr
    try:
        guests = json.loads(stackyard("lab", "guests", "--name", lab, "--json").stdout)["guests"]
        assert len(guests) == 8
        seen = {}
        for one in guests:
            done = stackyard("lab", "ssh", "--name", lab, one["name"], "--", "echo $(whoami) $(hostname)")
            assert done.status == 0, (one["name"], done.stderr)
            seen[one["name"]] = done.stdout.split()
        wanted = {one["name"]: [one["users"][0] if one["users"] else "root", one["name"]] for one in guests}
        assert seen == wanted
        assert seen["opnsense"][0] == "root"
        assert stackyard("lab", "reset", "--name", lab).status == 0
        assert stackyard("lab", "ssh", "--name", lab, "pihole", "--", "true").status == 0
    finally:
        stackyard("lab", "down", "--name", lab)


def test_a_guest_without_users_opens_to_its_owner_as_root(name: str) -> None:
    done = stackyard("lab", "ssh", "--name", name, "closed", "--", "id", "-u")
    assert (done.status, done.stdout) == (0, "0\n")
    other = stackyard("lab", "ssh", "--name", name, "closed", "--user", "nobody-here", "--", "id", "-u")
    assert other.status == 255
    assert "Permission denied" in other.stderr
    shown = json.loads(stackyard("lab", "ssh", "--name", name, "closed", "--json").stdout)
    key = Path(shown["argv"][shown["argv"].index("-i") + 1])
    assert key.stat().st_mode & 0o777 == 0o600
