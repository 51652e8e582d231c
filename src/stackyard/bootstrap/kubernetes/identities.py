"""Which of the user's age keys a cluster gets: those of its repository, and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.bootstrap.kubernetes.secrets import SecretValueError
from stackyard.secrets.sops.age import find_identities, recipient_of
from stackyard.secrets.sops.config import find_config, read_config

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stackyard.secrets import Keyring

__all__ = ["choose_identities"]


def choose_identities(folder: Path, software: Sequence[str], keyring: Keyring) -> str:
    """Return the private keys with which Flux decrypts the repository, one in each line.

    The key file of a user often opens other repositories, too, and whoever reads Secrets in the cluster has
    these keys. So only those are taken that `.sops.yaml` encrypts the files of Flux for: those in the folders
    of the software, all of the repository where no rule fits these. Without `.sops.yaml`, it is the one key
    that stackyard encrypts the cluster's own secrets for.

    Args:
        folder: The folder of the cluster.
        software: The folders that Flux applies, seen from `.sops.yaml`; they may be in another repository.
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
        rules = read_config(config)
        files = [file for one in software for file in _list_files(config.parent / one)]
        recipients = rules.list_recipients_of(files) or rules.list_recipients()
        wanted = f"whose recipient {config} names"
    found = find_identities(keyring, recipients)
    if not found:
        raise SecretValueError(
            f"There is no age key {wanted}: Flux could decrypt nothing.",
            remedy="Give the age key file of the repository in SOPS_AGE_KEY_FILE, or add your recipient to "
            ".sops.yaml and run `stackyard secrets rotate`; nothing was changed.",
        )
    return "\n".join(found)


def _list_files(software: Path) -> list[Path]:
    """Return the encrypted files below a folder, and one as the next may be called."""
    kept = sorted(path for end in ("yaml", "yml") for path in software.rglob(f"*.sops.{end}"))
    return [*kept, software / "secret.sops.yaml"]
