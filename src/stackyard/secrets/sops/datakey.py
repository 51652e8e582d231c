"""The data key of a file: unwrapped with the user's keys, and wrapped for recipients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.secrets.base import SecretsLockedError
from stackyard.secrets.sops.age import RecipientError, unwrap, wrap
from stackyard.secrets.sops.metadata import KeyGroup, Metadata, SopsMetadataError
from stackyard.secrets.sops.shamir import combine, split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.base.errors import Location
    from stackyard.secrets.keyring import Keyring

__all__ = ["data_key", "wrap_groups"]

_KEY_BYTES = 32


def data_key(metadata: Metadata, keyring: Keyring, where: Location) -> bytes:
    """Return the data key of a file.

    Raises:
        SecretsLockedError: The keys of the user do not open it.
        SopsMetadataError: What they open is no data key.
    """
    parts = [part for group in metadata.groups if (part := unwrap(group.age, keyring)) is not None]
    needed = metadata.threshold if len(metadata.groups) > 1 else 1
    if len(parts) < needed:
        raise _make_locked_error(metadata, keyring, where, got=len(parts), needed=needed)
    try:
        key = parts[0] if len(metadata.groups) == 1 else combine(parts)
    except ValueError as err:
        raise SopsMetadataError(f"The key groups of {where.path} do not fit: {err}.", where=where) from err
    if len(key) != _KEY_BYTES:
        raise SopsMetadataError(f"The data key of {where.path} has the wrong length.", where=where)
    return key


def _make_locked_error(
    metadata: Metadata, keyring: Keyring, where: Location, *, got: int, needed: int
) -> SecretsLockedError:
    lines = [f"None of your keys opens {where.path}."]
    if needed > 1:
        lines = [
            f"{where.path} needs keys of {needed} of its {len(metadata.groups)} groups, and yours open {got}."
        ]
    if metadata.recipients:
        lines += ["It is encrypted for these age keys:", *(f"  {one}" for one in metadata.recipients)]
    if metadata.foreign:
        lines += [
            "It is also encrypted for keys that only sops itself can use:"
            if metadata.recipients
            else "It is encrypted for keys that only sops itself can use:"
        ]
        lines += [f"  {key.service} {key.name}" for key in metadata.foreign]
    lines += ["Looked for private keys:", *(f"  {note}" for note in keyring.notes)]
    return SecretsLockedError(
        "\n".join(lines),
        where=where,
        remedy=(
            "Set SOPS_AGE_KEY_FILE to a file with one of these keys, or put it into "
            f"{keyring.age_keys_file}; or have somebody with a key run `stackyard secrets rotate --add`."
        ),
    )


def wrap_groups(key: bytes, groups: Sequence[Sequence[str]], threshold: int) -> tuple[KeyGroup, ...]:
    """Wrap a data key, or its parts, for the recipients of each group.

    Raises:
        RecipientError: There is no one to encrypt for, or someone cannot be encrypted for.
    """
    if not groups or not all(groups):
        raise RecipientError("There is no recipient to encrypt for.")
    parts = [key] if len(groups) == 1 else split(key, parts=len(groups), threshold=threshold)
    return tuple(KeyGroup(age=wrap(part, recipients)) for part, recipients in zip(parts, groups, strict=True))
