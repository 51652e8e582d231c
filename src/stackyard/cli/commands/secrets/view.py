"""`stackyard secrets view` and `stackyard secrets decrypt`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import InvalidInputError, Location, UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.secrets.options import (
    file_argument,
    make_keyring,
    output_path,
    vault_id_option,
    warn,
    write_like,
)
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.secrets.base import OpenedFile

__all__ = ["decrypt", "view"]

_PRIVATE = 0o600


@click.command("view", cls=Command)
@file_argument
@click.option(
    "--key", metavar="A.B.0", help="Show only one value: its keys and list indexes, separated by dots."
)
@vault_id_option
@pass_session
def view(session: Session, /, file: Path, key: str | None, vault_ids: tuple[str, ...]) -> Result:
    """Decrypt a secrets file and print it on standard output.

    With --json, `values` contains the values and `text` the decrypted file. A value that Ansible Vault
    encrypted inside YAML is shown with its tag, `!vault`.

    \b
    stackyard secrets view secrets.yaml
    stackyard secrets view secrets.yaml --key api_tokens.pve1
    stackyard secrets view secrets.yaml --json | jq -r .values.api_tokens.pve1
    """  # noqa: D301 - click reads the control character
    from stackyard.secrets.protected_file import open_file  # lazy: cryptography, only when this verb runs

    opened = open_file(file, make_keyring(vault_ids))
    warn(session, opened.warnings)
    values = _values(opened)
    if key is not None:
        found = _pick_value(values, key, file)
        return Result(
            document={"file": str(file), "kind": opened.kind.value, "key": key, "value": _jsonable(found)},
            show=lambda writer: writer.lines(_format_value(found)),
        )
    text = _text(opened, file)
    return Result(
        document={"file": str(file), "kind": opened.kind.value, "values": _jsonable(values), "text": text},
        show=lambda writer: writer.lines(text.removesuffix("\n")),
    )


@click.command("decrypt", cls=Command)
@file_argument
@click.option("--output", "-o", type=click.Path(path_type=Path), metavar="FILE", help="The file to write.")
@click.option("--in-place", is_flag=True, help="Overwrite the encrypted file.")
@vault_id_option
@pass_session
def decrypt(
    session: Session, /, file: Path, output: Path | None, in_place: bool, vault_ids: tuple[str, ...]
) -> Result:
    """Decrypt a secrets file to a file that only you can read.

    To read a file without leaving a copy, use `view`. To change it, use `edit`.

    \b
    stackyard secrets decrypt secrets.yaml.enc --output secrets.yaml
    """  # noqa: D301 - click reads the control character
    from stackyard.secrets.base import SecretsKind  # lazy: cryptography, only when this verb runs
    from stackyard.secrets.protected_file import open_file  # lazy: as above
    from stackyard.secrets.vault.file import without_tags  # lazy: as above

    target = output_path(file, output, is_in_place=in_place)
    opened = open_file(file, make_keyring(vault_ids))
    warn(session, opened.warnings)
    if opened.kind is SecretsKind.PLAIN:
        raise UsageError(f"{file} is not encrypted.")
    is_inline = opened.kind is SecretsKind.VAULT_INLINE
    write_like(target, without_tags(opened.plain, str(file)) if is_inline else opened.plain, mode=_PRIVATE)
    return Result(
        document={"file": str(file), "kind": opened.kind.value, "output": str(target)},
        show=lambda writer: writer.line(f"{target} is in clear now; do not commit it."),
    )


def _values(opened: OpenedFile) -> Any:
    from stackyard.secrets.layout import plain_data  # lazy: as above

    layout = opened.layout()
    if layout is None:
        return None
    documents = [plain_data(document.root) for document in layout.documents]
    return documents[0] if len(documents) == 1 else documents


def _text(opened: OpenedFile, file: Path) -> str:
    try:
        return opened.plain.decode()
    except UnicodeDecodeError as err:
        raise InvalidInputError(
            f"{file} holds bytes that are no text.",
            where=Location(str(file)),
            remedy=f"Write them to a file: stackyard secrets decrypt {file} --output FILE",
        ) from err


def _pick_value(values: Any, key: str, file: Path) -> Any:
    """Follow keys and indexes to one value."""
    here = values
    for word in key.split("."):
        if isinstance(here, dict) and word in here:
            here = here[word]
        elif isinstance(here, list) and word.isdecimal() and int(word) < len(here):
            here = here[int(word)]
        else:
            raise InvalidInputError(
                f"{file} has no value `{key}`: `{word}` is not there.",
                where=Location(str(file)),
                remedy="Look at its keys: stackyard secrets view FILE",
            )
    return here


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _jsonable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_jsonable(inner) for inner in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else value.decode(errors="replace")


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return value.removesuffix("\n")
    import json  # lazy: for single values that are no text

    return json.dumps(_jsonable(value), ensure_ascii=False)
