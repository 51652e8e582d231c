"""The pinned certificate as the only authority: of a real server, signed by an authority of its own."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import hashlib
import ipaddress
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from stackyard.clients import proxmox
from stackyard.clients.proxmox.certificate import CertificateNamesError, fetch_pinned_certificate

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)
TOKEN = "root@pam!tofu=3f2a9c1d-7b6e-4d5f-8a90-1b2c3d4e5f60"
ADDRESS = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))


@dataclass
class Server:
    """A TLS server as a node is one: its certificate is signed by the cluster's authority."""

    port: int = 0
    pem: bytes = b""
    fingerprint: str = ""
    received: list[bytes] = field(default_factory=list)

    def connection(self, host: str, fingerprint: str | None = None) -> proxmox.Connection:
        return proxmox.Connection(
            endpoint=f"https://{host}:{self.port}/",
            credentials=proxmox.Token(text=TOKEN),
            trust=proxmox.Trust(fingerprint=fingerprint or self.fingerprint),
        )

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            self.received.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 401 No ticket\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
        writer.close()


def name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def signed(folder: Path, names: list[x509.GeneralName], until: datetime.datetime) -> tuple[Path, bytes]:
    """Make an authority and a certificate by it; return a file with key and certificate, and the latter."""
    authority, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    built = (
        x509.CertificateBuilder()
        .subject_name(name("127.0.0.1"))
        .issuer_name(name("Proxmox Virtual Environment"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(until - 30 * DAY)
        .not_valid_after(until)
    )
    if names:
        built = built.add_extension(x509.SubjectAlternativeName(names), critical=False)
    pem = built.sign(authority, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "node.pem"
    path.write_bytes(private + pem)
    return path, pem


@contextlib.asynccontextmanager
async def node(
    folder: Path, *names: x509.GeneralName, until: datetime.datetime = NOW + DAY
) -> AsyncIterator[Server]:
    path, pem = signed(folder, list(names), until)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    server = Server(pem=pem, fingerprint=hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem.decode())).hexdigest())
    listening = await asyncio.start_server(server.answer, "127.0.0.1", 0, ssl=context)
    server.port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield server


async def test_the_pinned_certificate_is_returned_and_no_credential_is_sent(tmp_path: Path) -> None:
    async with node(tmp_path, ADDRESS) as server:
        assert (await fetch_pinned_certificate(server.connection("127.0.0.1"))).strip() == server.pem.strip()
        assert server.received
        assert not any(b"uthorization" in one or b"Cookie" in one for one in server.received)


async def test_another_certificate_is_refused(tmp_path: Path) -> None:
    async with node(tmp_path, ADDRESS) as server:
        with pytest.raises(proxmox.UntrustedServerError, match="not the one given") as caught:
            await fetch_pinned_certificate(server.connection("127.0.0.1", "00" * 32))
        assert not isinstance(caught.value, CertificateNamesError)


@pytest.mark.parametrize(
    ("names", "until", "why"),
    [
        ([x509.DNSName("pve1.example.org")], NOW + DAY, "not valid for '127.0.0.1'"),
        # A common name is no name for a program in Go.
        ([], NOW + DAY, "not valid for '127.0.0.1'"),
        ([ADDRESS], NOW - DAY, "expired"),
    ],
)
async def test_what_a_verifying_client_would_refuse_is_refused_first(
    tmp_path: Path, names: list[x509.GeneralName], until: datetime.datetime, why: str
) -> None:
    async with node(tmp_path, *names, until=until) as server:
        with pytest.raises(CertificateNamesError, match=why):
            await fetch_pinned_certificate(server.connection("127.0.0.1"))


async def test_a_server_that_is_not_there_is_named_in_plain_words(tmp_path: Path) -> None:
    async with node(tmp_path, ADDRESS) as server:
        connection = server.connection("127.0.0.1")
    with pytest.raises(proxmox.ProxmoxUnreachableError, match=r"Connection refused\.$"):
        await fetch_pinned_certificate(connection)
