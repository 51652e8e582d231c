"""The host keys of guests, and the keys that people log in with."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING

import asyncssh
from cryptography.hazmat.primitives.asymmetric import ed25519

from pvelab.runtime.host_key import openssh

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["guest_host_key", "is_authorized"]

_SECRET = ("secrets", "guest_keys")


def guest_host_key(world: World, guest: Document) -> asyncssh.SSHKey:
    """Return the host key of a guest: always the same one, until another guest has its number.

    It follows from a secret of the lab and from what makes this guest a different one from every other.
    """
    kept = world.store.get(*_SECRET)
    if kept is None:
        kept = {"hex": secrets.token_hex(32)}
        with world.store.transaction():
            world.store.put(*_SECRET, kept)
    config = guest["config"]
    born = config.get("smbios1") or config.get("rootfs") or ""
    identity = f"{guest['vmid']}|{guest['type']}|{str(born).partition(',size=')[0]}"
    seed = hmac.digest(bytes.fromhex(kept["hex"]), identity.encode(), hashlib.sha256)
    return asyncssh.import_private_key(openssh(ed25519.Ed25519PrivateKey.from_private_bytes(seed)))


def is_authorized(key: asyncssh.SSHKey, lines: Iterable[str]) -> bool:
    """Return whether a public key is among the lines of an authorized_keys file."""
    try:
        found = asyncssh.import_authorized_keys("".join(f"{line}\n" for line in lines))
    except ValueError:
        # None of the lines is a key.
        return False
    return found.validate(key, "", "", None) is not None
