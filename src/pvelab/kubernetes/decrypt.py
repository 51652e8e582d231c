"""Opening a manifest that SOPS has encrypted, with the age key that the cluster has."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any

import pyrage  # type: ignore[import-untyped]
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DecryptionFailure", "decrypt_document"]

_SEALED = re.compile(
    r"ENC\[AES256_GCM,data:(?P<data>[^,]*),iv:(?P<iv>[^,]+),tag:(?P<tag>[^,]+),type:(?P<type>\w+)\]"
)
_ARMOUR = re.compile(r"-----BEGIN AGE ENCRYPTED FILE-----(.*?)-----END AGE ENCRYPTED FILE-----", re.DOTALL)


class DecryptionFailure(Exception):  # noqa: N818 - it is what an object of Flux says
    """Why a document stays closed."""


def decrypt_document(document: Mapping[str, Any], secret: Mapping[str, str]) -> dict[str, Any]:
    """Return a document with its values in clear, and without what SOPS has added.

    Args:
        document: The document.
        secret: The data of the secret with the keys, in base64; each that ends in `.agekey` has identities.

    Raises:
        DecryptionFailure: No key opens it, or a value was changed.
    """
    key = _open_data_key(document["sops"], secret)
    body = {name: value for name, value in document.items() if name != "sops"}
    found = _open_values(body, (), AESGCM(key))
    return dict(found)


def _open_data_key(sops: Mapping[str, Any], secret: Mapping[str, str]) -> bytes:
    identities = []
    for name, value in secret.items():
        if name.endswith(".agekey"):
            for line in base64.b64decode(value).decode().splitlines():
                if line.startswith("AGE-SECRET-KEY-"):
                    identities.append(pyrage.x25519.Identity.from_str(line.strip()))
    if not identities:
        raise DecryptionFailure("there is no age key in the decryption secret")
    for row in sops.get("age") or ():
        if match := _ARMOUR.search(str(row.get("enc", ""))):
            try:
                return bytes(pyrage.decrypt(base64.b64decode(match[1]), identities))
            except pyrage.DecryptError:
                continue
    raise DecryptionFailure("cannot get sops data key: no identity matched any of the recipients")


def _open_values(value: Any, path: tuple[str, ...], key: AESGCM) -> Any:
    if isinstance(value, dict):
        return {name: _open_values(inner, (*path, str(name)), key) for name, inner in value.items()}
    if isinstance(value, list):
        return [_open_values(inner, path, key) for inner in value]
    match = _SEALED.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return value
    data, nonce, tag = (base64.b64decode(match[name]) for name in ("data", "iv", "tag"))
    try:
        plain = key.decrypt(nonce, data + tag, (":".join(path) + ":").encode()).decode()
    except InvalidTag:
        raise DecryptionFailure(f"the value of {'.'.join(path)} was changed") from None
    if match["type"] == "int":
        return int(plain)
    if match["type"] == "bool":
        return plain == "True"
    return float(plain) if match["type"] == "float" else plain
