"""Client certificates of the state service: those count that an authority of today signed for clients."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from stackyard.base import serving
from stackyard.base.errors import StackyardError
from stackyard.clients.objects import MemoryObjects
from stackyard.state import Access, Actor, Right, StateService
from stackyard.state.daemon import DaemonOptions, RunningDaemon, daemon
from stackyard.state.http import Authenticator, StateApp
from stackyard.state.principals import Principal, find_by_certificate

ME = Actor(principal="tests")
DAY = datetime.timedelta(days=1)
# The request did not get as far as an answer.
REFUSED = 0


@dataclass(frozen=True)
class Issued:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def pair(self) -> bytes:
        form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        return self.key.private_bytes(serialization.Encoding.PEM, form, none) + self.pem


def issue(
    name: str,
    by: Issued | None = None,
    *,
    is_authority: bool = False,
    usage: x509.ObjectIdentifier = ExtendedKeyUsageOID.CLIENT_AUTH,
    begins: datetime.timedelta = -DAY,
    ends: datetime.timedelta = DAY,
) -> Issued:
    """Return a certificate, signed by another one or by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(
        issuer_name=subject if by is None else by.certificate.subject,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now + begins,
        not_valid_after=now + ends,
    )
    builder = builder.add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    if not is_authority:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    return Issued(builder.sign(key if by is None else by.key, hashes.SHA256()), key)


def robot_signed_by_a_client(authority: Issued) -> bytes:
    client = issue("client", authority)
    return issue("robot", client).pair + client.pem


SERVER = ExtendedKeyUsageOID.SERVER_AUTH
CLIENTS: dict[str, Callable[[Issued], bytes]] = {
    "the right one": lambda authority: issue("robot", authority).pair,
    "expired": lambda authority: issue("robot", authority, begins=-2 * DAY, ends=-DAY).pair,
    "not valid yet": lambda authority: issue("robot", authority, begins=DAY, ends=2 * DAY).pair,
    "signed by itself": lambda authority: issue("robot").pair,
    "of an authority of the same name": lambda authority: (
        issue("robot", issue("authority", is_authority=True)).pair
    ),
    "for servers": lambda authority: issue("robot", authority, usage=SERVER).pair,
    "signed by a client": robot_signed_by_a_client,
    "of somebody else": lambda authority: issue("stranger", authority).pair,
}
ANSWERS = {"the right one": 404, "of somebody else": 401}


async def ask(running: RunningDaemon, ca: bytes, pair: Path | None, *, tls12: bool = False) -> int:
    context = ssl.create_default_context(cadata=ca.decode())
    if tls12:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if pair is not None:
        context.load_cert_chain(pair)
    try:
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
            session.get(f"{running.url}/states/a") as reply,
        ):
            return reply.status
    except (aiohttp.ClientError, ConnectionError, ssl.SSLError):
        return REFUSED


def options_of(tmp_path: Path, authority: Issued, *, is_required: bool = True) -> DaemonOptions:
    (tmp_path / "authorities.pem").write_bytes(authority.pem)
    return DaemonOptions(
        data=tmp_path / "data", client_ca=tmp_path / "authorities.pem", require_client_cert=is_required
    )


def own_certificate(options: DaemonOptions) -> bytes:
    return (options.data / "certificate" / "server.crt").read_bytes()


def add_robot(running: RunningDaemon) -> None:
    running.service.principals.add("robot", [Access(rights=(Right.READ,))], ME, certificate="robot")


@pytest.mark.parametrize("tls12", [False, True])
@pytest.mark.parametrize("is_required", [True, False])
@pytest.mark.parametrize("client", CLIENTS)
async def test_only_a_certificate_that_an_authority_signed_for_a_client_logs_in(
    tmp_path: Path, client: str, is_required: bool, tls12: bool
) -> None:
    authority = issue("authority", is_authority=True)
    options, pair = options_of(tmp_path, authority, is_required=is_required), tmp_path / "client.pem"
    pair.write_bytes(CLIENTS[client](authority))

    async with daemon(options) as running:
        add_robot(running)
        ca = own_certificate(options)
        assert await ask(running, ca, pair, tls12=tls12) == ANSWERS.get(client, REFUSED)
        assert await ask(running, ca, None, tls12=tls12) == (REFUSED if is_required else 401)


