"""The how-to about the deployment object is true: each block runs, against a lab and a real S3 server."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.support.deployment import SMALL, edited, text_of
from tests.support.deployment_bucket import VERSIONED, new_bucket
from tests.support.engine import real_engine
from tests.support.forking import write_forked_program
from tests.support.seaweed import require_seaweed

from stackyard import lab
from stackyard.engine.version import Flavour
from stackyard.sources.deployment.defaults import CONTAINER
from stackyard.sources.deployment.difference import GUARDED
from stackyard.sources.deployment.schema import read_schema
from stackyard.sources.deployment.settings import SettingsFile

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "howto" / "deployment.md").read_text()
REFERENCE = (DOCS / "reference" / "deployment.md").read_text()
SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
BLOCKS = [
    (section.partition("\n")[0], block)
    for section in SECTIONS
    for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
]


@pytest.mark.tofu
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("title", "script"), BLOCKS, ids=[title for title, _ in BLOCKS])
def test_the_commands_of_the_page_work(title: str, script: str, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    write_forked_program(programs / "stackyard")
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "first.json").write_text(text_of(edited(SMALL, datastore_default="local-lvm")))
    server = require_seaweed()
    new_bucket(server)
    with lab.running(nodes=("pve1",)) as running:
        env = {
            "STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path),
            "PROXMOX_VE_ENDPOINT": running.url,
            "PROXMOX_VE_API_TOKEN": running.api_token,
            "PROXMOX_VE_FINGERPRINT": running.fingerprint,
            "BUCKET": VERSIONED,
            "ENDPOINT": server.endpoint,
            "PATH": f"{programs}:{os.environ['PATH']}",
        }
        done = subprocess.run(
            ["bash", "-euc", script],
            cwd=folder,
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    assert done.returncode == 0, f"{title}\n{done.stdout}\n{done.stderr}"


def test_the_reference_names_every_default_and_setting() -> None:
    settings = {field.alias or name for name, field in SettingsFile.model_fields.items()}
    assert [name for name in settings if f"`{name}`" not in REFERENCE] == []
    assert [name for name in GUARDED if f"`{name}`" not in PAGE] == []
    derived = {"address", "gateway", "dns_servers", "mac", "vlan_tag", "ssh_keys", "ansible_connection"}
    kept = {"summary", "ha_affinity_group", "ha_replication_target"}
    names = {field.name for field in CONTAINER} - derived - kept
    assert [name for name in sorted(names) if f"`{name}" not in REFERENCE] == []


def test_the_schema_among_the_documents_is_the_shipped_one() -> None:
    assert (DOCS / "reference" / "schema" / "deployment.json").read_bytes() == read_schema()
