"""Which files must be encrypted, by their names or by `.sops.yaml`, and whether they are."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from stackyard.base.errors import InvalidInputError
from stackyard.secrets.base import SecretsKind
from stackyard.secrets.layout import Leaf, SecretsSyntaxError, leaves
from stackyard.secrets.names import is_secret_name
from stackyard.secrets.protected_file import detect
from stackyard.secrets.sops.cipher import looks_encrypted
from stackyard.secrets.sops.config import SopsConfig, parse_config
from stackyard.secrets.sops.metadata import read_metadata
from stackyard.secrets.sops.text import FileFormat, format_of_name, text_format
from stackyard.secrets.sops.tree import walk_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.secrets.values import Scalar

__all__ = ["CONFIG_NAME", "Broken", "configs_of", "find_broken_promises", "is_secret_name"]

CONFIG_NAME = ".sops.yaml"
_VAULT_LINE = re.compile(r"[0-9a-fA-F]*")
# The key under which SOPS keeps what it needs to decrypt a file.
_SOPS = "sops"

Broken = tuple[int, str]


def configs_of(texts: Mapping[str, str]) -> dict[PurePosixPath, SopsConfig]:
    """Return every `.sops.yaml` by the folder that it counts for.

    Args:
        texts: Files of the index by their paths.

    Raises:
        SopsConfigError: One of them is not valid.
    """
    return {
        PurePosixPath(path).parent: parse_config(text, Path(path))
        for path, text in texts.items()
        if PurePosixPath(path).name == CONFIG_NAME
    }


def find_broken_promises(
    path: str, text: str, configs: Mapping[PurePosixPath, SopsConfig]
) -> Iterator[Broken]:
    """Yield the lines of a file that are in clear and must not be, with the reason."""
    reason = _find_promise(path, configs)
    if reason is None and _SOPS not in text:
        # Nothing says that it is encrypted: neither its name, nor a rule, nor the file itself.
        return
    try:
        kind = detect(text.encode(), path).kind
    except InvalidInputError as err:
        if reason is not None:
            yield (err.where.line or 1) if err.where else 1, f"{reason}, and it cannot be read: {err.detail}"
        return
    if kind is SecretsKind.VAULT:
        yield from _find_torn(text)
    elif kind is SecretsKind.SOPS:
        yield from (
            (leaf.place.line, "the value is in clear in a file of SOPS") for leaf in _clear(path, text)
        )
    elif reason is not None and kind is SecretsKind.PLAIN and _holds_values(path, text):
        yield 1, reason


def _find_promise(path: str, configs: Mapping[PurePosixPath, SopsConfig]) -> str | None:
    """Return why a file must be encrypted, if it must."""
    name = path.rpartition("/")[2]
    if name == CONFIG_NAME:
        return None
    parents = PurePosixPath(path).parents if configs else ()
    nearest = next((configs[folder] for folder in parents if folder in configs), None)
    rule = nearest.find_rule(Path(path)) if nearest is not None else None
    if nearest is not None and rule is not None and rule.get("path_regex"):
        return f"{nearest.path} says that it is encrypted"
    return "its name says that it holds secrets" if is_secret_name(name) else None


def _clear(path: str, text: str) -> Iterator[Leaf]:
    """Yield the values of a SOPS file that are not encrypted although its rules say that they are."""
    format = detect(text.encode(), path).format
    form = text_format(format)
    layout = form.parse(text, path)
    metadata = read_metadata(form.metadata(layout) or {}, form.metadata_place(layout, path))
    for visit in walk_tree(form.without_metadata(layout), metadata.rule):
        if isinstance(visit.thing, Leaf) and visit.is_encrypted and _is_said(visit.thing.value):
            yield visit.thing


def _find_torn(text: str) -> Iterator[Broken]:
    """Yield the first line below the header of Ansible Vault that is not encrypted: nobody can open it."""
    for number, line in enumerate(text.splitlines()[1:], 2):
        if not _VAULT_LINE.fullmatch(line.strip()):
            yield number, "only its header says that it is encrypted"
            return


def _is_said(value: Scalar) -> bool:
    return value not in (None, "") and not looks_encrypted(value)


def _holds_values(path: str, text: str) -> bool:
    """Tell whether a file holds anything: one that is empty, or has keys without values, keeps no secret."""
    format = format_of_name(path)
    if format is FileFormat.BINARY:
        return bool(re.search(r"^[^\S\n]*[^#\s]", text, re.MULTILINE))
    try:
        layout = text_format(format).parse(text.removeprefix("\ufeff"), path)
    except SecretsSyntaxError:
        # Something that no one can read is not nothing.
        return True
    return any(leaf.value not in (None, "") for one in layout.documents for _, leaf in leaves(one.root))
