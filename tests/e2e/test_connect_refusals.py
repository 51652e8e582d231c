"""What `stackyard connect` refuses: each with what to do about it, and nothing changed anywhere."""

from __future__ import annotations

import base64
import contextlib
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.support.connecting import Newcomer
from tests.support.ports import free_port

from pvelab.world.access.second_factors import Totp
from stackyard import lab
from stackyard.base import serving

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

SECRET = base64.b32encode(b"12345678901234567890").decode()
URI = f"otpauth://totp/lab?secret={SECRET}"


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Newcomer]:
    (tmp_path / "yard").mkdir()
    with lab.running(nodes=("pve1",)) as running:
        yield Newcomer(running=running, folder=tmp_path / "yard")


def refused(who: Newcomer, *arguments: str, status: int, **env: str) -> dict[str, Any]:
    """Connect, and prove that nothing is changed by it."""
    before = who.access(), who.files()
    error = who.error(*arguments, status=status, **env)
    assert (who.access(), who.files()) == before
    assert error["remedy"]
    return error


# --- The server


def test_a_certificate_that_nobody_vouches_for_is_refused_without_a_terminal(alone: Newcomer) -> None:
    ended = alone.run("connect", alone.running.url, "--user", "root@pam", "--json", status=1)
    error = ended.document["error"]
    assert error["code"] == "E-CONNECT-CERTIFICATE"
    assert f"--fingerprint {alone.running.fingerprint}" in error["remedy"]
    assert "CN=localhost" in ended.stderr


def test_another_certificate_than_the_one_given_is_refused_before_anything_is_sent(alone: Newcomer) -> None:
    calls = alone.running.on_loop(lambda: alone.running.world.journal.count)
    error = alone.error("--fingerprint", ":".join(["AB"] * 32), status=69)
    assert error["code"] == "E-PROXMOX-UNTRUSTED"
    assert alone.running.fingerprint in error["detail"]
    assert alone.running.on_loop(lambda: alone.running.world.journal.count) == calls


def test_nobody_at_the_address_is_said(alone: Newcomer) -> None:
    url = f"https://127.0.0.1:{free_port()}"
    error = alone.run("connect", url, "--user", "root@pam", "--json", status=69).document["error"]
    assert error["code"] == "E-PROXMOX-UNREACHABLE"
    assert url in error["detail"]


class _Page(BaseHTTPRequestHandler):
    body = b"<html>hello</html>"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class _BackupServer(_Page):
    body = b'{"data":[{"realm":"pam","type":"pam"},{"realm":"pbs","type":"pbs"}]}'


@contextlib.contextmanager
def other_server(handler: type[_Page], folder: Path, *, has_tls: bool = True) -> Iterator[tuple[str, str]]:
    """Run a server that is no Proxmox VE; give its address and the fingerprint of its certificate."""
    made = serving.make_certificate(["127.0.0.1"])
    (folder / "server.pem").write_bytes(made.key_pem + made.certificate_pem)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if has_tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(folder / "server.pem")
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"https://127.0.0.1:{server.server_address[1]}", made.fingerprint
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("handler", "said"),
    [(_Page, "is not a JSON object"), (_BackupServer, "a Proxmox Backup Server")],
    ids=["web", "backup"],
)
def test_another_server_is_recognised_before_a_password_is_sent(
    alone: Newcomer, tmp_path: Path, handler: type[_Page], said: str
) -> None:
    with other_server(handler, tmp_path) as (url, pin):
        given = ("--user", "root@pam", "--fingerprint", pin, "--json")
        error = alone.run("connect", url, *given, status=69).document["error"]
    assert error["code"] == "E-PROXMOX-OTHER-SERVER"
    assert said in error["detail"]
    assert "8006" in error["remedy"]


def test_a_server_without_tls_is_said(alone: Newcomer, tmp_path: Path) -> None:
    with other_server(_Page, tmp_path, has_tls=False) as (url, pin):
        given = ("--user", "root@pam", "--fingerprint", pin, "--json")
        error = alone.run("connect", url, *given, status=69).document["error"]
    assert error["code"] == "E-PROXMOX-UNREACHABLE"
    assert "does not speak TLS" in error["detail"]


# --- The login


def test_a_wrong_password_is_refused(alone: Newcomer) -> None:
    error = refused(alone, status=1, STACKYARD_PVE_PASSWORD="wrong-password")
    assert error["code"] == "E-PROXMOX-LOGIN"
    assert "password of root@pam" in error["remedy"]


def test_a_realm_that_is_not_there_is_named_with_those_that_are(alone: Newcomer) -> None:
    alone.api.access.domains.post(
        realm="corp", type="ldap", server1="ldap.home", base_dn="dc=home", user_attr="uid"
    )
    error = refused(alone, "--user", "ann@cord", status=65)
    assert error["code"] == "E-PROXMOX-REALM"
    assert "corp (ldap)" in error["detail"]
    assert refused(alone, "--user", "root", status=65)["code"] == "E-PROXMOX-REALM"


