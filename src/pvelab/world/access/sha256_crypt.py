"""Hashes of passwords as Linux keeps them: SHA-256 crypt, `$5$salt$hash`.

Proxmox hashes the cloud-init password of a VM this way before it writes it down. The scheme is the public one
of glibc; Python has no function for it any more.
"""

from __future__ import annotations

import hashlib
import secrets

__all__ = ["hash_password", "is_hashed", "verify_password"]

_ROUNDS = 5000
_ALPHABET = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SALT_LENGTH = 8
# The order in which the scheme writes the bytes of the last digest, three at a time.
_ORDER = tuple(
    ((position * 21) % 30, (position * 21 + 10) % 30, (position * 21 + 20) % 30) for position in range(10)
)
_HASHED = ("$1$", "$5$", "$6$", "$2a$", "$2y$")


def is_hashed(text: str) -> bool:
    """Return whether a password is a hash already."""
    return text.startswith(_HASHED) and text.count("$") >= 3


def hash_password(password: str, salt: str | None = None) -> str:
    """Return the hash of a password, with a random salt if none is given."""
    chosen = salt or "".join(secrets.choice(_ALPHABET) for _ in range(_SALT_LENGTH))
    return f"$5${chosen}${_encode(_digest(password.encode(), chosen.encode()))}"


def verify_password(password: str, hashed: str) -> bool:
    """Return whether a password fits a hash of this scheme."""
    parts = hashed.split("$")
    if len(parts) != 4 or parts[1] != "5":
        return False
    return secrets.compare_digest(hash_password(password, parts[2]).encode(), hashed.encode())


def _digest(password: bytes, salt: bytes) -> bytes:
    length = len(password)
    inner = hashlib.sha256(password + salt + password).digest()
    mixed = hashlib.sha256(password + salt + _stretch(inner, length))
    bits = length
    while bits:
        mixed.update(inner if bits & 1 else password)
        bits >>= 1
    digest = mixed.digest()
    repeated = _stretch(hashlib.sha256(password * length).digest(), length)
    salted = _stretch(hashlib.sha256(salt * (16 + digest[0])).digest(), len(salt))
    for number in range(_ROUNDS):
        odd = number & 1
        text = repeated if odd else digest
        text += salted if number % 3 else b""
        text += repeated if number % 7 else b""
        digest = hashlib.sha256(text + (digest if odd else repeated)).digest()
    return digest


def _stretch(block: bytes, length: int) -> bytes:
    return (block * (length // len(block) + 1))[:length]


def _encode(digest: bytes) -> str:
    groups = [
        (digest[first] << 16 | digest[second] << 8 | digest[third], 4) for first, second, third in _ORDER
    ]
    groups.append((digest[31] << 8 | digest[30], 3))
    return "".join(_ALPHABET[value >> 6 * place & 63] for value, count in groups for place in range(count))
