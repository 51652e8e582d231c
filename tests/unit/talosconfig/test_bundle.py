"""The secrets of a cluster: what they are, what reads them, and what is refused."""

from __future__ import annotations

import base64
import datetime
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID
from tests.support.talos_bundles import shared_bundle

from stackyard.base.diagnostics import Diagnostics
from stackyard.base.errors import Location
from stackyard.talosconfig.bundle import issue_admin, issue_kubernetes_admin, make_bundle, write_bundle
from stackyard.talosconfig.bundle_checks import build_bundle
from stackyard.talosconfig.certificates import load_certificate, load_key, make_authority

NOW = datetime.datetime.now(datetime.UTC)


def describe() -> Any:
    return yaml.safe_load(write_bundle(shared_bundle()))


def codes(data: Any, now: datetime.datetime = NOW) -> list[tuple[str, str]]:
    found = Diagnostics()
    build_bundle(data, lambda *keys: Location("s.yaml", len(keys)), found, now=now)
    return [(one.kind.code, one.detail) for one in found]


def test_a_written_bundle_is_read_back_as_the_same() -> None:
    found = Diagnostics()
    read = build_bundle(describe(), lambda *keys: Location("s.yaml"), found)
    assert list(found) == []
    assert read == shared_bundle()


def test_keys_are_of_the_kinds_and_with_the_labels_of_talos() -> None:
    bundle = shared_bundle()
    assert isinstance(load_key(bundle.os.key), ed25519.Ed25519PrivateKey)
    assert bundle.os.key.startswith("-----BEGIN ED25519 PRIVATE KEY-----")
    for pair in (bundle.etcd, bundle.kubernetes, bundle.aggregator):
        assert isinstance(load_key(pair.key), ec.EllipticCurvePrivateKey)
        assert pair.key.startswith("-----BEGIN EC PRIVATE KEY-----")
    key = load_key(bundle.service_account_key)
    assert isinstance(key, rsa.RSAPrivateKey)
    assert key.key_size == 4096
    assert bundle.service_account_key.startswith("-----BEGIN RSA PRIVATE KEY-----")


def test_authorities_are_valid_for_ten_years_and_sign() -> None:
    bundle = shared_bundle()
    names = {"os": "O=talos", "etcd": "O=etcd", "kubernetes": "O=kubernetes", "aggregator": ""}
    for field, name in names.items():
        certificate = load_certificate(getattr(bundle, field).crt)
        assert certificate.subject.rfc4514_string() == name
        assert certificate.not_valid_after_utc - certificate.not_valid_before_utc == datetime.timedelta(
            days=3650
        )
        assert certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
        assert (usage.key_cert_sign, usage.digital_signature, usage.crl_sign) == (True, True, False)


def test_an_admin_certificate_has_its_roles_and_is_for_clients_only() -> None:
    bundle = shared_bundle()
    issued = load_certificate(issue_admin(bundle, ("os:reader", "os:etcd:backup")).crt)
    assert issued.subject.rfc4514_string() == "O=os:etcd:backup,O=os:reader"
    usage = issued.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    issued.verify_directly_issued_by(load_certificate(bundle.os.crt))
    kubernetes = load_certificate(issue_kubernetes_admin(bundle).crt)
    assert kubernetes.subject.rfc4514_string() == "CN=admin,O=system:masters"
    kubernetes.verify_directly_issued_by(load_certificate(bundle.kubernetes.crt))


def test_a_representation_shows_no_secret() -> None:
    bundle = shared_bundle()
    assert repr(bundle) == "SecretsBundle(...)"
    shown = f"{bundle!r} {bundle.os!r} {issue_admin(bundle)!r}"
    assert not bundle.redactor().hides(shown)
    assert bundle.redactor().hides(f"token: {bundle.trustd_token}")


def test_two_bundles_share_nothing() -> None:
    assert shared_bundle().values().isdisjoint(make_bundle().values())


def test_a_bundle_of_an_old_cluster_has_another_encryption_secret() -> None:
    data = describe()
    data["secrets"]["aescbcencryptionsecret"] = data["secrets"].pop("secretboxencryptionsecret")
    found = Diagnostics()
    bundle = build_bundle(data, lambda *keys: Location("s.yaml"), found)
    assert list(found) == []
    assert (bundle.secretbox_secret, bool(bundle.aescbc_secret)) == ("", True)


@pytest.mark.parametrize(
    ("keys", "value", "code"),
    [
        (("cluster", "id"), None, "E-TALOS-SECRETS-MISSING"),
        (("certs", "os"), {}, "E-TALOS-SECRETS-MISSING"),
        (("secrets", "secretboxencryptionsecret"), "", "E-TALOS-SECRETS-MISSING"),
        (("secrets", "bootstraptoken"), "ABC.def", "E-TALOS-SECRETS-WRONG"),
        (("trustdinfo", "token"), 12, "E-TALOS-SECRETS-WRONG"),
        (("cluster", "secret"), "not base64!", "E-TALOS-SECRETS-WRONG"),
        (("cluster", "secret"), "c2hvcnQ=", "E-TALOS-SECRETS-WRONG"),
        (("certs", "etcd", "crt"), "####", "E-TALOS-SECRETS-WRONG"),
        (("certs", "etcd", "key"), base64.b64encode(b"no key").decode(), "E-TALOS-SECRETS-WRONG"),
        (("certs", "etcdd"), {}, "E-TALOS-SECRETS-UNKNOWN"),
    ],
)
def test_each_problem_is_named_and_no_value_is_shown(keys: tuple[str, ...], value: Any, code: str) -> None:
    data = describe()
    section = data
    for key in keys[:-1]:
        section = section[key]
    section[keys[-1]] = value
    problems = codes(data)
    assert {found for found, _ in problems} == {code}
    assert all(keys[0] in detail for _, detail in problems)
    assert not any(shared_bundle().redactor().hides(detail) for _, detail in problems)


def test_a_certificate_of_another_key_is_refused() -> None:
    data = describe()
    data["certs"]["os"]["crt"] = base64.b64encode(make_bundle_os().encode()).decode()
    assert [code for code, _ in codes(data)] == ["E-TALOS-SECRETS-MISMATCH"]


def make_bundle_os() -> str:
    return make_authority(ed25519.Ed25519PrivateKey.generate(), "talos", NOW).crt


def test_an_expired_authority_and_a_certificate_that_is_none_are_refused() -> None:
    later = NOW + datetime.timedelta(days=3651)
    assert {code for code, _ in codes(describe(), later)} == {"E-TALOS-SECRETS-EXPIRED"}
    data = describe()
    data["certs"]["os"] = {
        "crt": issue_admin(shared_bundle()).crt_base64,
        "key": issue_admin(shared_bundle()).key_base64,
    }
    assert {code for code, _ in codes(data)} == {"E-TALOS-SECRETS-WRONG", "E-TALOS-SECRETS-MISMATCH"}


def test_all_problems_are_reported_at_once() -> None:
    data = describe()
    data["cluster"] = {}
    data["trustdinfo"]["token"] = "short"
    del data["certs"]["k8s"]["key"]
    assert len(codes(data)) == 4
