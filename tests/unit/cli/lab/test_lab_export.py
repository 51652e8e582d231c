"""`stackyard lab export` says what is wrong before it reads anything."""

from __future__ import annotations

import json

import pytest
from tests.support.cli import stackyard


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (("--url", "https://pve.example.com:8006"), 64, "PROXMOX_VE_API_TOKEN"),
        (("--insecure",), 64, "--insecure is for a cluster that --url names"),
        (("--url", "https://127.0.0.1:9", "--token", "no token"), 65, "USER@REALM!NAME=SECRET"),
        (("--url", "http://127.0.0.1:9", "--token", "a@pve!b=c"), 65, "https://HOST:8006/"),
        (("--url", "https://127.0.0.1:9", "--token", "a@pve!b=c", "--insecure"), 69, "127.0.0.1"),
        (("--name", "nobody"), 69, "No lab 'nobody' is running"),
    ],
)
def test_what_cannot_be_read_is_refused(arguments: tuple[str, ...], status: int, text: str) -> None:
    ended = stackyard("lab", "export", "--json", *arguments)
    assert ended.status == status
    error = json.loads(ended.stdout)["error"]
    assert text in f"{error['detail']} {error['remedy']}"
    assert "a@pve!b=c" not in ended.stdout + ended.stderr
