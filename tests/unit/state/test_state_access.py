"""Who may do what, over HTTP: credentials, rights by prefix, certificates, limits, what is open to all."""

from __future__ import annotations

import asyncio
import datetime
import ssl
import threading
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.support.processes import PATIENCE_S
from tests.support.state_client import Client, basic, lock_body, served, state_body

from stackyard.base import serving
from stackyard.clients.objects import MemoryObjects
from stackyard.state import Access, Actor, AuditAction, Policy, Principal, PrincipalError, Right, StateService
from stackyard.state.http import Authenticator, StateApp, Throttle
from stackyard.state.http.throttle import ThrottleLimits

ME = Actor(principal="tests")


def make_service(policy: Policy | None = None) -> StateService:
    return StateService(MemoryObjects(), policy)


async def test_basic_and_bearer_credentials_are_taken_and_wrong_ones_are_not() -> None:
    service = make_service()
    _, token = service.principals.add("ci", [Access(rights=(Right.READ,))], ME)
    async with served(service) as client:
        for headers, status in (
            (basic("ci", token), 404),
            ({"Authorization": f"Bearer {token}"}, 404),
            (basic("ci", token + "x"), 401),
            (basic("other", token), 401),
            (basic("", token), 404),
            ({"Authorization": "Bearer wrong"}, 401),
            ({"Authorization": "Basic %%%"}, 401),
            ({"Authorization": "Negotiate x"}, 401),
            ({}, 401),
        ):
            client.headers = headers
            reply = await client.get("a")
            assert reply.status == status, headers
            assert ("WWW-Authenticate" in reply.headers) == (status == 401)
    notes = [entry.detail for entry in service.audit.entries("") if entry.action is AuditAction.LOGIN_REFUSED]
    assert len(notes) == 5
    assert all(token not in note for note in notes)


async def test_a_principal_does_what_it_may_where_it_may() -> None:
    service = make_service(Policy(empty_unlock=True))
    access = [
        Access(prefix="prod", rights=(Right.READ,)),
        Access(prefix="dev", rights=(Right.READ, Right.WRITE, Right.LOCK)),
    ]
    _, token = service.principals.add("ci", access, ME)
    async with served(service) as admin:
        await admin.cycle("prod/net", 1)
        ci = Client(admin.session, admin.url, basic("ci", token))
        assert (await ci.get("prod/net")).status == 200
        assert (await ci.lock("prod/net", lock_body())).status == 403
        assert (await ci.post("prod/net", state_body(2))).status == 403
        assert (await ci.get("production")).status == 403
        await ci.cycle("dev/net", 1)
        lock = lock_body()
        await ci.lock("dev/net", lock)
        assert (await ci.unlock("dev/net", b"")).status == 403
        assert (await admin.unlock("dev/net", b"")).status == 200


async def test_nobody_takes_the_place_of_the_administrator_of_the_process() -> None:
    service = make_service()
    _, token = service.principals.add("admin", [Access(rights=(Right.READ,))], ME)
    async with served(service) as client:
        await client.cycle("a", 1)
        client.headers = basic("admin", token)
        assert (await client.get("a")).status == 401


async def test_a_removed_principal_and_an_expired_one_are_refused() -> None:
    service = make_service()
    _, token = service.principals.add("ci", [Access(rights=(Right.READ,))], ME)
    _, short = service.principals.add("short", [Access(rights=(Right.READ,))], ME, lasts_s=-1.0)
    service.principals.remove("ci", ME)
    async with served(service) as client:
        for headers in (basic("ci", token), basic("short", short), {"Authorization": f"Bearer {short}"}):
            client.headers = headers
            assert (await client.get("a")).status == 401


def test_a_principal_needs_a_name_and_rights() -> None:
    service = make_service()
    for name, access in (
        ("", [Access(rights=(Right.READ,))]),
        ("a:b", [Access(rights=(Right.READ,))]),
        ("ok", []),
    ):
        with pytest.raises(PrincipalError):
            service.principals.add(name, access, ME)
    with pytest.raises(PrincipalError):
        service.principals.remove("nobody", ME)
    assert service.principals.all() == ()


async def test_who_guesses_is_slowed_down_and_right_credentials_are_not() -> None:
    limits = ThrottleLimits(failures=3, address_failures=100, window_s=1000.0, delay_s=0.01)
    async with served(make_service(), throttle=Throttle(limits)) as client:
        right = dict(client.headers)
        client.headers = basic("admin", "guess")
        replies = [await client.get("a") for _ in range(5)]
        assert [reply.status for reply in replies] == [401, 401, 401, 429, 429]
        assert int(replies[-1].headers["Retry-After"]) > 0
        assert replies[-1].headers["Connection"] == "close"
        client.headers = right
        assert (await client.get("a")).status == 404
        client.headers = basic("other", "guess")
        assert (await client.get("a")).status == 401


@pytest.mark.parametrize("wrong", ["Bearer wrong", "Negotiate x", "Basic %%%", "Digest", "x" * 3000])
async def test_every_way_to_show_wrong_credentials_counts_for_its_address(wrong: str) -> None:
    limits = ThrottleLimits(failures=1000, address_failures=6, window_s=1000.0, delay_s=0.01)
    async with served(make_service(), throttle=Throttle(limits)) as client:
        for number in range(3):
            client.headers = {"Authorization": wrong}
            assert (await client.get("a")).status == 401
            client.headers = basic(f"name-{number}", "guess")
            assert (await client.get("a")).status == 401
        assert (await client.get("a")).status == 429
        client.headers = {"Authorization": wrong}
        assert (await client.get("a")).status == 429


