"""TLS: versions, who the client is, changing the certificate."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from pathlib import Path

import pytest
import requests
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.unit.base.serving.clients import connected, echo, localhost_certificate, run, trusting

from stackyard.base.serving import (
    Certificate,
    CertificateError,
    PeerCertificate,
    Tls,
    make_certificate,
    peer_certificate,
    respond,
    serve,
)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_of_tls_are_spoken_with_a_verified_certificate(version: ssl.TLSVersion) -> None:
    async def main() -> None:
        certificate = localhost_certificate()
        context = trusting(certificate, version)
        async with serve(echo, tls=Tls(certificate)) as server, connected(server, context) as client:
            assert (await client.get("/x")).body == b"GET /x "
            spoken = client.writer.get_extra_info("ssl_object").version()
        assert spoken == {"TLSv1_2": "TLSv1.2", "TLSv1_3": "TLSv1.3"}[version.name]

    run(main())


def test_older_tls_is_refused() -> None:
    async def main() -> None:
        certificate = localhost_certificate()
        context = trusting(certificate)
        context.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.warns(DeprecationWarning, match="TLSv1"):
            context.minimum_version = ssl.TLSVersion.TLSv1
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            context.maximum_version = ssl.TLSVersion.TLSv1_1
        async with serve(echo, tls=Tls(certificate)) as server:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                async with connected(server, context):
                    pass

    run(main())


def test_only_http_1_1_is_offered() -> None:
    async def main() -> None:
        certificate = localhost_certificate()
        context = trusting(certificate)
        context.set_alpn_protocols(["h2", "http/1.1"])
        async with serve(echo, tls=Tls(certificate)) as server, connected(server, context) as client:
            chosen = client.writer.get_extra_info("ssl_object").selected_alpn_protocol()
            assert chosen == "http/1.1"

    run(main())


def test_certificate_is_its_own_authority_file_for_requests(tmp_path: Path) -> None:
    async def main() -> None:
        certificate = localhost_certificate()
        authority = tmp_path / "ca.pem"
        authority.write_bytes(certificate.certificate_pem)
        async with serve(echo, tls=Tls(certificate)) as server:
            for host in ("localhost", "127.0.0.1"):
                url = f"https://{host}:{server.port}/x"
                reply = await asyncio.to_thread(requests.get, url, verify=str(authority), timeout=20)
                assert reply.status_code == 200

    run(main())


def test_plain_client_on_a_tls_port_harms_nobody() -> None:
    async def main() -> None:
        certificate = localhost_certificate()
        async with serve(echo, tls=Tls(certificate)) as server:
            async with connected(server) as client:
                await client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                await client.rest()
            async with connected(server, trusting(certificate)) as client:
                assert (await client.get()).status == 200

    run(main())


def test_certificate_is_changed_without_dropping_anybody() -> None:
    async def main() -> None:
        old, new = localhost_certificate(), localhost_certificate()
        async with serve(echo, tls=Tls(old)) as server, connected(server, trusting(old)) as before:
            await before.get()
            server.reload(Tls(new))
            assert server.fingerprint == new.fingerprint
            async with connected(server, trusting(new)) as after:
                assert (await after.get()).status == 200
            with pytest.raises(ssl.SSLCertVerificationError):
                async with connected(server, trusting(old)):
                    pass
            assert (await before.get()).status == 200

    run(main())


def test_unusable_new_certificate_leaves_the_old_one() -> None:
    async def main() -> None:
        old, other = localhost_certificate(), localhost_certificate()
        mixed = Certificate(certificate_pem=old.certificate_pem, key_pem=other.key_pem)
        async with serve(echo, tls=Tls(old)) as server:
            with pytest.raises(CertificateError):
                server.reload(Tls(mixed))
            assert server.fingerprint == old.fingerprint
            async with connected(server, trusting(old)) as client:
                assert (await client.get()).status == 200

    run(main())


def test_server_without_tls_cannot_get_a_certificate_later() -> None:
    async def main() -> None:
        async with serve(echo) as server:
            with pytest.raises(ValueError, match="without TLS"):
                server.reload(Tls(localhost_certificate()))

    run(main())


class Authority:
    """Signs client certificates."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "clients")])
        self.pem = self._signed(self.name, self.key.public_key(), x509.BasicConstraints(True, None))

    def _signed(
        self, name: x509.Name, key: ec.EllipticCurvePublicKey, extension: x509.ExtensionType
    ) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder(
            issuer_name=self.name,
            subject_name=name,
            public_key=key,
            serial_number=x509.random_serial_number(),
            not_valid_before=now - datetime.timedelta(days=1),
            not_valid_after=now + datetime.timedelta(days=1),
        )
        builder = builder.add_extension(extension, critical=False)
        return builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def context(self, server: Certificate, folder: Path, name: str = "alice") -> ssl.SSLContext:
        """Return the context of a client with a certificate of this authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = x509.SubjectAlternativeName(
            [x509.DNSName(f"{name}.example"), x509.RFC822Name(f"{name}@x.example")]
        )
        pem = self._signed(subject, key.public_key(), names)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        (folder / f"{name}.pem").write_bytes(private + pem)
        context = trusting(server)
        context.load_cert_chain(folder / f"{name}.pem")
        return context


def test_handler_knows_the_client_by_its_certificate(tmp_path: Path) -> None:
    async def main() -> None:
        seen: list[PeerCertificate | None] = []

        async def handler(request: web.BaseRequest) -> web.StreamResponse:
            seen.append(peer_certificate(request))
            return respond(200)

        certificate, authority = localhost_certificate(), Authority()
        tls = Tls(certificate, client_authorities_pem=authority.pem)
        async with serve(handler, tls=tls) as server:
            for context in (trusting(certificate), authority.context(certificate, tmp_path)):
                async with connected(server, context) as client:
                    await client.get()
                    await client.get()
        assert seen[:2] == [None, None]
        alice = seen[2]
        assert alice is not None
        assert alice == seen[3]
        assert (alice.common_name, alice.subject) == ("alice", "CN=alice")
        assert alice.names == ("alice.example", "alice@x.example")
        assert len(alice.fingerprint) == 95

    run(main())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_client_without_the_required_certificate_is_refused(tmp_path: Path, version: ssl.TLSVersion) -> None:
    async def main() -> None:
        certificate, authority, stranger = localhost_certificate(), Authority(), Authority()
        tls = Tls(certificate, client_authorities_pem=authority.pem, require_client_certificate=True)
        async with serve(echo, tls=tls) as server:
            for context in (trusting(certificate, version), stranger.context(certificate, tmp_path)):
                with pytest.raises((OSError, asyncio.IncompleteReadError)):
                    async with connected(server, context) as client:
                        await client.get()
            async with connected(server, authority.context(certificate, tmp_path)) as client:
                assert (await client.get()).status == 200

    run(main())


def test_there_is_no_peer_certificate_without_tls() -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return respond(200, str(peer_certificate(request)).encode())

    async def main() -> None:
        async with serve(handler) as server, connected(server) as client:
            assert (await client.get()).body == b"None"

    run(main())


@pytest.mark.parametrize(
    "tls",
    [
        Tls(Certificate(certificate_pem=b"no", key_pem=b"no")),
        Tls(make_certificate(["a"]), require_client_certificate=True),
        Tls(make_certificate(["a"]), client_authorities_pem=b"no"),
        Tls(make_certificate(["a"]), client_authorities_pem=b"\xff"),
        Tls(make_certificate(["a"]), client_authorities_pem=b""),
    ],
    ids=["certificate", "no authority", "authority", "bytes", "empty"],
)
def test_unusable_tls_settings_are_refused_at_the_start(tls: Tls) -> None:
    async def main() -> None:
        with pytest.raises(CertificateError):
            async with serve(echo, tls=tls):
                pass

    run(main())
