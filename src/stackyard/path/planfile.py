"""A saved plan: what the engine planned and what it was planned for, in one encrypted file.

A plan of the engine holds every secret in clear. OpenTofu encrypts it before it reaches a disk; for Terraform
it lies in a private folder for the moment between planning and sealing. The file as a whole is encrypted and
authenticated with a key that comes from the key of the site: every machine that has it can open the plan, and
no one else can read it, change it, or make one.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

from stackyard.base import directories, files
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.base.errors import FileError, InvalidInputError, Location
from stackyard.engine.version import Flavour
from stackyard.path.migration import GuestMove

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from stackyard.clients.objects.sealed import KeyRing
    from stackyard.engine.version import Engine

__all__ = [
    "Binding",
    "PlanFile",
    "PlanFileError",
    "PlanKey",
    "PlanMovedError",
    "encryption",
    "is_encrypted",
    "open_encrypted",
    "plan_keys",
    "tofu_encryption",
]

_MAGIC = b"stackyard plan 1\n"
_NONCE_BYTES = 12
# What tells the key of plans from other keys that come from the key of the site.
_PURPOSE = b"stackyard saved plans"
_EARLIER_FILE = "plan.key"
# What belongs to a plan and is not the engine's, in the head of the file.
_BESIDE = "beside"
# The least that OpenTofu takes; the passphrase is random, so that more would only cost time.
_ITERATIONS = 200_000
# Of the two that OpenTofu takes the one that processors have instructions for.
_HASH = "sha256"
_HASHES = {_HASH: hashes.SHA256, "sha512": hashes.SHA512}
_HEAD_BYTES = 4096
_KEY_PROVIDER = "key_provider.pbkdf2.stackyard"


class PlanFileError(InvalidInputError):
    """What should be a saved plan is none of this site's: damaged, foreign, or of another key."""

    code = "E-PLAN-FILE"
    summary = "This is no plan that can be applied here"
    default_remedy = "Plan again, or give this machine the site key, which decrypts saved plans."