def test_a_login_without_a_terminal_needs_a_user_and_a_password(alone: Newcomer) -> None:
    pin = ("--fingerprint", alone.running.fingerprint)
    alone.run("connect", alone.running.url, *pin, status=64)
    missing = alone.run("connect", alone.running.url, *pin, "--user", "root@pam", status=64)
    assert "STACKYARD_PVE_PASSWORD" in missing.stderr


def test_a_secret_on_the_command_line_is_refused(alone: Newcomer) -> None:
    error = refused(alone, "--token", "ops@pve!ci=12345678-1234", status=64)
    assert error["code"] == "E-USAGE"
    assert "12345678-1234" not in str(error)


def second_factor(who: Newcomer) -> Totp:
    api, factor = who.api, Totp.parse(URI)
    value = factor.at(time.time() - 30)
    api.access.tfa("root@pam").post(type="totp", description="phone", totp=URI, value=value)
    return factor


def test_a_second_factor_is_asked_for_and_accepted(alone: Newcomer) -> None:
    factor, before = second_factor(alone), alone.files()
    pin = ("--fingerprint", alone.running.fingerprint, "--user", "root@pam", "--json")
    word = alone.running.password
    error = alone.run("connect", alone.running.url, *pin, status=1, STACKYARD_PVE_PASSWORD=word).document[
        "error"
    ]
    assert error["code"] == "E-PROXMOX-SECOND-FACTOR"
    assert "STACKYARD_PVE_OTP" in error["detail"]
    assert alone.files() == before
    code = factor.at(time.time())
    alone.run("connect", alone.running.url, *pin, STACKYARD_PVE_PASSWORD=word, STACKYARD_PVE_OTP=code)
    assert alone.token("pve1")


def test_locked_codes_are_explained(alone: Newcomer) -> None:
    factor = second_factor(alone)
    for _ in range(8):
        error = alone.error(status=1, STACKYARD_PVE_OTP="000000")
        assert error["code"] == "E-PROXMOX-SECOND-FACTOR"
    error = alone.error(status=1, STACKYARD_PVE_OTP=factor.at(time.time()))
    assert error["code"] == "E-PROXMOX-SECOND-FACTOR"
    assert "pveum user tfa unlock" in error["remedy"]
    assert alone.files() == {}


def test_a_user_who_may_not_create_tokens_learns_what_is_missing(alone: Newcomer) -> None:
    api = alone.api
    api.access.users.post(userid="ann@pve", password="secret-of-ann")
    api.access.acl.put(path="/", roles="PVEAdmin", users="ann@pve")
    error = refused(alone, "--user", "ann@pve", status=1, STACKYARD_PVE_PASSWORD="secret-of-ann")
    assert error["code"] == "E-CONNECT-PRIVILEGE"
    for grant in ("Sys.Modify on /access", "Permissions.Modify on /"):
        assert grant in error["detail"]
    assert "--print" in error["remedy"]
    api.access.acl.put(path="/", roles="Administrator", users="ann@pve")
    alone.connect("--user", "ann@pve", STACKYARD_PVE_PASSWORD="secret-of-ann")


def test_a_disabled_user_stays_disabled(alone: Newcomer) -> None:
    alone.connect()
    alone.api.access.users("stackyard@pve").put(enable=0)
    assert refused(alone, status=1)["code"] == "E-CONNECT-DISABLED"


# --- The cluster


def test_an_offline_node_is_refused_or_left_out(tmp_path: Path) -> None:
    (tmp_path / "yard").mkdir()
    with lab.running(nodes=("pve1", "pve2", "pve3")) as running:
        who = Newcomer(running=running, folder=tmp_path / "yard")
        running.add_fault("node-down", node="pve2")
        error = refused(who, status=69)
        assert error["code"] == "E-CONNECT-OFFLINE"
        assert "pve2" in error["detail"]
        assert "--node pve1,pve3" in error["remedy"]
        running.add_fault("node-down", node="pve3")
        assert refused(who, "--node", "pve1", status=1)["code"] == "E-CONNECT-QUORUM"
        running.remove_fault("node-down-2")
        done = who.connect("--node", "pve1", "--json").document
        assert list(done["site"]["nodes"]) == ["pve1"]


def test_nodes_that_are_not_there_are_named(alone: Newcomer) -> None:
    assert refused(alone, "--node", "pve9", status=65)["code"] == "E-CONNECT-NODE"
    assert refused(alone, "--feature", "gests", status=64)["code"] == "E-USAGE"
