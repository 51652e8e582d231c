"""A state behind other servers than ours: their own ways to lock, their certificates, their answers."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.state_documents import state_document

from stackyard.base.errors import BusyError, UsageError
from stackyard.base.serving import make_certificate
from stackyard.state import LockInfo, make_lock_info
from stackyard.state.moving import BackendError
from stackyard.state.moving.http_location import HttpLocation, HttpSettings

LOCK = make_lock_info(LockInfo(id="ours", who="us@here", operation="OperationTypeApply"))
OTHER = make_lock_info(LockInfo(id="theirs", who="they@there", operation="OperationTypeApply"))


class Backend:
    """A backend that locks as GitLab does: POST and DELETE below /lock."""

    def __init__(self) -> None:
        self.state = b""
        self.lock = b""
        self.status: int | None = None
        self.asked: list[tuple[str, str, str]] = []
        backend = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                backend.asked.append((self.command, self.path, self.headers.get("Authorization", "")))
                status, answer = backend.answer(self.command, self.path, body)
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        for method in ("GET", "POST", "PUT", "DELETE", "LOCK", "UNLOCK"):
            setattr(Handler, f"do_{method}", Handler.handle_any)
        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = int(self._http.server_address[1])

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        if self.status is not None:
            return self.status, b""
        if path.endswith("/lock"):
            if method == "DELETE":
                self.lock = b""
                return 200, b""
            if self.lock and json.loads(self.lock)["ID"] != json.loads(body)["ID"]:
                return 423, self.lock
            self.lock = body
            return 200, b""
        if method == "GET":
            return (200, self.state) if self.state else (204, b"")
        self.state = body
        return 201, b""

    @contextlib.contextmanager
    def running(self, context: ssl.SSLContext | None = None) -> Iterator[str]:
        if context is not None:
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"{'http' if context is None else 'https'}://127.0.0.1:{self.port}/state"
        finally:
            self._http.shutdown()
            thread.join()
            self._http.server_close()


def gitlab_environment(address: str) -> dict[str, str]:
    return {
        "TF_HTTP_ADDRESS": address,
        "TF_HTTP_LOCK_ADDRESS": f"{address}/lock",
        "TF_HTTP_UNLOCK_ADDRESS": f"{address}/lock",
        "TF_HTTP_LOCK_METHOD": "POST",
        "TF_HTTP_UNLOCK_METHOD": "DELETE",
        "TF_HTTP_UPDATE_METHOD": "PUT",
        "TF_HTTP_USERNAME": "me",
        "TF_HTTP_PASSWORD": "pass:word",
    }


def test_the_engines_own_variables_say_how_a_server_is_used() -> None:
    backend = Backend()
    with backend.running() as address:
        place = HttpLocation(HttpSettings.make(address, gitlab_environment(address)))
        place.lock(LOCK)
        assert place.read() is None
        place.write(state_document(1), LOCK)
        assert place.read() == state_document(1)
        place.unlock(LOCK)
    login = "Basic " + base64.b64encode(b"me:pass:word").decode()
    assert backend.asked == [
        ("POST", "/state/lock", login),
        ("GET", "/state", login),
        ("PUT", "/state?ID=ours", login),
        ("GET", "/state", login),
        ("DELETE", "/state/lock", login),
    ]


def test_the_variables_of_another_address_do_not_count() -> None:
    settings = HttpSettings.make("http://other/state", gitlab_environment("http://host/state"))
    assert (settings.lock_address, settings.lock_method) == ("http://other/state", "LOCK")


def test_a_conflict_names_the_holder() -> None:
    backend = Backend()
    backend.lock = OTHER.body()
    with backend.running() as address:
        place = HttpLocation(HttpSettings.make(address, gitlab_environment(address)))
        with pytest.raises(BusyError, match="they@there"):
            place.lock(LOCK)


def test_a_token_alone_is_sent_as_one() -> None:
    backend = Backend()
    with backend.running() as address:
        HttpLocation(HttpSettings.make(address, {}, credentials="syt_token\n")).read()
    assert backend.asked == [("GET", "/state", "Bearer syt_token")]


@pytest.mark.parametrize("status", [301, 401, 403, 409, 500, 503])
def test_an_answer_that_is_none_is_never_taken_for_an_empty_state(status: int) -> None:
    backend = Backend()
    backend.status = status
    with backend.running() as address:
        place = HttpLocation(HttpSettings.make(address, {}))
        with pytest.raises(BackendError, match=str(status)):
            place.read()
        with pytest.raises(BackendError, match=str(status)):
            place.write(state_document(1), LOCK)


def test_the_reason_of_a_server_of_ours_is_passed_on() -> None:
    backend = Backend()
    with backend.running() as address:
        place = HttpLocation(HttpSettings.make(address, {}))
        backend.answer = lambda *asked: (422, b'{"error":{"detail":"Not registered."}}')  # type: ignore[method-assign]
        with pytest.raises(BackendError, match=r"422 .* Not registered\."):
            place.lock(LOCK)


def test_a_server_that_is_not_there_is_unreachable() -> None:
    with pytest.raises(BackendError, match="cannot be reached"):
        HttpLocation(HttpSettings.make("http://127.0.0.1:1/state", {})).read()


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError) as caught:
        HttpSettings.make("https://me:hunter2@host/state", {})
    assert "hunter2" not in caught.value.detail


def test_a_certificate_counts_only_where_it_is_trusted(tmp_path: Path) -> None:
    certificate = make_certificate(["127.0.0.1"])
    (tmp_path / "pair.pem").write_bytes(certificate.key_pem + certificate.certificate_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pair.pem")
    backend = Backend()
    with backend.running(context) as address:
        with pytest.raises(BackendError, match="certificate"):
            HttpLocation(HttpSettings.make(address, {})).read()
        trusted = {"TF_HTTP_CLIENT_CA_CERTIFICATE_PEM": certificate.certificate_pem.decode()}
        assert HttpLocation(HttpSettings.make(address, trusted)).read() is None
        blind = {"TF_HTTP_SKIP_CERT_VERIFICATION": "true"}
        assert HttpLocation(HttpSettings.make(address, blind)).read() is None


def test_a_certificate_that_is_none_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="TF_HTTP_CLIENT"):
        HttpSettings.make("https://host/state", {"TF_HTTP_CLIENT_CA_CERTIFICATE_PEM": "nonsense"})
