"""The environment of a provider: verification is on, unless the user turns it off by name."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.path import make_yard

from stackyard import lab
from stackyard.clients import proxmox
from stackyard.clients.proxmox.certificate import CertificateNamesError
from stackyard.path.environment import EnvironmentSource
from stackyard.path.provider_environment import bpg_environment, provider_environment
from stackyard.path.target import Resolved


@pytest.fixture(scope="module")
def pinned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resolved]:
    """A target whose endpoint is pinned, and nothing else is said about trust."""
    with lab.running(nodes=("pve1",)) as running:
        yard = make_yard(running, tmp_path_factory.mktemp("yard") / "site")
        yard.write_env("t", [{"name": "web", "vmid": 500, "preset": "vm-xsmall", "image": "debian-12"}])
        resolved = EnvironmentSource.find(str(yard.folder)).resolve("t", None)
        assert resolved.connection.trust == proxmox.Trust(fingerprint=running.fingerprint)
        yield resolved


def with_trust(resolved: Resolved, trust: proxmox.Trust, endpoint: str | None = None) -> Resolved:
    connection = replace(resolved.connection, trust=trust)
    return replace(resolved, connection=replace(connection, endpoint=endpoint or connection.endpoint))


def test_bpgs_provider_trusts_the_pinned_certificate_alone(pinned: Resolved, tmp_path: Path) -> None:
    given = asyncio.run(bpg_environment(pinned, tmp_path))
    assert "PROXMOX_VE_INSECURE" not in given
    pem = Path(given["SSL_CERT_FILE"]).read_text()
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).digest()
    assert digest == pinned.connection.trust.digest()
    assert list(Path(given["SSL_CERT_DIR"]).iterdir()) == []
    assert Path(given["SSL_CERT_FILE"]).stat().st_mode & 0o077 == 0


def test_a_pinned_server_that_is_another_one_stops_before_the_engine(
    pinned: Resolved, tmp_path: Path
) -> None:
    wrong = with_trust(pinned, proxmox.Trust(fingerprint="00" * 32))
    with pytest.raises(proxmox.UntrustedServerError):
        asyncio.run(bpg_environment(wrong, tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_not_in_the_pinned_certificate_says_what_to_do(
    pinned: Resolved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = socket.getaddrinfo

    def look_up(host: str, *args: Any, **options: Any) -> Any:
        return real("127.0.0.1" if host == "pve.example.org" else host, *args, **options)

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    endpoint = pinned.connection.endpoint.replace("127.0.0.1", "pve.example.org")
    renamed = with_trust(pinned, pinned.connection.trust, endpoint)
    with pytest.raises(CertificateNamesError, match=r"pve\.example\.org.*bpg's provider") as caught:
        asyncio.run(bpg_environment(renamed, tmp_path))
    assert "built-in provider" in caught.value.remedy


@pytest.mark.parametrize("fingerprint", [None, "00" * 32])
def test_verification_is_off_only_where_the_user_says_so(
    pinned: Resolved, tmp_path: Path, fingerprint: str | None
) -> None:
    told = with_trust(pinned, proxmox.Trust(fingerprint=fingerprint, verify=False))
    given = asyncio.run(bpg_environment(told, tmp_path))
    assert given["PROXMOX_VE_INSECURE"] == "true"
    assert "SSL_CERT_FILE" not in given


def test_without_a_pin_the_authorities_of_the_system_decide(pinned: Resolved, tmp_path: Path) -> None:
    given = asyncio.run(bpg_environment(with_trust(pinned, proxmox.Trust()), tmp_path))
    assert not {"PROXMOX_VE_INSECURE", "SSL_CERT_FILE", "SSL_CERT_DIR"} & given.keys()


def test_the_built_in_provider_pins_by_itself(pinned: Resolved) -> None:
    given = provider_environment(pinned)
    assert given["PROXMOX_VE_FINGERPRINT"] == pinned.connection.trust.fingerprint
    assert "PROXMOX_VE_INSECURE" not in given
