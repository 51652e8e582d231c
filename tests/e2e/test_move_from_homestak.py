"""The how-to for those who come from homestak is true: its commands run, on sites in both of its layouts."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import stackyard
from tests.support.engine import real_engine
from tests.support.forking import write_forked_program
from tests.support.homestak_site import NEWEST, WITH_ENVS, write_layout
from tests.support.lab_inside import has_sandbox

from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "move-from-homestak.md").read_text()
REHEARSE, TAKE_OVER = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def reader(tmp_path: Path, home: Path) -> Iterator[dict[str, str]]:
    """Give the environment of somebody who has an SSH key, and no lab yet."""
    write_forked_program(tmp_path / "bin" / "stackyard")
    keys = home / ".ssh"
    keys.mkdir(parents=True, mode=0o700)
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / "id_ed25519")], check=True
    )
    env = {
        **os.environ,
        "STACKYARD_TOFU": str(real_engine(Flavour.TOFU).path),
        "HOME": str(home),
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
    }
    yield env
    stackyard("lab", "down", cwd=tmp_path, env=env)


def typed(script: str, folder: Path, env: dict[str, str]) -> str:
    """Run what a page shows, and return what it printed."""
    # Tests run side by side, each with a lab of its own.
    script = script.replace("stackyard lab up", "stackyard lab up --port 0")
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


def test_a_site_of_the_newest_layout_is_rehearsed(tmp_path: Path, reader: dict[str, str]) -> None:
    write_layout(tmp_path / "site-config", NEWEST)
    # A spec is applied by commands in the guest, which the lab runs in sandboxes only.
    script = REHEARSE if has_sandbox() else REHEARSE.partition("stackyard test")[0]
    said = typed(script, tmp_path, reader)
    assert "VM edge (99001 on pve1)" in said
    assert ("test of n1-push on lab: passed" in said) is has_sandbox()


def test_a_site_with_envs_is_rehearsed_and_its_guests_are_taken_over(
    tmp_path: Path, reader: dict[str, str]
) -> None:
    write_layout(tmp_path / "site-config", WITH_ENVS)
    typed(REHEARSE.partition("stackyard plan")[0], tmp_path, reader)
    site = tmp_path / "rehearsal"
    typed(
        "stackyard apply dev -H lab; stackyard plan k8s -H lab; stackyard plan manifest:old -H lab",
        site,
        reader,
    )
    # The state of whoever made them is not here.
    (site / ".stackyard").rename(tmp_path / "elsewhere")
    refused = stackyard("apply", "dev", "-H", "lab", cwd=site, env=reader)
    assert refused.status == 1
    assert "--adopt" in refused.stderr
    said = typed(TAKE_OVER, site, reader)
    assert "Nothing to change" in said
