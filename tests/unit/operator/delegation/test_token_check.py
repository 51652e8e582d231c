"""The check of a token on an inner host: only the API whose certificate is pinned is shown the token."""

from __future__ import annotations

import json
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from stackyard import lab
from stackyard.operator.delegation import credentials


def ask(running: lab.Running, token: str, pin: str) -> subprocess.CompletedProcess[str]:
    """Run the script of the check as an inner host does, with the port of a lab."""
    script = credentials._ASK.replace("8006", str(urlsplit(running.url).port))
    return subprocess.run(
        [sys.executable, "-I", "-c", script],
        input=f"{token}\n{pin}\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_token_is_shown_to_the_pinned_api_alone() -> None:
    with lab.running() as running:
        said = ask(running, running.api_token, running.fingerprint)
        assert (said.returncode, said.stderr) == (0, "")
        assert "VM.Allocate" in json.loads(said.stdout)
        assert ask(running, "root@pam!no=thing", running.fingerprint).stdout.strip() == "{}"
        before = running.world.journal.count
        wrong = ask(running, running.api_token, ":".join(["AB"] * 32))
        assert wrong.returncode == 1
        assert "another certificate" in wrong.stderr
        assert running.world.journal.count == before, "nothing was asked of it"


@pytest.mark.parametrize("word", ["_create_unverified_context", "urllib.request"])
def test_the_check_has_no_way_around_the_pin(word: str) -> None:
    assert word not in credentials._ASK
