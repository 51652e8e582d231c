"""Making a new encrypted file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base import files
from stackyard.secrets.sops.age import check_recipient
from stackyard.secrets.sops.config import CreationRule, find_config, read_config
from stackyard.secrets.sops.file import seal_new
from stackyard.secrets.sops.rules import DEFAULT_RULE, PathRule
from stackyard.secrets.sops.text import FileFormat, format_of_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["create_sops_file", "creation_rule"]


def creation_rule(path: Path, recipients: Sequence[str], rule: PathRule | None = None) -> CreationRule:
    """Return how a new file is encrypted: as asked, else as the nearest `.sops.yaml` says.

    Raises:
        SopsConfigError: There is no rule for it.
        RecipientError: No one was named and there is no `.sops.yaml`, or someone cannot be encrypted for.
    """
    if recipients:
        return CreationRule(groups=(tuple(map(check_recipient, recipients)),), rule=rule or DEFAULT_RULE)
    config = find_config(path)
    return CreationRule(groups=()) if config is None else read_config(config).creation_rule(path)


def create_sops_file(
    path: Path,
    plain: bytes,
    recipients: Sequence[str] = (),
    *,
    rule: PathRule | None = None,
    format: FileFormat | None = None,
    mode: int = files.PRIVATE,
) -> None:
    """Encrypt something and write it.

    Args:
        path: Where to; what was there is replaced.
        plain: What to encrypt.
        recipients: For whom; as the nearest `.sops.yaml` says when absent.
        rule: Which values to encrypt; all but those with the usual suffix when absent.
        format: What it is; as the name says when absent.
        mode: Who may read the encrypted file.

    Raises:
        SecretsSyntaxError: It is not in this format, or encrypted already.
        SopsConfigError: `.sops.yaml` has no rule for it.
        RecipientError: There is no one to encrypt for.
        FileError: It cannot be written.
    """
    how = creation_rule(path, recipients, rule)
    files.replace_file(path, seal_new(plain, str(path), format or format_of_name(path.name), how), mode=mode)