class PlanMovedError(InvalidInputError):
    """Something that a saved plan was made for has changed since; nothing was applied."""

    code = "E-PLAN-MOVED"
    summary = "The plan no longer fits"
    default_remedy = "Plan again, look at what changed, and apply that."


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What a plan was made for; it is applied only while all of it still holds.

    Attributes:
        target: Which target.
        state_name: The state of it.
        input: The fingerprint of what should be there.
        state: The version of the state, empty where there is none yet.
        code: The version of stackyard.
        engine: The engine and its version.
        provider: Which provider.
        mode: What the plan is for.
        inputs: The states of other targets that it took values from.
        arguments: What the user passed on to the engine.
    """

    target: str
    state_name: str
    input: str
    state: str
    code: str
    engine: str
    provider: str
    mode: str
    inputs: str = ""
    arguments: str = ""

    def require(self, now: Binding) -> None:
        """Refuse when anything has moved.

        Raises:
            PlanMovedError: With everything that did.
        """
        moved = [
            f"{_TITLES[item.name]} was {getattr(self, item.name) or 'nothing'} and is now "
            f"{getattr(now, item.name) or 'nothing'}"
            for item in fields(self)
            if getattr(self, item.name) != getattr(now, item.name)
        ]
        if moved:
            raise PlanMovedError(f"Since the plan was made, {'; '.join(moved)}.")


_TITLES = {
    "target": "the target",
    "state_name": "the name of the state",
    "input": "the input",
    "state": "the state",
    "code": "stackyard",
    "engine": "the engine",
    "provider": "the provider",
    "mode": "the purpose",
    "inputs": "what other stacks gave",
    "arguments": "what is passed on to the engine",
}


@dataclass(frozen=True, slots=True)
class PlanKey:
    """The key of saved plans."""

    secret: bytes
    id: str = ""

    def __repr__(self) -> str:
        return "PlanKey()"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """A saved plan.

    Attributes:
        binding: What it was made for.
        plan: The engine's file.
        staged: The state that it was created on, where that has to be stored before it is applied.
        migrations: What is moved once it is applied.
        credentials: What is done beside the engine, without any secret.
        shown: What a program is shown of it, with secrets masked.
        key: The key that opened it.
    """

    binding: Binding
    plan: bytes
    staged: bytes | None = None
    migrations: tuple[GuestMove, ...] = ()
    credentials: tuple[Mapping[str, Any], ...] = ()
    shown: Mapping[str, Any] = field(default_factory=dict)
    key: PlanKey | None = None

    def __repr__(self) -> str:
        return f"PlanFile(binding={self.binding!r})"

    def encode(self, key: PlanKey) -> bytes:
        """Return it encrypted, readable with the key alone."""
        staged = None if self.staged is None else base64.b64encode(self.staged).decode()
        beside = {
            "staged": staged,
            "migrations": [asdict(one) for one in self.migrations],
            "credentials": list(self.credentials),
            "shown": dict(self.shown),
        }
        head = orjson.dumps({**asdict(self.binding), _BESIDE: beside})
        nonce = os.urandom(_NONCE_BYTES)
        body = AESGCM(key.secret).encrypt(nonce, len(head).to_bytes(4, "big") + head + self.plan, _MAGIC)
        return _MAGIC + nonce + body

    def save(self, path: Path, key: PlanKey) -> None:
        """Write it to a file that only its owner can read.

        Raises:
            FileError: It cannot be written.
        """
        directories.ensure_private(path.parent)
        files.replace_file(path, self.encode(key))

    @classmethod
    def load(cls, path: Path, keys: Iterable[PlanKey]) -> PlanFile:
        """Read one from a file.

        Raises:
            FileError: It cannot be read.
            PlanFileError: It is no plan of this site.
        """
        try:
            data = path.read_bytes()
        except OSError as err:
            raise FileError.from_os_error(err, "read", path) from err
        return cls.decode(data, keys, str(path))

    @classmethod
    def decode(cls, data: bytes, keys: Iterable[PlanKey], label: str) -> PlanFile:
        """Open one.

        Args:
            data: What `encode` gave.
            keys: The keys to try.
            label: Where it is, for a person.

        Raises:
            PlanFileError: It is no plan of this site.
        """
        where = Location(label)
        if not data.startswith(_MAGIC):
            raise PlanFileError(f"{label} is not a plan that stackyard saved.", where=where)
        nonce, body = data[len(_MAGIC) :][:_NONCE_BYTES], data[len(_MAGIC) + _NONCE_BYTES :]
        for key in keys:
            try:
                content = AESGCM(key.secret).decrypt(nonce, body, _MAGIC)
            except (InvalidTag, ValueError):
                continue
            return cls._of(content, key)
        raise PlanFileError(
            f"{label} is damaged, or was saved with another key than that of this site.", where=where
        )

    @classmethod
    def _of(cls, content: bytes, key: PlanKey) -> PlanFile:
        size = int.from_bytes(content[:4], "big")
        head = parse_json(content[4 : 4 + size], LARGE)
        beside = head.pop(_BESIDE, {})
        staged = beside.get("staged")
        return cls(
            binding=Binding(**head),
            plan=content[4 + size :],
            staged=None if staged is None else base64.b64decode(staged),
            migrations=tuple(GuestMove(**one) for one in beside.get("migrations", ())),
            credentials=tuple(beside.get("credentials", ())),
            shown=beside.get("shown", {}),
            key=key,
        )


def plan_keys(ring: KeyRing) -> tuple[PlanKey, ...]:
    """Return the keys of saved plans that come from the keys of a site: the first encrypts, all decrypt."""
    own = (PlanKey(hmac.digest(key.secret, _PURPOSE, hashlib.sha256), key.id) for key in ring.keys)
    return (*own, *_earlier_key())


def _earlier_key() -> tuple[PlanKey, ...]:
    """Return the key that earlier versions kept with the user, so that their plans are still opened."""
    path = directories.data_folder() / _EARLIER_FILE
    return (PlanKey(path.read_bytes()),) if path.is_file() and os.access(path, os.R_OK) else ()


def is_encrypted(data: bytes) -> bool:
    """Return whether OpenTofu encrypted a plan with `tofu_encryption`."""
    # A plan in clear is an archive, and the name of the key provider stands at the beginning of the other.
    return data.startswith(b"{") and _KEY_PROVIDER.encode() in data[:_HEAD_BYTES]


def open_encrypted(data: bytes, key: PlanKey) -> bytes | None:
    """Return a plan that OpenTofu encrypted with `tofu_encryption`, None where it is in another form."""
    try:
        document = parse_json(data, LARGE)
        meta = parse_json(base64.b64decode(document["meta"][_KEY_PROVIDER]), LARGE)
        content = base64.b64decode(document["encrypted_data"])
        # The function of `hashlib` takes twice the time.
        derived = PBKDF2HMAC(
            algorithm=_HASHES[meta["hash_function"]](),
            length=meta["key_length"],
            salt=base64.b64decode(meta["salt"]),
            iterations=meta["iterations"],
        ).derive(key.secret.hex().encode())
        return AESGCM(derived).decrypt(content[:_NONCE_BYTES], content[_NONCE_BYTES:], None)
    except (ValueError, KeyError, TypeError, InvalidTag):
        return None


def encryption(engine: Engine, key: PlanKey) -> dict[str, str]:
    """Return what makes an engine encrypt its plans, where it can."""
    return {"TF_ENCRYPTION": tofu_encryption(key)} if engine.flavour is Flavour.TOFU else {}


def tofu_encryption(key: PlanKey) -> str:
    """Return the setting (`TF_ENCRYPTION`) with which OpenTofu encrypts its plans, and nothing else."""
    return orjson.dumps(
        {
            "key_provider": {
                "pbkdf2": {
                    "stackyard": {
                        "passphrase": key.secret.hex(),
                        "iterations": _ITERATIONS,
                        "hash_function": _HASH,
                    }
                }
            },
            "method": {"aes_gcm": {"stackyard": {"keys": f"${{{_KEY_PROVIDER}}}"}}},
            "plan": {"method": "method.aes_gcm.stackyard", "enforced": True},
        }
    ).decode()
