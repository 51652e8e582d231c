"""Encrypted files of a cluster: only changed values are encrypted again, and edits by hand are never lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.errors import InvalidInputError, Location
from stackyard.path.clusters.record import take_fingerprint
from stackyard.secrets.base import SecretsLockedError
from stackyard.secrets.layout import leaves
from stackyard.secrets.protected_file import open_bytes
from stackyard.secrets.sops.file import OpenedSops, seal_new
from stackyard.secrets.sops.text import FileFormat, text_format
from stackyard.sources.cluster.flux_rule import hides_object

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.path.clusters.record import GenerationRecord
    from stackyard.secrets.keyring import Keyring
    from stackyard.secrets.layout import Layout
    from stackyard.secrets.sops.config import CreationRule
    from stackyard.secrets.values import Scalar

__all__ = [
    "ClearSecretError",
    "SealedFile",
    "UnknownRecipientError",
    "list_tokens",
    "refuse_clear",
    "seal_file",
]

# Fields that name somebody, and may be in other places too.
_NAMES = ("_username", "_id")
_SHORTEST_SECRET = 6


class UnknownRecipientError(InvalidInputError):
    """An encrypted file is for keys that `.sops.yaml` does not name; no secret was added to it."""

    code = "E-CLUSTER-RECIPIENT"
    summary = "An encrypted file can be read with keys that .sops.yaml does not name"
    default_remedy = (
        "Find out whose keys they are. `stackyard secrets rotate --from-config FILE` encrypts the file for "
        "the keys of .sops.yaml alone; whoever is to read it belongs there."
    )


class ClearSecretError(InvalidInputError):
    """The rule of `.sops.yaml` for a file leaves secrets in it in clear; nothing was written."""

    code = "E-CLUSTER-CLEAR-SECRET"
    summary = "A secret would not be encrypted"
    default_remedy = (
        "Correct `encrypted_regex` or what the rule of .sops.yaml has in its place, or put a rule for this "
        "file before it. Then encrypt what is there already: `stackyard secrets encrypt FILE`."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedFile:
    """An encrypted file as it will be.

    Attributes:
        data: Its content.
        tokens: The fingerprints of its encrypted values, by `NAME#KEY`.
        edited: The keys whose values were edited in the file and differ from the input.
    """

    data: bytes
    tokens: dict[str, str]
    edited: tuple[str, ...] = ()


def seal_file(
    path: Path, name: str, plain: bytes, *, rule: CreationRule, keyring: Keyring, record: GenerationRecord
) -> SealedFile:
    """Encrypt a text, keeping what is encrypted of all values that did not change.

    Args:
        path: Where the file is, or will be.
        name: Its name in the record.
        plain: The text.
        rule: How a new file is encrypted.
        keyring: The keys of the user.
        record: What was written before.

    Raises:
        SecretsLockedError: The user has no key that opens the file.
        SecretsSyntaxError: The text is not YAML.
        RecipientError: There is no one to encrypt for.
        UnknownRecipientError: The file is also for keys that the rule does not name.
        InvalidInputError: The file was cut off or changed by something else than SOPS.
    """
    wanted = _list_values(text_format(FileFormat.YAML).parse(plain.decode(), str(path)))
    if not path.exists():
        return _seal_new(path, name, plain, rule=rule, keyring=keyring)
    data = path.read_bytes()
    opened = open_bytes(data, str(path), keyring)
    layout = opened.layout()
    found = _list_values(layout) if layout is not None else {}
    differing = [key for key in {**found, **wanted} if found.get(key) != wanted.get(key)]
    tokens = list_tokens(data, name)
    edited = tuple(
        key
        for key in differing
        if key in found and not record.is_ours(f"{name}#{key}", tokens[f"{name}#{key}"])
    )
    # Under an earlier rule, the kind of the object may be encrypted too, which Flux has to read.
    is_hidden = isinstance(opened, OpenedSops) and hides_object(opened.metadata.rule)
    is_outdated = is_hidden and not hides_object(rule.rule)
    if isinstance(opened, OpenedSops) and (differing or is_outdated):
        _refuse_unknown(opened, path, rule)
    if not isinstance(opened, OpenedSops) or is_outdated:
        sealed = _seal_new(path, name, plain, rule=rule, keyring=keyring)
        return SealedFile(data=sealed.data, tokens=sealed.tokens, edited=edited)
    # Other comments or another order are no reason to write the file.
    after = opened.seal(plain) if differing else data
    return SealedFile(data=after, tokens=list_tokens(after, name), edited=edited)


def _seal_new(path: Path, name: str, plain: bytes, *, rule: CreationRule, keyring: Keyring) -> SealedFile:
    data = seal_new(plain, str(path), FileFormat.YAML, rule)
    try:
        open_bytes(data, str(path), keyring)
    except SecretsLockedError as err:
        raise SecretsLockedError(
            f"{path} would be encrypted for keys that you do not have: {err.detail}",
            remedy="Name your key in SOPS_AGE_KEY_FILE, or put it into age.key beside cluster.yaml.",
        ) from err
    return SealedFile(data=data, tokens=list_tokens(data, name))


def _refuse_unknown(opened: OpenedSops, path: Path, rule: CreationRule) -> None:
    """Refuse to add secrets to a file that somebody made for other keys too: a pull request can bring one."""
    named = {recipient for group in rule.groups for recipient in group}
    unknown = [one for one in opened.metadata.recipients if one not in named]
    if unknown:
        raise UnknownRecipientError(
            f"{path} is also encrypted for {', '.join(unknown)}.", where=Location(str(path))
        )


def refuse_clear(sealed: SealedFile, path: Path, secrets: Mapping[str, str]) -> None:
    """Refuse a file in which the rule of `.sops.yaml` leaves a secret in clear.

    Args:
        sealed: The file as it will be.
        path: Where it will be.
        secrets: The secrets by the names of their fields.

    Raises:
        ClearSecretError: It has some of them in clear; the error names each.
    """
    form = text_format(FileFormat.YAML)
    layout = form.without_metadata(form.parse(sealed.data.decode(), str(path)))
    texts = [text for value in _list_values(layout).values() if not (text := str(value)).startswith("ENC[")]
    found = [
        name
        for name, secret in secrets.items()
        if secret and not name.endswith(_NAMES) and any(_shows(text, secret) for text in texts)
    ]
    if found:
        raise ClearSecretError(f"{path} would have {', '.join(found)} in clear.", where=Location(str(path)))


def _shows(text: str, secret: str) -> bool:
    return text == secret or (len(secret) >= _SHORTEST_SECRET and secret in text)


def list_tokens(data: bytes, name: str) -> dict[str, str]:
    """Return the fingerprints of the encrypted values of a file, by `NAME#KEY`."""
    form = text_format(FileFormat.YAML)
    layout = form.without_metadata(form.parse(data.decode(), name))
    return {
        f"{name}#{key}": take_fingerprint(repr(value).encode()) for key, value in _list_values(layout).items()
    }


def _list_values(layout: Layout) -> dict[str, Scalar]:
    """Return the values of a file by their keys; those of further documents begin with its number.

    An empty text is no value: SOPS does not encrypt it, and the original writes one for what is absent.
    """
    return {
        ".".join(map(str, (*([number] if number else []), *path))): leaf.value
        for number, document in enumerate(layout.documents)
        for path, leaf in leaves(document.root)
        if leaf.value not in ("", None)
    }
