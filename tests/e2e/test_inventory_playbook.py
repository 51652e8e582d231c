"""A playbook runs on guests that were applied, from the inventory that the apply published."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import real_engine
from tests.support.lab_inside import need_sandbox
from tests.support.path import Yard, make_yard

from stackyard import lab
from stackyard.engine.version import Flavour

# Ansible takes most of a minute; a playbook is played in every run by the page about guests of the lab.
pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300), pytest.mark.soak]

PLAYBOOK = """\
- hosts: shop
  become: true
  tasks:
    - ansible.builtin.apt: {name: [nginx, jq], update_cache: true}
    - ansible.builtin.user: {name: deploy, shell: /bin/bash}
    - ansible.builtin.file: {path: /var/www/html, state: directory}
    - ansible.builtin.copy: {content: "deployed\\n", dest: /var/www/html/index.html, owner: deploy}
    - ansible.builtin.service: {name: nginx, state: started, enabled: true}
"""


def reached(yard: Yard, name: str) -> dict[str, Any]:
    """Return where the lab lets one in to a guest."""
    request = urllib.request.Request(
        f"{yard.running.url}/_lab/guests?name={name}",
        headers={"Authorization": f"PVEAPIToken={yard.running.api_token}"},
    )
    trusting = ssl.create_default_context()
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    with urllib.request.urlopen(request, context=trusting) as answer:
        found: dict[str, Any] = json.load(answer)
    row: dict[str, Any] = found.get("data", found)["guests"][0]
    return row


def play(yard: Yard, inventory: str, guest: dict[str, Any], key: Path) -> str:
    env = {
        **os.environ,
        **yard.env,
        "HOME": str(yard.folder),
        # The folder of a test is too long for the name of a socket.
        "ANSIBLE_SSH_ARGS": "-o ControlMaster=no",
        "ANSIBLE_HOST_KEY_CHECKING": "False",
    }
    ended = subprocess.run(
        [
            str(Path(sys.executable).parent / "ansible-playbook"),
            *("-i", inventory, "--private-key", str(key)),
            # Where a lab lets one in to a guest; on real hardware the address of the inventory is enough.
            *("-e", f"ansible_host={guest['host']}", "-e", f"ansible_port={guest['port']}"),
            *("-e", "ansible_python_interpreter=/usr/bin/python3"),
            "site.yml",
        ],
        cwd=yard.folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_a_playbook_runs_from_the_published_inventory_and_changes_nothing_the_second_time(
    tmp_path: Path,
) -> None:
    need_sandbox()
    if not all(map(shutil.which, ("ssh", "ssh-keygen"))):
        pytest.skip("OpenSSH's client is not installed")
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    user = {"name": "ops", "keys": [key.with_suffix(".pub").read_text().strip()], "sudo": "nopasswd"}
    web = {
        "name": "web",
        "vmid": 500,
        "preset": "vm-xsmall",
        "image": "debian-12",
        "tags": ["app_shop"],
        "cloud_init": {"users": [user]},
    }
    with lab.running(nodes=("pve1",), ssh_port=0) as running:
        yard = make_yard(running, tmp_path / "site", STACKYARD_TOFU=str(real_engine(Flavour.TOFU).path))
        yard.write_env("t", [web])
        (yard.folder / "site.yml").write_text(PLAYBOOK)
        inventory = yard.json("apply", "t")["inventory"]["where"]
        guest = reached(yard, "web")
        assert "changed=0" not in play(yard, inventory, guest, key)
        assert "changed=0" in play(yard, inventory, guest, key)
