from __future__ import annotations

import ssl

import pytest

from stackyard.clients.proxmox import Connection, EndpointError, Login, TlsVersion, Token, Trust
from stackyard.clients.proxmox.encoding import encode, quote

TOKEN = Token(text="root@pam!ci=12345678-abcd")


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("https://pve.lan:8006/", "https://pve.lan:8006"),
        ("https://pve.lan:8006/api2/json", "https://pve.lan:8006"),
        ("https://pve.lan", "https://pve.lan"),
        (" https://[fd00::1]:8006 ", "https://[fd00::1]:8006"),
    ],
)
def test_the_path_of_an_endpoint_does_not_matter(given: str, base: str) -> None:
    assert Connection(endpoint=given, credentials=TOKEN).base_url() == base


@pytest.mark.parametrize(
    "given", ["", "pve.lan", "http://pve.lan:8006", "https://", "https://u:p@pve.lan", "https://pve.lan:x"]
)
def test_an_endpoint_that_is_no_https_address_is_refused(given: str) -> None:
    with pytest.raises(EndpointError):
        Connection(endpoint=given, credentials=TOKEN).base_url()


@pytest.mark.parametrize("text", ["", "root@pam", "root@pam!ci", "root@pam!ci=", "root!ci=x", "a@b!c=d e"])
def test_a_token_of_another_form_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(EndpointError) as raised:
        Token(text=text)
    assert not text or text not in raised.value.detail


def test_secrets_are_not_in_representations() -> None:
    shown = repr(Connection(endpoint="https://a", credentials=TOKEN)) + repr(
        Login(username="u", password="geheim")
    )
    assert "12345678" not in shown
    assert "geheim" not in shown


def test_a_fingerprint_must_be_a_sha256() -> None:
    assert Trust(fingerprint="AB:" * 31 + "ab").digest() == b"\xab" * 32
    for wrong in ("AB:CD", "zz" * 32, "ab" * 20):
        with pytest.raises(EndpointError):
            Trust(fingerprint=wrong).digest()


def test_an_authority_that_is_no_certificate_is_refused() -> None:
    with pytest.raises(EndpointError):
        Trust(ca_pem="no certificate").context()


def test_the_oldest_tls_is_the_one_asked_for() -> None:
    assert Trust().context().minimum_version is ssl.TLSVersion.TLSv1_3
    assert Trust(min_tls=TlsVersion.V1_2).context().minimum_version is ssl.TLSVersion.TLSv1_2
    assert [version.minimum.name for version in TlsVersion] == ["TLSv1", "TLSv1_1", "TLSv1_2", "TLSv1_3"]


def test_without_verification_any_certificate_will_do_and_otherwise_it_is_verified() -> None:
    assert Trust(verify=False).context().verify_mode is ssl.CERT_NONE
    assert Trust().context().verify_mode is ssl.CERT_REQUIRED


def test_parameters_travel_as_proxmox_reads_them() -> None:
    given = {"a": True, "b": False, "c": None, "d": ["x", "y"], "e": "", "f": 2.0, "g": 0.5, "h": "a b&c"}
    assert encode(given) == "a=1&b=0&d=x&d=y&e=&f=2&g=0.5&h=a+b%26c"


def test_path_segments_keep_what_ids_are_made_of() -> None:
    assert quote("local:iso/a b.img") == "local:iso%2Fa%20b.img"
    assert quote("root@pam!tok") == "root@pam%21tok"
