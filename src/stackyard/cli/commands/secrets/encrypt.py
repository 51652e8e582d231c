"""`stackyard secrets encrypt`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.secrets.options import file_argument, make_keyring, vault_id_option, write_like
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.secrets.keyring import Keyring
    from stackyard.secrets.sops.config import CreationRule

__all__ = ["encrypt"]

_SELF = "self"


@click.command("encrypt", cls=Command)
@file_argument
@click.option(
    "--age",
    "recipients",
    multiple=True,
    metavar="KEY|self",
    help="Encrypt for this age or SSH public key; self: for your own, which is created if you have none.",
)
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), metavar="FILE", help="Write to another file."
)
@click.option("--encrypted-regex", metavar="RE", help="Encrypt only values below keys that match.")
@click.option(
    "--unencrypted-regex", metavar="RE", help="Encrypt all values except those below keys that match."
)
@click.option("--mac-only-encrypted", is_flag=True, help="Allow changes of values in clear without SOPS.")
@click.option("--vault", is_flag=True, help="Use Ansible Vault for the whole file.")
@click.option("--vault-inline", is_flag=True, help="Use Ansible Vault for the values tagged !vault.")
@vault_id_option
def encrypt(file: Path, output: Path | None, vault_ids: tuple[str, ...], **options: Any) -> Result:
    """Encrypt a file in place, or into the file that --output names.

    Without --vault, the result is a SOPS file: YAML (.yaml, .yml), JSON (.json) and dotenv (.env) value by
    value, anything else as a whole. It is encrypted for the keys of --age, or according to the nearest
    .sops.yaml.

    \b
    stackyard secrets encrypt secrets.yaml --age self
    stackyard secrets encrypt secrets.yaml --age age1... --age "ssh-ed25519 AAAA..."
    stackyard secrets encrypt secrets.tfvars --vault --vault-id prod@~/.vault-password
    """  # noqa: D301 - click reads the control character
    wanted = _EncryptOptions(**options)
    keyring = make_keyring(vault_ids)
    target = output or file
    plain = _plain(file)
    if wanted.vault or wanted.vault_inline:
        sealed, facts = _for_vault(plain, file, keyring, wanted)
    else:
        sealed, facts = _for_sops(plain, target, keyring, wanted)
    write_like(target, sealed)
    document = {"file": str(target), **facts}
    return Result(document=document, show=lambda writer: writer.lines("\n".join(_lines(document))))


@dataclass(frozen=True, slots=True, kw_only=True)
class _EncryptOptions:
    recipients: tuple[str, ...]
    encrypted_regex: str | None
    unencrypted_regex: str | None
    mac_only_encrypted: bool
    vault: bool
    vault_inline: bool


def _plain(file: Path) -> bytes:
    from stackyard.secrets.base import SecretsKind  # lazy: cryptography, only when this verb runs
    from stackyard.secrets.protected_file import detect, read_bytes  # lazy: as above

    data = read_bytes(file)
    kind = detect(data, str(file)).kind
    if kind is not SecretsKind.PLAIN and kind is not SecretsKind.VAULT_INLINE:
        raise UsageError(
            f"{file} is encrypted already ({kind}). Change it with `stackyard secrets edit {file}`."
        )
    return data


def _for_vault(
    plain: bytes, file: Path, keyring: Keyring, wanted: _EncryptOptions
) -> tuple[bytes, dict[str, Any]]:
    from stackyard.secrets.vault.file import seal_inline, seal_whole  # lazy: as above

    if wanted.recipients or (wanted.vault and wanted.vault_inline):
        raise UsageError("--age, --vault and --vault-inline cannot be used together.")
    if wanted.vault_inline:
        return seal_inline(plain, str(file), keyring), {"kind": "vault-inline"}
    return seal_whole(plain, keyring), {"kind": "vault"}


def _for_sops(
    plain: bytes, target: Path, keyring: Keyring, wanted: _EncryptOptions
) -> tuple[bytes, dict[str, Any]]:
    from stackyard.secrets.sops.age import user_recipient  # lazy: as above
    from stackyard.secrets.sops.file import seal_new  # lazy: as above
    from stackyard.secrets.sops.text import format_of_name  # lazy: as above

    made: Path | None = None
    recipients = list(wanted.recipients)
    if _SELF in recipients:
        own, made = user_recipient(keyring)
        recipients = [own if one == _SELF else one for one in recipients]
    rule = _rule(target, recipients, wanted)
    sealed = seal_new(plain, str(target), format_of_name(target.name), rule)
    facts = {"kind": "sops", "recipients": [one for group in rule.groups for one in group]}
    return sealed, facts | {"new_key_file": None if made is None else str(made)}


def _rule(target: Path, recipients: list[str], wanted: _EncryptOptions) -> CreationRule:
    import dataclasses  # lazy: as above

    from stackyard.base.errors import Location  # lazy: as above
    from stackyard.secrets.create import creation_rule  # lazy: as above
    from stackyard.secrets.sops.rules import rule_from  # lazy: as above

    rule = creation_rule(target, recipients)
    named = {"encrypted_regex": wanted.encrypted_regex, "unencrypted_regex": wanted.unencrypted_regex}
    if any(named.values()):
        rule = dataclasses.replace(rule, rule=rule_from(named, Location("the command line")))
    return dataclasses.replace(
        rule, is_mac_only_encrypted=rule.is_mac_only_encrypted or wanted.mac_only_encrypted
    )


def _lines(document: dict[str, Any]) -> list[str]:
    lines = []
    if document.get("new_key_file"):
        lines.append(
            f"Created your private key: {document['new_key_file']}. Keep a copy of it in a safe place."
        )
    lines.append(f"{document['file']} is encrypted ({document['kind']}).")
    lines += [f"  for {one}" for one in document.get("recipients", ())]
    return lines
