"""One encrypted value: `ENC[AES256_GCM,data:...,iv:...,tag:...,type:...]`."""

from __future__ import annotations

import base64
import binascii
import os
import re

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from stackyard.secrets.values import Scalar, UnknownTypeError, from_bytes, to_bytes, type_name

__all__ = ["CipherError", "DataCipher", "looks_encrypted"]

_TOKEN = re.compile(r"ENC\[AES256_GCM,data:([^,]*),iv:([^,]+),tag:([^,]+),type:([a-z]+)\]")
_START = "ENC[AES256_GCM,"
# SOPS takes 32 bytes, more than AES-GCM asks for; GCM hashes what is not 12 bytes.
_NONCE_BYTES = 32
_TAG_BYTES = 16


class CipherError(ValueError):
    """A value is not encrypted as SOPS does it, or was changed, moved or encrypted with another key."""


def looks_encrypted(value: object) -> bool:
    """Return whether a value is, or was, encrypted by SOPS."""
    return isinstance(value, str) and value.startswith(_START)


class DataCipher:
    """Encrypts and decrypts values with the data key of a file.

    Args:
        key: The data key, 32 bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._gcm = AESGCM(key)

    def open(self, token: str, context: str) -> tuple[Scalar, str]:
        """Return the value of a token and its type.

        Args:
            token: What the file holds.
            context: What it was bound to: its path, or the time of the last change.

        Raises:
            CipherError: It cannot be trusted.
        """
        match = _TOKEN.fullmatch(token)
        if match is None:
            raise CipherError("it is not an encrypted value of SOPS")
        data, nonce, tag = (_decode(part) for part in match.groups()[:3])
        if len(tag) != _TAG_BYTES or not 8 <= len(nonce) <= 128:
            raise CipherError("its tag or its initialisation vector is cut off")
        try:
            plain = self._gcm.decrypt(nonce, data + tag, context.encode())
        except InvalidTag as err:
            raise CipherError(
                "it was changed, moved to another place, or encrypted with another key"
            ) from err
        try:
            return from_bytes(match[4], plain), match[4]
        except UnknownTypeError as err:
            raise CipherError(str(err)) from err

    def seal(self, value: Scalar, context: str, *, is_comment: bool = False) -> str:
        """Return the token of a value."""
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._gcm.encrypt(nonce, to_bytes(value), context.encode())
        data, tag = sealed[:-_TAG_BYTES], sealed[-_TAG_BYTES:]
        kind = "comment" if is_comment else type_name(value)
        return f"{_START}data:{_encode(data)},iv:{_encode(nonce)},tag:{_encode(tag)},type:{kind}]"


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decode(text: str) -> bytes:
    """Decode base64 that has one spelling only, so that no change of a character goes unnoticed."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as err:
        raise CipherError("it is not base64") from err
    if _encode(data) != text:
        raise CipherError("it is not base64")
    return data
