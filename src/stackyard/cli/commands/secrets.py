"""`stackyard secrets`: files of SOPS and Ansible Vault."""

from __future__ import annotations

from stackyard.cli.command import Later, group

__all__ = ["secrets"]

_LATER = {
    "check": Later(
        module="stackyard.cli.commands.secrets_check",
        name="check",
        help="Find secrets in clear among the files that git tracks or has staged.",
    ),
    "decrypt": Later(
        module="stackyard.cli.commands.secrets_view",
        name="decrypt",
        help="Write a secrets file in clear, readable for you alone.",
    ),
    "edit": Later(
        module="stackyard.cli.commands.secrets_edit",
        name="edit",
        help="Edit a secrets file with your editor (SOPS_EDITOR, VISUAL or EDITOR).",
    ),
    "encrypt": Later(
        module="stackyard.cli.commands.secrets_encrypt",
        name="encrypt",
        help="Encrypt a file that is in clear, in place unless --output says otherwise.",
    ),
    "rotate": Later(
        module="stackyard.cli.commands.secrets_rotate",
        name="rotate",
        help="Encrypt secrets files with a new data key, and for other recipients if asked.",
    ),
    "view": Later(
        module="stackyard.cli.commands.secrets_view",
        name="view",
        help="Show what a secrets file holds, in clear, on standard output.",
    ),
}


@group("secrets", later=_LATER)
def secrets() -> None:
    """Read and write secrets files of SOPS (with age keys) and of Ansible Vault.

    Neither program is needed. What protects a file is told from its content. Private keys of age come from
    SOPS_AGE_KEY, SOPS_AGE_KEY_FILE, SOPS_AGE_KEY_CMD or ~/.config/sops/age/keys.txt; passwords of Ansible
    Vault from --vault-id, ANSIBLE_VAULT_IDENTITY_LIST, ANSIBLE_VAULT_PASSWORD_FILE or ANSIBLE_VAULT_PASSWORD.

    \b
    stackyard secrets encrypt secrets.yaml --age self   encrypt it for yourself; makes a key if you have none
    stackyard secrets edit secrets.yaml                 in your editor; only what you change is encrypted anew
    stackyard secrets check --install-hook              no commit with a secret in clear any more
    """  # noqa: D301 - click reads the control character
