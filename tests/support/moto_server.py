"""S3 and DynamoDB on loopback by moto: the server that STACKYARD_TEST_MOTO names, or one of our own.

moto is not among the development requirements. Install `moto[server,dynamodb,s3]` beside them, or start
`moto_server` anywhere and name it: `STACKYARD_TEST_MOTO=http://127.0.0.1:5000`.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from tests.support.ports import free_port
from tests.support.processes import PATIENCE_S

__all__ = ["VARIABLE", "moto_server"]

VARIABLE = "STACKYARD_TEST_MOTO"


@pytest.fixture(scope="session")
def moto_server() -> Iterator[str]:
    """The address of a server; skips where there is neither one nor moto."""
    given = os.environ.get(VARIABLE)
    if given:
        yield given
        return
    if importlib.util.find_spec("moto") is None:
        pytest.skip(f"{VARIABLE} names no server of moto, and moto is not installed")
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _await(address)
        yield address
    finally:
        process.terminate()
        process.wait()


def _await(address: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(f"{address}/moto-api/", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            assert time.monotonic() < until, f"{address} does not answer"
            time.sleep(0.05)
