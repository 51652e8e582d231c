"""Engines for tests: the real ones, broken ones, and a state backend with faults."""

from __future__ import annotations

import asyncio
import functools
import http.server
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.judges import JUDGES

from stackyard.base.errors import StackyardError
from stackyard.engine.tools.find import find_engine
from stackyard.engine.version import Engine, Flavour, Version, probe_version, require_supported
from stackyard.engine.workdir import Limits, Workdir

PROBE_TIMEOUT_S = 60.0


@functools.cache
def find_real(flavour: Flavour) -> Engine | str:
    """Return the engine to test with, or why there is none; one that is named must work."""
    named = os.environ.get("STACKYARD_TEST_TOFU")
    if flavour is Flavour.TOFU and named:
        return _probe(Path(named))
    try:
        return _find_tofu() if flavour is Flavour.TOFU else _find_terraform()
    except StackyardError as err:
        return f"no {flavour.label} to test with: {err.detail}"


def _find_tofu() -> Engine | str:
    found = asyncio.run(find_engine(timeout_s=PROBE_TIMEOUT_S)).engine
    if found.flavour is not Flavour.TOFU:
        return "no OpenTofu found; name one in STACKYARD_TEST_TOFU or run `stackyard tools install tofu`"
    return found


def _find_terraform() -> Engine | str:
    named = os.environ.get(JUDGES["terraform"].variable)
    return _probe(Path(named)) if named else f"no terraform to test with: {JUDGES['terraform'].advice}"


def _probe(path: Path) -> Engine:
    flavour, version = asyncio.run(probe_version(path, PROBE_TIMEOUT_S))
    return require_supported(Engine(path=path, flavour=flavour, version=version))


def real_engine(flavour: Flavour) -> Engine:
    """Return the engine, or skip the test and say why."""
    found = find_real(flavour)
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture(
    params=[
        pytest.param(Flavour.TOFU, marks=pytest.mark.tofu, id="tofu"),
        pytest.param(Flavour.TERRAFORM, marks=pytest.mark.terraform, id="terraform"),
    ]
)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Give each of the real engines in turn."""
    flavour: Flavour = request.param
    return real_engine(flavour)


@pytest.fixture(
    name="engine",
    params=[
        pytest.param(Flavour.TOFU, marks=pytest.mark.tofu, id="tofu"),
        pytest.param(Flavour.TERRAFORM, marks=[pytest.mark.terraform, pytest.mark.soak], id="terraform"),
    ],
)
def usual_engine(request: pytest.FixtureRequest) -> Engine:
    """Give OpenTofu, and Terraform in the long runs: where other tests show that both do the same."""
    flavour: Flavour = request.param
    return real_engine(flavour)


def scripted_engine(folder: Path, script: str, flavour: Flavour = Flavour.TOFU) -> Engine:
    """Make a program that stands where an engine should and does what the shell script says."""
    path = folder / "engine"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return Engine(path=path, flavour=flavour, version=Version(1, 12, 6))


def write_root(folder: Path, text: str) -> None:
    """Write the root module of a configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.tf").write_text(text)


def workdir_in(engine: Engine, folder: Path, **fields: Any) -> Workdir:
    """Give a folder to run the engine in, with a long but finite time for everything."""
    return Workdir(engine=engine, folder=folder, **{"limits": Limits(read_s=100.0, work_s=100.0), **fields})


class StateServer:
    """A backend for `backend "http"` that keeps one state and fails where it is told to.

    Attributes:
        state: What it keeps.
        faults: The status to answer a method with, in place of the work.
        lock: The holder to name in a lock conflict.
    """

    def __init__(self) -> None:
        self.state: bytes | None = None
        self.faults: dict[str, int] = {}
        self.lock = b""
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, answer = server.answer(self.command, body)
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing: the tests look at what the engine makes of it."""

        for method in ("GET", "POST", "LOCK", "UNLOCK"):
            setattr(Handler, f"do_{method}", Handler.handle_any)
        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._http.server_address[1]}/state"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05})

    def answer(self, method: str, body: bytes) -> tuple[int, bytes]:
        if method in self.faults:
            return self.faults[method], self.lock
        if method == "GET":
            return (404, b"") if self.state is None else (200, self.state)
        if method == "POST":
            self.state = body
        return 200, b""

    def __enter__(self) -> StateServer:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    @property
    def environment(self) -> dict[str, str]:
        """The settings of the backend, as the engine reads them."""
        return {
            "TF_HTTP_ADDRESS": self.address,
            "TF_HTTP_LOCK_ADDRESS": self.address,
            "TF_HTTP_UNLOCK_ADDRESS": self.address,
            "TF_HTTP_RETRY_MAX": "0",
        }


@pytest.fixture
def state_server() -> Iterator[StateServer]:
    """Give a running state backend."""
    with StateServer() as server:
        yield server
