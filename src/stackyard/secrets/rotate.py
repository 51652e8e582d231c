"""Giving a secrets file a new key: a new data key and other recipients, or another password."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base.errors import InvalidInputError, Location
from stackyard.secrets.keyring import Keyring
from stackyard.secrets.protected_file import open_file
from stackyard.secrets.sops.age import check_recipient
from stackyard.secrets.sops.config import find_config, read_config
from stackyard.secrets.sops.file import OpenedSops
from stackyard.secrets.vault.file import OpenedInlineVault, OpenedVault
from stackyard.secrets.vault.passwords import vault_passwords

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stackyard.secrets.base import OpenedFile, SecretsKind

__all__ = ["NotRotatedError", "Rotated", "Rotation", "rotate"]


class NotRotatedError(InvalidInputError):
    """A secrets file cannot get a new key as asked: not encrypted, no one left, or keys of other services."""

    code = "E-SECRETS-ROTATE"
    summary = "A secrets file cannot get a new key"
    default_remedy = "Nothing was changed."


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """What is asked for.

    Attributes:
        add: Public keys to encrypt for as well.
        remove: Public keys to encrypt for no longer.
        from_config: Whether `.sops.yaml` names the recipients.
        new_vault_id: The new password, as `LABEL@FILE` or `FILE`.
    """

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    from_config: bool = False
    new_vault_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotated:
    """A file with its new key, not yet written."""

    path: Path
    kind: SecretsKind
    recipients: tuple[str, ...]
    sealed: bytes = field(repr=False)


def rotate(path: Path, keyring: Keyring, rotation: Rotation) -> Rotated:
    """Return a file with a new key.

    Raises:
        NotRotatedError: It cannot be done as asked.
        SecretsLockedError: The file cannot be opened.
        RecipientError: A recipient cannot be used.
    """
    opened = open_file(path, keyring)
    if isinstance(opened, OpenedSops):
        groups = _groups(opened, path, rotation)
        recipients = tuple(dict.fromkeys(one for group in groups for one in group))
        return Rotated(path=path, kind=opened.kind, recipients=recipients, sealed=opened.rekey(groups))
    return Rotated(path=path, kind=opened.kind, recipients=(), sealed=_rekey(opened, path, keyring, rotation))


def _groups(opened: OpenedSops, path: Path, rotation: Rotation) -> Sequence[Sequence[str]]:
    where = Location(str(path))
    metadata = opened.metadata
    if metadata.foreign:
        named = ", ".join(f"{key.service} {key.name}" for key in metadata.foreign)
        raise NotRotatedError(
            f"{path} is also encrypted for keys that only sops itself can use ({named}); they would be lost.",
            where=where,
            remedy=f"Run `sops rotate --in-place {path}`.",
        )
    if rotation.from_config:
        config = find_config(path)
        if config is None:
            raise NotRotatedError(f"There is no .sops.yaml for {path}.", where=where)
        return read_config(config).creation_rule(path).groups
    groups = [[key.recipient for key in group.age] for group in metadata.groups]
    known = {one for group in groups for one in group}
    missing = [one for one in rotation.remove if one.strip() not in known]
    if missing:
        raise NotRotatedError(f"{path} is not encrypted for {', '.join(missing)}.", where=where)
    gone = {one.strip() for one in rotation.remove}
    groups = [[one for one in group if one not in gone] for group in groups]
    # A recipient that is added gets into the first group; several groups are a matter of .sops.yaml.
    groups[0] += [one for one in map(check_recipient, rotation.add) if one not in groups[0]]
    if not all(groups):
        raise NotRotatedError(f"No remaining key could open {path}.", where=where)
    return groups


def _rekey(opened: OpenedFile, path: Path, keyring: Keyring, rotation: Rotation) -> bytes:
    where = Location(str(path))
    if not isinstance(opened, OpenedVault | OpenedInlineVault):
        raise NotRotatedError(f"{path} is not encrypted.", where=where)
    if rotation.add or rotation.remove or rotation.from_config:
        raise NotRotatedError(f"{path} is a file of Ansible Vault, which has no recipients.", where=where)
    if rotation.new_vault_id is None:
        raise NotRotatedError(
            f"{path} is a file of Ansible Vault: its new password must be named.",
            where=where,
            remedy="Name a file with it: --new-vault-id [LABEL@]FILE",
        )
    new = Keyring(env={**keyring.env, "ANSIBLE_VAULT_IDENTITY_LIST": ""}, vault_ids=(rotation.new_vault_id,))
    return opened.rekey(vault_passwords(new)[0])
