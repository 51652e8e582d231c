"""`stackyard secrets`: files of SOPS and Ansible Vault."""

from __future__ import annotations

from stackyard.cli.command import LazyCommand, group

__all__ = ["secrets"]

_LATER = {
    "check": LazyCommand(
        module="stackyard.cli.commands.secrets.check",
        name="check",
        help="Find secrets in clear in the files that git tracks or has staged.",
    ),
    "decrypt": LazyCommand(
        module="stackyard.cli.commands.secrets.view",
        name="decrypt",
        help="Decrypt a secrets file to a file that only you can read.",
    ),
    "edit": LazyCommand(
        module="stackyard.cli.commands.secrets.edit",
        name="edit",
        help="Edit a secrets file with your editor (SOPS_EDITOR, VISUAL or EDITOR).",
    ),
    "encrypt": LazyCommand(
        module="stackyard.cli.commands.secrets.encrypt",
        name="encrypt",
        help="Encrypt a file in place, or into the file that --output names.",
    ),
    "rotate": LazyCommand(
        module="stackyard.cli.commands.secrets.rotate",
        name="rotate",
        help="Re-encrypt secrets files with a new data key, and optionally for other recipients.",
    ),
    "view": LazyCommand(
        module="stackyard.cli.commands.secrets.view",
        name="view",
        help="Decrypt a secrets file and print it on standard output.",
    ),
}


@group("secrets", later=_LATER)
def secrets() -> None:
    """Read and write secrets files in the formats of SOPS (with age keys) and Ansible Vault.

    This needs neither program. It detects the format of a file from its content. Private age keys come from
    SOPS_AGE_KEY, SOPS_AGE_KEY_FILE, SOPS_AGE_KEY_CMD or ~/.config/sops/age/keys.txt. Ansible Vault passwords
    come from --vault-id, ANSIBLE_VAULT_IDENTITY_LIST, ANSIBLE_VAULT_PASSWORD_FILE or ANSIBLE_VAULT_PASSWORD.

    \b
    stackyard secrets encrypt secrets.yaml --age self   for yourself; creates a key if you have none
    stackyard secrets edit secrets.yaml                 in your editor; re-encrypts only changed values
    stackyard secrets check --install-hook              block commits that contain a secret in clear
    """  # noqa: D301 - click reads the control character
