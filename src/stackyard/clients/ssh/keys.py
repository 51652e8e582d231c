"""New key pairs."""

from __future__ import annotations

from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

__all__ = ["KeyPair", "new_key_pair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """An ed25519 key pair.

    Attributes:
        private: The private key in the form of OpenSSH, without a passphrase.
        public: The public key as one line, without a comment.
    """

    private: str = field(repr=False)
    public: str


def new_key_pair() -> KeyPair:
    """Return a key pair that no one else has."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return KeyPair(private=private.decode(), public=public.decode())
