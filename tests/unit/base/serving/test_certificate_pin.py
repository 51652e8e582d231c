"""The pin of a certificate is that of its key, and outlives the certificate."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from stackyard.base.serving import CertificateError, make_certificate, read_or_create_certificate
from stackyard.base.serving.certificate import pin_of


def test_the_pin_is_what_curl_computes() -> None:
    made = make_certificate(["a.example"])
    key = x509.load_pem_x509_certificate(made.certificate_pem).public_key()
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    assert made.pin == "sha256//" + base64.b64encode(hashlib.sha256(der).digest()).decode()


def test_a_renewed_certificate_has_the_key_of_the_one_before(tmp_path: Path) -> None:
    first = read_or_create_certificate(tmp_path, ["a.example"])
    renewed = read_or_create_certificate(tmp_path, ["a.example", "b.example"])
    assert renewed.fingerprint != first.fingerprint
    assert (renewed.pin, renewed.key_pem) == (first.pin, first.key_pem)


def test_a_given_key_has_to_be_usable() -> None:
    with pytest.raises(CertificateError):
        make_certificate(["a.example"], key_pem=b"nonsense")
    with pytest.raises(CertificateError):
        pin_of(b"nonsense")
