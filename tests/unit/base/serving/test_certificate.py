"""Certificates: made, kept, given."""

from __future__ import annotations

import datetime
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from stackyard.base.errors import FileError
from stackyard.base.serving import (
    Certificate,
    CertificateError,
    make_certificate,
    read_certificate,
    read_or_create_certificate,
)
from stackyard.base.serving.certificate import certificate_names


def names_of(certificate: Certificate) -> tuple[str, ...]:
    return certificate_names(x509.load_pem_x509_certificate(certificate.certificate_pem))


def test_made_certificate_is_for_its_names_and_addresses() -> None:
    made = make_certificate(["pve1", "127.0.0.1", "::1", "pve1", "münchen.example"])
    assert names_of(made) == ("pve1", "127.0.0.1", "::1", "xn--mnchen-3ya.example")


def test_made_certificate_can_sign_for_nobody_else() -> None:
    leaf = x509.load_pem_x509_certificate(make_certificate(["pve1"]).certificate_pem)
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_made_certificate_is_valid_for_the_days_asked() -> None:
    made = make_certificate(["pve1"], days=10)
    left = made.not_after - datetime.datetime.now(datetime.UTC)
    assert datetime.timedelta(days=9) < left <= datetime.timedelta(days=10)


@pytest.mark.parametrize(
    "names", [[], [""], ["a" * 300], ["a b"], ["pve1\n"], ["pve\udcff"], ["ok", "é" * 300]]
)
def test_impossible_names_are_refused(names: list[str]) -> None:
    with pytest.raises(CertificateError):
        make_certificate(names)


def test_fingerprint_is_the_sha256_that_openssl_prints() -> None:
    fingerprint = make_certificate(["pve1"]).fingerprint
    assert len(fingerprint.split(":")) == 32
    assert fingerprint == fingerprint.upper()


def test_key_does_not_show() -> None:
    made = make_certificate(["pve1"])
    assert "PRIVATE" not in repr(made)
    assert repr(made.key_pem) not in repr(made)


def test_kept_certificate_stays_the_same(tmp_path: Path) -> None:
    first = read_or_create_certificate(tmp_path / "tls", ["pve1", "10.0.0.1"])
    assert read_or_create_certificate(tmp_path / "tls", ["10.0.0.1"]) == first


def test_kept_files_are_private_and_the_trust_file_holds_no_key(tmp_path: Path) -> None:
    kept = read_or_create_certificate(tmp_path, ["pve1"])
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"server.pem": 0o600, "server.crt": 0o600}
    assert (tmp_path / "server.crt").read_bytes() == kept.certificate_pem


def test_readable_key_is_made_private_again(tmp_path: Path) -> None:
    read_or_create_certificate(tmp_path, ["pve1"])
    (tmp_path / "server.pem").chmod(0o644)
    read_or_create_certificate(tmp_path, ["pve1"])
    assert stat.S_IMODE((tmp_path / "server.pem").stat().st_mode) == 0o600


def test_kept_certificate_is_renewed_for_a_new_name(tmp_path: Path) -> None:
    first = read_or_create_certificate(tmp_path, ["pve1"])
    second = read_or_create_certificate(tmp_path, ["pve1", "pve2"])
    assert second.fingerprint != first.fingerprint
    assert names_of(second) == ("pve1", "pve2")
    assert (tmp_path / "server.crt").read_bytes() == second.certificate_pem


@pytest.mark.parametrize("days_left", [-1, 5])
def test_kept_certificate_is_renewed_at_its_end(tmp_path: Path, days_left: int) -> None:
    # A certificate of minus one day would end before it begins; the backdating leaves it one moment.
    old = make_certificate(["pve1"], days=days_left if days_left > 0 else 0)
    (tmp_path / "server.pem").write_bytes(old.key_pem + old.certificate_pem)
    renewed = read_or_create_certificate(tmp_path, ["pve1"])
    assert renewed.not_after - datetime.datetime.now(datetime.UTC) > datetime.timedelta(days=300)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\x00", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_damaged_kept_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "server.pem").write_bytes(content)
    with pytest.raises(CertificateError, match=r"server\.pem"):
        read_or_create_certificate(tmp_path, ["pve1"])


def test_kept_file_with_a_foreign_key_is_refused(tmp_path: Path) -> None:
    one, other = make_certificate(["pve1"]), make_certificate(["pve1"])
    (tmp_path / "server.pem").write_bytes(one.key_pem + other.certificate_pem)
    with pytest.raises(CertificateError, match="does not belong"):
        read_or_create_certificate(tmp_path, ["pve1"])


def test_folder_that_is_a_file_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "tls").write_text("")
    with pytest.raises(FileError, match="tls"):
        read_or_create_certificate(tmp_path / "tls", ["pve1"])


def test_starting_many_at_once_makes_one_certificate(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: read_or_create_certificate(tmp_path, ["pve1"]).fingerprint, range(16)))
    assert len(set(made)) == 1


def given(folder: Path, certificate_pem: bytes, key_pem: bytes) -> Certificate:
    (folder / "c.pem").write_bytes(certificate_pem)
    (folder / "k.pem").write_bytes(key_pem)
    return read_certificate(folder / "c.pem", folder / "k.pem")


def test_given_pair_is_taken(tmp_path: Path) -> None:
    made = make_certificate(["pve1"])
    assert given(tmp_path, made.certificate_pem, made.key_pem) == made


def test_given_files_of_different_pairs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match=r"k\.pem does not belong to the certificate in .*c\.pem"):
        given(tmp_path, make_certificate(["a"]).certificate_pem, make_certificate(["a"]).key_pem)


def test_given_key_with_a_password_is_refused_without_asking_for_it(tmp_path: Path) -> None:
    made = make_certificate(["a"])
    key = serialization.load_pem_private_key(made.key_pem, password=None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"hunter2"),
    )
    with pytest.raises(CertificateError, match="protected by a password"):
        given(tmp_path, made.certificate_pem, locked)


@pytest.mark.parametrize("damaged", ["certificate", "key"])
def test_damaged_given_file_is_named(tmp_path: Path, damaged: str) -> None:
    made = make_certificate(["a"])
    pem, key = made.certificate_pem, made.key_pem
    with pytest.raises(CertificateError, match="c.pem" if damaged == "certificate" else "k.pem"):
        given(tmp_path, pem[:80] if damaged == "certificate" else pem, key[:60] if damaged == "key" else key)


def test_missing_given_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"c\.pem"):
        read_certificate(tmp_path / "c.pem", tmp_path / "k.pem")
