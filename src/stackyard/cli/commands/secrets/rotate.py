"""`stackyard secrets rotate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.secrets.options import make_keyring, vault_id_option, write_like
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.secrets.rotate import Rotated

__all__ = ["rotate"]


@click.command("rotate", cls=Command)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--add", multiple=True, metavar="KEY", help="Also encrypt for this public key.")
@click.option("--remove", multiple=True, metavar="KEY", help="No longer encrypt for this public key.")
@click.option("--from-config", is_flag=True, help="Encrypt for exactly the keys that .sops.yaml names.")
@click.option("--new-vault-id", metavar="[LABEL@]FILE", help="The new password, for Ansible Vault files.")
@vault_id_option
def rotate(files: tuple[Path, ...], vault_ids: tuple[str, ...], **options: Any) -> Result:
    """Re-encrypt secrets files with a new data key, and optionally for other recipients.

    The command decrypts all files before it writes the first. A removed recipient can still read what was
    encrypted before: change the secrets themselves too.

    \b
    stackyard secrets rotate secrets.yaml
    stackyard secrets rotate secrets.yaml --add age1... --remove age1...
    stackyard secrets rotate secrets.yaml --from-config
    stackyard secrets rotate group_vars/all/vault.yml --new-vault-id ~/.new-password
    """  # noqa: D301 - click reads the control character
    from stackyard.secrets.rotate import Rotation, rotate  # lazy: cryptography, only for this verb

    rotation = Rotation(**options)
    if rotation.from_config and (rotation.add or rotation.remove):
        raise UsageError("--from-config names all recipients: it goes without --add and --remove.")
    keyring = make_keyring(vault_ids)
    done = [rotate(file, keyring, rotation) for file in files]
    for one in done:
        write_like(one.path, one.sealed)
    return Result(
        document={"files": [_document(one) for one in done]}, show=lambda writer: _show(writer, done)
    )


def _document(one: Rotated) -> dict[str, Any]:
    return {"file": str(one.path), "kind": one.kind.value, "recipients": list(one.recipients)}


def _show(writer: TextWriter, done: list[Rotated]) -> None:
    for one in done:
        writer.line(f"{one.path} has a new key.")
        for recipient in one.recipients:
            writer.line(f"  for {recipient}")