async def test_the_certificate_of_a_removed_principal_ends_on_an_open_connection(tmp_path: Path) -> None:
    authority = issue("authority", is_authority=True)
    options, pair = options_of(tmp_path, authority), tmp_path / "client.pem"
    pair.write_bytes(issue("robot", authority).pair)

    async with daemon(options) as running:
        add_robot(running)
        context = ssl.create_default_context(cadata=own_certificate(options).decode())
        context.load_cert_chain(pair)
        connector = aiohttp.TCPConnector(ssl=context, limit=1)
        async with aiohttp.ClientSession(connector=connector) as session:
            statuses = []
            for is_removed in (False, True):
                if is_removed:
                    running.service.principals.remove("robot", ME)
                    running.reload()
                async with session.get(f"{running.url}/states/a") as reply:
                    statuses.append(reply.status)
        assert statuses == [404, 401]


async def test_a_certificate_that_expires_on_an_open_connection_ends_there(tmp_path: Path) -> None:
    authority, now = issue("authority", is_authority=True), [0.0]
    pair = tmp_path / "client.pem"
    pair.write_bytes(issue("robot", authority).pair)
    shown = serving.make_certificate(["localhost", "127.0.0.1"])
    service = StateService(MemoryObjects())
    service.principals.add("robot", [Access(rights=(Right.READ,))], ME, certificate="robot")
    tls = serving.Tls(shown, client_authorities_pem=authority.pem, require_client_certificate=True)

    app = StateApp(service, Authenticator(service.principals, clock=lambda: now[0]))
    context = ssl.create_default_context(cadata=shown.certificate_pem.decode())
    context.load_cert_chain(pair)
    async with (
        serving.serve(app.handle, tls=tls) as server,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context, limit=1)) as session,
    ):
        statuses = []
        for days in (0, 2):
            now[0] = (datetime.datetime.now(datetime.UTC) + days * DAY).timestamp()
            async with session.get(f"{server.url}/states/a") as reply:
                statuses.append(reply.status)
    app.close()
    assert statuses == [404, 401]


def remove(path: Path) -> None:
    path.unlink()


BREAKS: dict[str, Callable[[Path], object]] = {
    "gone": remove,
    "empty": lambda path: path.write_bytes(b""),
    "no PEM": lambda path: path.write_text("authority\n"),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:200]),
    "not ASCII": lambda path: path.write_bytes(b"\xff\xfe" + path.read_bytes()),
    "a key": lambda path: path.write_bytes(
        issue("x").pair.split(b"-----END PRIVATE KEY-----")[0] + b"-----END PRIVATE KEY-----\n"
    ),
}


@pytest.mark.parametrize("how", BREAKS)
async def test_authorities_that_cannot_be_read_leave_the_old_ones_and_open_nothing(
    tmp_path: Path, how: str
) -> None:
    authority = issue("authority", is_authority=True)
    options, pair = options_of(tmp_path, authority), tmp_path / "client.pem"
    pair.write_bytes(issue("robot", authority).pair)

    async with daemon(options) as running:
        add_robot(running)
        BREAKS[how](tmp_path / "authorities.pem")
        with pytest.raises(StackyardError):
            running.reload()
        ca = own_certificate(options)
        assert [await ask(running, ca, one) for one in (pair, None)] == [404, REFUSED]
    with pytest.raises(StackyardError):
        async with daemon(options):
            raise AssertionError("it started")


async def test_a_new_authority_takes_the_place_of_the_old_one_at_the_reload(tmp_path: Path) -> None:
    old, new = (issue("authority", is_authority=True) for _ in range(2))
    options = options_of(tmp_path, old)
    pairs = [tmp_path / "old.pem", tmp_path / "new.pem"]
    for pair, authority in zip(pairs, (old, new), strict=True):
        pair.write_bytes(issue("robot", authority).pair)

    async with daemon(options) as running:
        add_robot(running)
        ca = own_certificate(options)
        assert [await ask(running, ca, pair) for pair in pairs] == [404, REFUSED]
        (tmp_path / "authorities.pem").write_bytes(new.pem)
        running.reload()
        assert [await ask(running, ca, pair) for pair in pairs] == [REFUSED, 404]


def test_a_name_that_is_spelled_like_a_fingerprint_is_none() -> None:
    """An authority that lets clients choose their names must not let them choose somebody's certificate."""
    fingerprint = ":".join(["AB"] * 32)
    robot = Principal(name="robot", access=(Access(rights=(Right.READ,)),), certificate=fingerprint)
    assert find_by_certificate((robot,), "robot", fingerprint, 0.0) is robot
    assert find_by_certificate((robot,), fingerprint, ":".join(["CD"] * 32), 0.0) is None
