"""The how-to for those who have a deployment.json is true: its blocks run in their order, against a lab."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.deployment import text_of
from tests.support.engine import real_engine
from tests.support.forking import write_forked_program
from tests.support.provider import make_template

from stackyard import lab
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "move-from-a-deployment-json.md").read_text()
CHECK, PUT, TAKE_OVER, INVENTORY, LATER = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
TEMPLATE = 9100

# The kinds of entries that such files have, with keys that other programs alone read.
OBJECT: dict[str, Any] = {
    "_comment": "desired state alone; secrets are elsewhere",
    "proxmox_node": "pve1",
    "proxmox_user": "root",
    "environment": "homelab",
    "domain": "example.com",
    "vm_ssh_public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA9lZ3Vlc3RleGFtcGxla2V5Zm9ydGVzdHMx me",
    "datastore_default": "local-lvm",
    "datastore_id": "local-lvm",
    "llm_gpu_engine": "none",
    "network_cidrs": {"mgmt": "10.9.1.0/24", "apps": "10.9.2.0/24", "siem": "10.9.3.0/24"},
    "_nodes_comment": "two of them",
    "nodes": {
        "pve1": {"role": "node-1", "hardware": "compact-node", "logical_id": 1},
        "pve2": {"role": "node-2", "hardware": "storage-node", "logical_id": 2},
    },
    "template_id": TEMPLATE,
    "splunk_vm_id": 110,
    "splunk_vm_name": "splunk-aio",
    "splunk_vm_pool_id": "logging",
    "splunk_cpu_type": "x86-64-v2-AES",
    "splunk_cpu_cores": 2,
    "splunk_memory": 2048,
    "splunk_boot_disk_size": 4,
    "splunk_data_disk_size": 1,
    "pools": {"logging": {"comment": "what keeps logs"}, "apps": {"comment": "what people use"}},
    "host_services": {},
    "openbao_cluster": {
        "enabled": True,
        "name_prefix": "openbao-",
        "vm_id_base": 110000,
        "vlan": "mgmt",
        "placement": {"pve1": [10], "pve2": [20]},
        "container_defaults": {"memory_dedicated": 256, "startup_order": 20, "pool_id": "apps"},
        "root_disk": {"size": 4},
    },
    "containers": {
        "web-1": {
            "vm_id": 605000,
            "hostname": "web-605000",
            "description": "What it shows",
            "vlan": "apps",
            "dhcp": True,
            "cpu_cores": 2,
            "memory_dedicated": 512,
            "tags": ["terraform", "container", "web"],
            "pool_id": "apps",
            "unprivileged": True,
            "features": {"nesting": True},
            "root_disk": {"size": 4},
            "mount_points": [{"volume": "local-lvm", "path": "/data", "size": 1}],
        }
    },
    "vms": {
        "build-1": {
            "vm_id": 250,
            "vlan": "apps",
            "node_name": "pve1",
            "cpu_cores": 1,
            "memory_dedicated": 512,
            "boot_disk": {"size": 4},
            "tags": ["terraform", "build"],
            "pool_id": "apps",
        }
    },
}


def test_an_object_moves_in_and_its_guests_stay_as_they_are(tmp_path: Path) -> None:
    write_forked_program(tmp_path / "bin" / "stackyard")
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "deployment.json").write_text(text_of(OBJECT))
    with lab.running(nodes=("pve1", "pve2")) as running:
        make_template(running, "pve1", TEMPLATE)
        env = {
            **os.environ,
            "STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path),
            "PROXMOX_VE_ENDPOINT": running.url,
            "PROXMOX_VE_API_TOKEN": running.api_token,
            "PROXMOX_VE_FINGERPRINT": running.fingerprint,
            "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        }

        def typed(script: str) -> str:
            done = subprocess.run(
                ["bash", "-euxc", script],
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=240,
                check=False,
            )
            assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
            return done.stdout

        def guests() -> dict[str, dict[str, Any]]:
            world = running.world
            return running.on_loop(
                lambda: {str(key): dict(guest) for key, guest in world.guests.all().items()}
            )

        typed(CHECK)
        typed(PUT)
        # As somebody else's code would have made them, with a state that is not here.
        typed("stackyard apply deployment")
        shutil.rmtree(folder / ".stackyard" / "state")
        before = guests()
        said = typed(TAKE_OVER)
        assert "7 to import" in said
        assert "Nothing to change" in said
        assert guests() == before
        assert "web-1" in typed(INVENTORY)
        typed(LATER)
        assert int(guests()["605000"]["config"]["cores"]) == 4
