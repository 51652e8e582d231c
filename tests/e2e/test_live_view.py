"""The live view of an apply, drawn while it runs: the picture that the README shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.support.cli import PROGRAM, stackyard
from tests.support.engine import real_engine
from tests.support.pictures import check_picture
from tests.support.screen import Screen, screenshot

from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.pictures, pytest.mark.timeout(300)]

# Guests boot for so long that the moment of the picture is not missed.
LATENCY = "create=0.1,start=0.1,boot=6"
VM = {"image": "debian-12", "cores": 2, "memory": 2048, "disk": 10}
CONTAINER = {"type": "ct", "image": "debian-13-ct", "cores": 1, "memory": 512, "disk": 4}
GUESTS = [
    {"name": "proxy", "vmid": 101, **CONTAINER},
    {"name": "dns", "vmid": 102, **CONTAINER},
    {"name": "web-1", "vmid": 111, **VM},
    {"name": "web-2", "vmid": 112, **VM},
    {"name": "database", "vmid": 120, **VM},
    {"name": "backup", "vmid": 130, **VM},
]
FAULT = (
    "method=POST",
    "path=/nodes/pve1/qemu/130/status/start",
    "status=500",
    "reason=storage is full",
)


def is_the_moment(screen: Screen) -> bool:
    shown = screen.text
    has_totals = "2 of 6 guests done, 1 failed" in shown
    return has_totals and shown.count("waiting for its guest agent") == 3 and "is full" in shown


def test_the_live_view_shows_a_row_a_guest_and_pins_a_failure(tmp_path: Path) -> None:
    env = {"STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path)}
    try:
        stackyard("lab", "up", "--port", "0", "--latency", LATENCY)
        stackyard("init", "yard", cwd=tmp_path)
        yard = tmp_path / "yard"
        document = {"node": "lab", "posture": "local", "vms": GUESTS}
        (yard / "envs" / "home.yaml").write_text(yaml.safe_dump(json.loads(json.dumps(document))))
        stackyard("lab", "faults", "add", "answer", *FAULT)
        argv = [*PROGRAM, "apply", "home", "--yes"]
        screen = screenshot(argv, yard, env, columns=100, rows=24, at=is_the_moment)
    finally:
        stackyard("lab", "down", "--all")
    rows = [line for line in screen.text.splitlines() if " s" in line]
    assert [row.split()[1] for row in rows if "✗" in row] == ["backup"]
    assert screen.text.index("backup") < screen.text.index("web-1") < screen.text.index("proxy")
    # One row a guest, the totals, and a line for each step.
    assert len(screen.text.splitlines()) <= len(GUESTS) + 5
    check_picture("live-view", screen, "$ stackyard apply home --yes")
