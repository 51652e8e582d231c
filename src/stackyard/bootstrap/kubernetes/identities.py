"""Which of the user's age keys a cluster gets: those of its repository, and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.bootstrap.kubernetes.secrets import SecretValueError
from stackyard.secrets.sops.age import find_identities, recipient_of
from stackyard.secrets.sops.config import find_config, read_config

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.secrets import Keyring

__all__ = ["choose_identities"]


def choose_identities(folder: Path, keyring: Keyring) -> str:
    """Return the private keys with which Flux decrypts the repository, one in each line.

    The key file of a user often opens other repositories, too. So only the keys that `.sops.yaml` encrypts
    for are taken; without that file, the one key that stackyard encrypts the cluster's own secrets for.

    Args:
        folder: The folder of the cluster.
        keyring: The keys of the user.

    Raises:
        SecretValueError: The user has none of those keys.
        SopsConfigError: `.sops.yaml` is not valid.
        KeyringError: A key was named that cannot be used.
    """
    config = find_config(folder / "cluster.sops.yaml")
    if config is None:
        own = recipient_of(keyring)
        recipients: tuple[str, ...] = () if own is None else (own,)
        wanted = "of yours"
    else:
        recipients = read_config(config).list_recipients()
        wanted = f"whose recipient {config} names"
    found = find_identities(keyring, recipients)
    if not found:
        raise SecretValueError(
            f"There is no age key {wanted}: Flux could decrypt nothing.",
            remedy="Give the age key file of the repository in SOPS_AGE_KEY_FILE, or add your recipient to "
            ".sops.yaml and run `stackyard secrets rotate`; nothing was changed.",
        )
    return "\n".join(found)
