"""Storages: keys and passwords are where they belong, and a configuration that cannot be is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.provider_bench import Failed, bench

from stackyard import lab

PBS = "proxmox_storage_pbs"
SERVER = {
    "id": "backups",
    "server": "10.0.0.40",
    "datastore": "one",
    "username": "writer@pbs",
    "password": "canary-password",
}


async def test_a_key_that_was_lost_on_the_way_is_made_again() -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it:
        running.add_fault("drop", when="after", method="POST", path="/storage", times=1)
        made = await it.apply(PBS, **SERVER, generate_encryption_key=True)
        assert made["encryption_key_fingerprint"] in made["generated_encryption_key"]
        assert await it.is_settled(PBS, **SERVER, generate_encryption_key=True)


async def test_no_password_of_a_storage_gets_into_the_journal(tmp_path: Path) -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running, journal=tmp_path) as it:
        running.add_fault("drop", when="after", method="POST", path="/storage")
        await it.apply(PBS, **SERVER)
        written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        assert b"writer@pbs" in written
        assert b"canary" not in written


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (PBS, {**SERVER, "encryption_key": "{}", "generate_encryption_key": True}, "exclude each other"),
    (PBS, {**SERVER, "content": ["tapes"]}, "tapes"),
    (PBS, {**SERVER, "content": []}, "must name what the storage holds"),
    ("proxmox_hardware_mapping_dir", {"name": "one", "map": []}, "an entry"),
    (
        "proxmox_hardware_mapping_pci",
        {"name": "one", "map": [{"node": "n", "path": "1", "id": "8086:1521"}]},
        "where the device is",
    ),
    (
        "proxmox_metrics_server",
        {"name": "one", "server": "s", "port": 1, "type": "influxdb", "influx_token_wo_version": 1},
        "influx_token_wo",
    ),
]


async def test_what_cannot_be_is_refused_by_name() -> None:
    async with lab.start(nodes=("pve1",)) as running, bench(running) as it:
        for name, config, words in REFUSED:
            with pytest.raises(Failed, match=words):
                it.plan(name, **config)
