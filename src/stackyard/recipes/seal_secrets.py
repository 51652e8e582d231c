"""Encrypting the secrets of a new stack, with what the user has; a user who has nothing gets a password."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.secrets.base import SecretsKind
from stackyard.secrets.check.promises import is_secret_name
from stackyard.secrets.keyring import Keyring
from stackyard.secrets.protected_file import detect
from stackyard.secrets.vault.passwords import encryption_password, make_own_password, vault_passwords

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["Sealer", "choose_sealer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealer:
    """How new secrets are encrypted.

    Attributes:
        kind: `vault` or `sops`.
        key: What opens them, in words: where the password or key is.
        new_file: The file with the password or key that was made for it.
        keyring: The keys of the user.
    """

    kind: SecretsKind
    key: str
    keyring: Keyring
    new_file: Path | None = None
    recipients: tuple[str, ...] = ()

    def seal(self, plain: str, path: Path) -> bytes:
        """Return a text encrypted.

        Args:
            plain: The text.
            path: Where it will be.

        Raises:
            StackyardError: It cannot be encrypted.
        """
        if self.kind is SecretsKind.VAULT:
            from stackyard.secrets.vault.file import seal_whole  # lazy: cryptography, for one of the two

            return seal_whole(plain.encode(), self.keyring)
        from stackyard.secrets.create import creation_rule  # lazy: as above
        from stackyard.secrets.sops.file import seal_new  # lazy: as above
        from stackyard.secrets.sops.text import format_of_name  # lazy: as above

        rule = creation_rule(path, self.recipients)
        return seal_new(plain.encode(), str(path), format_of_name(path.name), rule)


def choose_sealer(repository: StackRepository, path: Path) -> Sealer:
    """Return how the secrets of a new stack are encrypted.

    A password of Ansible Vault that is set comes first, then a rule of `.sops.yaml`, then what the other
    stacks use. Where there is nothing of all this, a password is made, in a file outside of the repository.

    Args:
        repository: All stacks.
        path: Where the file will be.

    Raises:
        SecretsLockedError: The other stacks use a password that is not known here.
        KeyringError: A password or key was named that cannot be used.
        FileError: The new password cannot be written.
    """
    keyring = Keyring()
    if vault_passwords(keyring):
        return _vault(keyring)
    if _has_sops_rule(path):
        return Sealer(kind=SecretsKind.SOPS, key="the keys that .sops.yaml names", keyring=keyring)
    kinds = set(_list_kinds(repository))
    if SecretsKind.VAULT in kinds:
        # Another password would be a second one in the same repository; the error names where to set it.
        encryption_password(keyring)
    if SecretsKind.SOPS in kinds:
        from stackyard.secrets.sops.age import user_recipient  # lazy: cryptography, for one of the two

        own, made = user_recipient(keyring)
        key = str(made or keyring.age_keys_file)
        return Sealer(kind=SecretsKind.SOPS, key=key, keyring=keyring, new_file=made, recipients=(own,))
    return _vault(keyring, make_own_password(keyring))


def _vault(keyring: Keyring, new_file: Path | None = None) -> Sealer:
    return Sealer(
        kind=SecretsKind.VAULT, key=encryption_password(keyring).place, keyring=keyring, new_file=new_file
    )


def _has_sops_rule(path: Path) -> bool:
    from stackyard.secrets.sops.config import find_config, read_config  # lazy: only without a vault password

    config = find_config(path)
    return config is not None and read_config(config).find_rule(path) is not None


def _list_kinds(repository: StackRepository) -> Iterator[SecretsKind]:
    """Yield how the secrets of the other stacks are encrypted."""
    for stack in repository.stacks.values():
        for name in repository.files.get(stack.path, ()):
            if is_secret_name(name):
                file = stack.folder / name
                try:
                    yield detect(file.read_bytes(), str(file)).kind
                except OSError:
                    continue
