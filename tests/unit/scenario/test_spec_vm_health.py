"""The health check of a guest: a certificate is verified, by the pin or by the authorities."""

from __future__ import annotations

import http.server
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackyard.base.serving.certificate import make_certificate
from stackyard.scenario.actions.spec_vm import _HEALTH

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
CERTIFICATE = make_certificate(["127.0.0.1"])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    class Healthy(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"healthy")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    pem = tmp_path / "server.pem"
    pem.write_bytes(CERTIFICATE.key_pem + CERTIFICATE.certificate_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Healthy) as listening:
        listening.socket = context.wrap_socket(listening.socket, server_side=True)
        thread = threading.Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{listening.server_address[1]}"
        listening.shutdown()
        thread.join()


def look(folder: Path, server: str, pin: str) -> subprocess.CompletedProcess[str]:
    settings = folder / "guest.env"
    settings.write_text(f"STACKYARD_SERVER={server}\nSTACKYARD_PIN={pin}\n")
    script = _HEALTH.format(settings=settings)
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=False)


def test_the_pinned_server_is_healthy(tmp_path: Path, server: str) -> None:
    done = look(tmp_path, server, CERTIFICATE.pin)
    assert (done.returncode, done.stdout) == (0, "healthy"), done.stderr


@pytest.mark.parametrize("pin", ["", make_certificate(["127.0.0.1"]).pin], ids=["none", "other"])
def test_another_server_is_not(tmp_path: Path, server: str, pin: str) -> None:
    done = look(tmp_path, server, pin)
    assert done.returncode != 0
    assert "healthy" not in done.stdout


def test_a_plain_connection_is_not(tmp_path: Path) -> None:
    assert look(tmp_path, "http://127.0.0.1:9", "").returncode == 1
