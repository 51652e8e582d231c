"""One text encrypted by Ansible Vault: a header, and hexadecimal lines of salt, HMAC and ciphertext."""

from __future__ import annotations

import binascii
import os
import re
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, hmac, padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

from stackyard.base.errors import InvalidInputError
from stackyard.secrets.vault.marker import START

__all__ = [
    "DEFAULT_LABEL",
    "VaultEnvelope",
    "VaultFormatError",
    "WrongPasswordError",
    "parse_envelope",
    "seal",
]

DEFAULT_LABEL = "default"
_HEADER = re.compile(r"\$ANSIBLE_VAULT;(?P<version>[^;\s]+);(?P<cipher>[^;\s]+)(?:;(?P<label>[^\s;]+))?")
_SALT_BYTES = 32
_KEY_BYTES = 32
_BLOCK_BYTES = 16
_ITERATIONS = 10_000
_LINE_CHARACTERS = 80


class VaultFormatError(InvalidInputError):
    """A text begins like one of Ansible Vault and is cut off, changed, or of a version that is not known."""

    code = "E-VAULT-FORMAT"
    summary = "A text of Ansible Vault is not valid"
    default_remedy = "Restore it from version control."


class WrongPasswordError(Exception):
    """A password does not open a text, or the text was changed; no one can tell which."""


@dataclass(frozen=True, slots=True)
class VaultEnvelope:
    """An encrypted text, taken apart."""

    label: str | None
    salt: bytes
    signature: bytes
    data: bytes

    def open(self, password: bytes) -> bytes:
        """Return the plain text.

        Raises:
            WrongPasswordError: The password is another, or the text was changed.
        """
        key, signing_key, nonce = _keys(password, self.salt)
        signer = hmac.HMAC(signing_key, hashes.SHA256())
        signer.update(self.data)
        try:
            signer.verify(self.signature)
        except InvalidSignature as err:
            raise WrongPasswordError from err
        decryptor = Cipher(algorithms.AES256(key), modes.CTR(nonce)).decryptor()
        unpadder = padding.PKCS7(8 * _BLOCK_BYTES).unpadder()
        try:
            return unpadder.update(decryptor.update(self.data)) + unpadder.finalize()
        except ValueError as err:
            raise WrongPasswordError from err


def parse_envelope(text: str, named: str) -> VaultEnvelope:
    """Take an encrypted text apart.

    Args:
        text: The header and the lines below it; space around lines does not count.
        named: What it is, for errors.

    Raises:
        VaultFormatError: It is not a whole text of a known version.
    """
    first, *lines = text.split()
    match = _HEADER.fullmatch(first)
    if match is None or match["version"] not in ("1.1", "1.2") or match["cipher"] != "AES256":
        header = _printable(first[:60])
        raise VaultFormatError(
            f"{named} has the header `{header}`; only versions 1.1 and 1.2 with AES256 are known."
        )
    try:
        salt, signature, data = (
            binascii.unhexlify(part) for part in binascii.unhexlify("".join(lines)).split(b"\n")
        )
    except (binascii.Error, ValueError) as err:
        raise VaultFormatError(f"{named} is cut off or changed.") from err
    return VaultEnvelope(match["label"], salt, signature, data)


def _printable(text: str) -> str:
    """Return a text without anything that a terminal would obey."""
    return "".join(character if character.isprintable() else "?" for character in text)


def seal(plain: bytes, password: bytes, label: str | None = None) -> str:
    """Encrypt a text; one with a label other than the default is of version 1.2."""
    salt = os.urandom(_SALT_BYTES)
    key, signing_key, nonce = _keys(password, salt)
    padder = padding.PKCS7(8 * _BLOCK_BYTES).padder()
    encryptor = Cipher(algorithms.AES256(key), modes.CTR(nonce)).encryptor()
    data = encryptor.update(padder.update(plain) + padder.finalize())
    signer = hmac.HMAC(signing_key, hashes.SHA256())
    signer.update(data)
    inside = b"\n".join(binascii.hexlify(part) for part in (salt, signer.finalize(), data))
    body = binascii.hexlify(inside).decode()
    is_labelled = label is not None and label != DEFAULT_LABEL
    header = f"{START}1.2;AES256;{label}" if is_labelled else f"{START}1.1;AES256"
    lines = [body[start : start + _LINE_CHARACTERS] for start in range(0, len(body), _LINE_CHARACTERS)]
    return "\n".join([header, *lines]) + "\n"


def _keys(password: bytes, salt: bytes) -> tuple[bytes, bytes, bytes]:
    derived = PBKDF2HMAC(hashes.SHA256(), 2 * _KEY_BYTES + _BLOCK_BYTES, salt, _ITERATIONS).derive(password)
    return derived[:_KEY_BYTES], derived[_KEY_BYTES : 2 * _KEY_BYTES], derived[2 * _KEY_BYTES :]
