"""Reading a secrets bundle: every problem with its place, and no value in any message."""

from __future__ import annotations

import base64
import binascii
import datetime
import re
from collections.abc import Callable, Mapping
from typing import Any

from cryptography import x509

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.errors import Location
from stackyard.base.suggestions import did_you_mean
from stackyard.talosconfig.bundle import SecretsBundle
from stackyard.talosconfig.certificates import (
    CertificateAndKey,
    PemError,
    decode_pem,
    load_certificate,
    load_key,
)

__all__ = ["Place", "build_bundle"]

Place = Callable[..., Location]

MISSING = Kind(
    code="E-TALOS-SECRETS-MISSING",
    summary="A secret of the cluster is missing",
    remedy="Restore the file from git or from a backup; a new bundle is a new cluster.",
)
UNKNOWN = Kind(
    code="E-TALOS-SECRETS-UNKNOWN",
    summary="The secrets bundle has a key that Talos does not know",
    remedy="Correct the key, or remove it.",
)
WRONG = Kind(
    code="E-TALOS-SECRETS-WRONG",
    summary="A secret of the cluster is not in the form that Talos needs",
    remedy="Restore the value from git or from a backup.",
)
MISMATCH = Kind(
    code="E-TALOS-SECRETS-MISMATCH",
    summary="A certificate and a key do not belong together",
    remedy="Restore both from the same bundle.",
)
EXPIRED = Kind(
    code="E-TALOS-SECRETS-EXPIRED",
    summary="A certificate authority of the cluster has expired",
    remedy="Replace the authority with `talosctl rotate-ca`, and put the new one into the bundle.",
)

_TOKEN = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")
_KEYS: Mapping[str, tuple[str, ...]] = {
    "": ("cluster", "secrets", "trustdinfo", "certs"),
    "cluster": ("id", "secret"),
    "secrets": ("bootstraptoken", "secretboxencryptionsecret", "aescbcencryptionsecret"),
    "trustdinfo": ("token",),
    "certs": ("etcd", "k8s", "k8saggregator", "k8sserviceaccount", "os"),
    "certs.etcd": ("crt", "key"),
    "certs.k8s": ("crt", "key"),
    "certs.k8saggregator": ("crt", "key"),
    "certs.k8sserviceaccount": ("key",),
    "certs.os": ("crt", "key"),
}


def build_bundle(
    data: Mapping[str, Any], place: Place, found: Diagnostics, *, now: datetime.datetime | None = None
) -> SecretsBundle:
    """Return the bundle that some data describes; if anything was found wrong, it must not be used.

    Args:
        data: What the file holds, decrypted.
        place: Returns where the value of some keys is.
        found: Where problems are added.
        now: The present time.
    """
    reader = _Reader(data, place, found, now or datetime.datetime.now(datetime.UTC))
    reader.check_keys()
    secretbox = reader.read_key_bytes("secrets", "secretboxencryptionsecret", is_optional=True)
    aescbc = reader.read_key_bytes("secrets", "aescbcencryptionsecret", is_optional=True)
    if not secretbox and not aescbc:
        reader.report_missing("secrets", "secretboxencryptionsecret")
    return SecretsBundle(
        cluster_id=reader.read_text("cluster", "id"),
        cluster_secret=reader.read_key_bytes("cluster", "secret"),
        bootstrap_token=reader.read_token("secrets", "bootstraptoken"),
        trustd_token=reader.read_token("trustdinfo", "token"),
        secretbox_secret=secretbox,
        aescbc_secret=aescbc,
        etcd=reader.read_authority("etcd"),
        kubernetes=reader.read_authority("k8s"),
        aggregator=reader.read_authority("k8saggregator"),
        service_account_key=reader.read_pem("certs", "k8sserviceaccount", "key"),
        os=reader.read_authority("os"),
    )


class _Reader:
    """Reads values of a bundle and adds what is wrong with each."""

    def __init__(
        self, data: Mapping[str, Any], place: Place, found: Diagnostics, now: datetime.datetime
    ) -> None:
        self._data, self._place, self._found, self._now = data, place, found, now

    def check_keys(self) -> None:
        for path, names in _KEYS.items():
            keys = tuple(path.split(".")) if path else ()
            section = self._get(keys)
            for key in section if isinstance(section, Mapping) else ():
                if key not in names:
                    dotted = ".".join((*keys, str(key)))
                    self._found.add(
                        UNKNOWN,
                        f"There is no `{dotted}`.{did_you_mean(str(key), names)}",
                        self._place(*keys, key),
                    )

    def report_missing(self, *keys: str) -> None:
        self._found.add(MISSING, f"`{'.'.join(keys)}` is missing or empty.", self._place(*keys))

    def report(self, kind: Kind, reason: str, *keys: str) -> None:
        self._found.add(kind, f"`{'.'.join(keys)}`: {reason}.", self._place(*keys))

    def read_text(self, *keys: str, is_optional: bool = False) -> str:
        value = self._get(keys)
        if value is None or value == "":
            if not is_optional:
                self.report_missing(*keys)
            return ""
        if not isinstance(value, str):
            self.report(WRONG, "it is not text", *keys)
            return ""
        return value

    def read_token(self, *keys: str) -> str:
        value = self.read_text(*keys)
        if value and not _TOKEN.fullmatch(value):
            self.report(WRONG, "it is not 6 and 16 small letters and digits with a point between them", *keys)
        return value

    def read_key_bytes(self, *keys: str, is_optional: bool = False) -> str:
        value = self.read_text(*keys, is_optional=is_optional)
        try:
            if value and len(base64.b64decode(value, validate=True)) not in (16, 24, 32):
                self.report(WRONG, "it is not a key of 32 bytes in base64", *keys)
        except binascii.Error:
            self.report(WRONG, "it is not base64", *keys)
        return value

    def read_pem(self, *keys: str) -> str:
        value = self.read_text(*keys)
        if not value:
            return ""
        try:
            pem = decode_pem(value)
            if keys[-1] == "crt":
                load_certificate(pem)
            else:
                load_key(pem)
        except PemError as err:
            self.report(WRONG, str(err), *keys)
            return ""
        return pem

    def read_authority(self, name: str) -> CertificateAndKey:
        crt, key = self.read_pem("certs", name, "crt"), self.read_pem("certs", name, "key")
        if crt:
            self._check_authority(load_certificate(crt), name)
        if crt and key and load_certificate(crt).public_key() != load_key(key).public_key():
            self.report(MISMATCH, "the certificate is not that of the key beside it", "certs", name, "crt")
        return CertificateAndKey(crt=crt, key=key)

    def _check_authority(self, certificate: x509.Certificate, name: str) -> None:
        keys = ("certs", name, "crt")
        try:
            constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
            is_authority = constraints.ca
        except x509.ExtensionNotFound:
            is_authority = False
        if not is_authority:
            self.report(WRONG, "it is not the certificate of an authority", *keys)
        if certificate.not_valid_after_utc <= self._now:
            self.report(EXPIRED, f"it was valid until {certificate.not_valid_after_utc:%Y-%m-%d}", *keys)

    def _get(self, keys: tuple[str, ...]) -> Any:
        value: Any = self._data
        for key in keys:
            if not isinstance(value, Mapping):
                return None
            value = value.get(key)
        return value