async def test_a_principal_that_asks_too_often_is_told_to_wait() -> None:
    throttle = Throttle(ThrottleLimits(requests_per_s=0.001, burst=2))
    async with served(make_service(), throttle=throttle) as client:
        assert [(await client.get("a")).status for _ in range(3)] == [404, 404, 429]


async def test_health_and_metrics_are_open_and_tell_no_name() -> None:
    async with served(make_service()) as client:
        await client.cycle("secret-name", 1)
        await client.lock("secret-name", lock_body(who="alice@desk"))
        await client.lock("secret-name", lock_body())
        client.headers = {}
        assert (await client.request("GET", "/health")).document == {"status": "ok"}
        text = (await client.request("GET", "/metrics")).body.decode()
        assert "stackyard_state_locks_granted_total 2" in text
        assert "stackyard_state_lock_conflicts_total 1" in text
        assert 'stackyard_state_requests_total{method="POST",status="200"} 1' in text
        assert "secret-name" not in text
        assert "alice" not in text


def make_client_certificate(name: str) -> serving.Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(
        issuer_name=subject,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - datetime.timedelta(days=1),
        not_valid_after=now + datetime.timedelta(days=1),
    )
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return serving.Certificate(
        certificate_pem=builder.sign(key, hashes.SHA256()).public_bytes(encoding),
        key_pem=key.private_bytes(encoding, form, serialization.NoEncryption()),
    )


async def test_a_client_certificate_logs_in_by_its_name(tmp_path: Path) -> None:
    mine, other = make_client_certificate("robot"), make_client_certificate("stranger")
    files = {}
    for name, made in (("mine", mine), ("other", other)):
        files[name] = tmp_path / f"{name}.pem"
        files[name].write_bytes(made.key_pem + made.certificate_pem)
    shown = serving.make_certificate(["localhost", "127.0.0.1"])
    service = make_service()
    service.principals.add("robot", [Access(rights=(Right.READ,))], ME, certificate="robot")
    tls = serving.Tls(shown, client_authorities_pem=mine.certificate_pem + other.certificate_pem)

    async def ask(url: str, name: str | None) -> int:
        context = ssl.create_default_context(cadata=shown.certificate_pem.decode())
        if name is not None:
            context.load_cert_chain(files[name])
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
            session.get(f"{url}/states/a") as reply,
        ):
            return reply.status

    app = StateApp(service, Authenticator(service.principals))
    async with serving.serve(app.handle, tls=tls) as server:
        assert [await ask(server.url, name) for name in ("mine", "other", None)] == [404, 401, 401]
    app.close()


async def test_slow_and_idle_clients_hold_up_nobody() -> None:
    limits = serving.ServerLimits(header_timeout_s=1.0, body_timeout_s=0.5, max_connections=200)
    async with served(make_service(), limits=limits) as client:
        port = int(client.url.rpartition(":")[2])
        slow = [await asyncio.open_connection("127.0.0.1", port) for _ in range(300)]
        for _, writer in slow[:50]:
            writer.write(b"LOCK /states/a HTTP/1.1\r\nHost: x\r\nContent-Le")
        await client.cycle("a", 1)
        assert (await client.get("a")).status == 200
        ended = [asyncio.wait_for(reader.read(), 60) for reader, _ in slow[:50]]
        # None of them is answered; each is closed, or told that it took too long.
        for said in await asyncio.gather(*ended, return_exceptions=True):
            assert isinstance(said, ConnectionError | bytes)
            assert isinstance(said, ConnectionError) or said[:12] in (b"", b"HTTP/1.1 408")
        for _, writer in slow:
            writer.transport.abort()


def test_the_representation_of_a_principal_tells_no_token() -> None:
    service = make_service()
    principal, token = service.principals.add("ci", [Access(rights=(Right.READ,))], ME)
    assert token not in repr(principal)
    assert isinstance(principal, Principal)
    assert principal.may(Right.READ, "any/state")
    assert not principal.may(Right.WRITE, "any/state")


def test_many_who_ask_for_the_health_leave_threads_to_those_who_log_in() -> None:
    service, looking, is_back = make_service(), threading.Event(), threading.Event()
    listing = service.objects.list

    def stalled(*arguments: Any, **options: Any) -> Any:
        looking.set()
        assert is_back.wait(PATIENCE_S)
        return listing(*arguments, **options)

    async def run() -> list[int]:
        async with served(service) as client:
            asked = [asyncio.create_task(client.request("GET", "/health")) for _ in range(100)]
            await asyncio.to_thread(looking.wait, PATIENCE_S)
            try:
                async with asyncio.timeout(PATIENCE_S / 2):
                    assert (await client.get("a")).status == 404
            finally:
                is_back.set()
            return [reply.status for reply in await asyncio.gather(*asked)]

    service.objects.list = stalled  # type: ignore[method-assign]
    assert asyncio.run(run()) == [200] * 100
