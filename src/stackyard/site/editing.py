"""Changes that programs make to a site: a token, a key, a node. Comments and order stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml
from pydantic import ValidationError

from stackyard import files, yamledit
from stackyard.diagnostics import Diagnostics
from stackyard.errors import InvalidInputError, Location
from stackyard.secrets import change_secrets
from stackyard.site.document import parse_document
from stackyard.site.entities.nodes import NodeFile
from stackyard.site.entities.secrets import SecretsFile
from stackyard.site.secret_values import SECRETS_FILES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["NotWrittenError", "put_api_token", "put_ssh_key", "write_node"]

# Node files hold no secret, and a site is often shared by a group.
_READABLE = 0o644


class NotWrittenError(InvalidInputError):
    """A program was about to write something into a site that the site would refuse."""

    code = "E-SITE-NOT-WRITTEN"
    summary = "The site was not changed, because it would no longer be valid"
    default_remedy = "Correct the value and try again."


def put_api_token(root: Path, name: str, token: str) -> bool:
    """Write the API token of a node into the secrets of a site, encrypted as the file is.

    Returns:
        Whether that changed anything.

    Raises:
        NotWrittenError: It is no token of the API.
        StackyardError: The secrets cannot be opened or written.
    """
    return _put_secret(root, ("api_tokens", name), token)


def put_ssh_key(root: Path, name: str, key: str) -> bool:
    """Write a public key into the secrets of a site.

    Returns:
        Whether that changed anything.

    Raises:
        NotWrittenError: It is no public key.
        StackyardError: The secrets cannot be opened or written.
    """
    return _put_secret(root, ("ssh_keys", name), key)


def _put_secret(root: Path, keys: tuple[str, str], value: str) -> bool:
    path = next((root / name for name in SECRETS_FILES if (root / name).exists()), root / SECRETS_FILES[0])
    try:
        SecretsFile.model_validate({keys[0]: {keys[1]: value}})
    except ValidationError as err:
        # Not chained: the error of the model quotes the value.
        reason = err.errors(include_input=False, include_url=False)[0]["msg"]
        where = Location(str(path))
        raise NotWrittenError(f"`{'.'.join(keys)}` does not fit: {reason}.", where=where) from None
    return change_secrets(path, [yamledit.Set(keys, value)])


def write_node(root: Path, name: str, fields: Mapping[str, Any]) -> Path:
    """Write the file of a node: a new one, or these fields of the one that is there.

    Raises:
        NotWrittenError: With these fields it would not be valid.
        FileError: It cannot be written.
    """
    path = root / "nodes" / f"{name}.yaml"
    is_new = not path.exists()
    text = "" if is_new else files.read_text(path)
    if is_new:
        changed = yaml.safe_dump(dict(fields), sort_keys=False, allow_unicode=True)
    else:
        changes = [yamledit.Set((key,), value) for key, value in fields.items()]
        changed = yamledit.edit_text(text, changes, str(path))
    try:
        NodeFile.model_validate(_data(changed, str(path)))
    except ValidationError as err:
        first = err.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        where = Location(str(path))
        raise NotWrittenError(f"`{key}` of the node '{name}': {first['msg']}.", where=where) from err
    if changed != text:
        path.parent.mkdir(exist_ok=True)
        files.replace_file(path, changed.encode(), mode=_READABLE)
    return path


def _data(text: str, path: str) -> dict[str, Any]:
    found = Diagnostics()
    document = parse_document(text, path, found)
    found.raise_errors(f"The file {path}")
    return {} if document is None else document.data
