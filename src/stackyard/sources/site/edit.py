"""Changes that programs make to a site: a token, a key, a node. Comments and order stay as they are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import ValidationError

from stackyard.base import files, locks, yamledit
from stackyard.base.diagnostics import Diagnostics
from stackyard.base.errors import InvalidInputError, Location
from stackyard.base.visible import on_one_line
from stackyard.secrets import Keyring, change_secrets, create_sops_file, user_recipient
from stackyard.sources.site.document import parse_document
from stackyard.sources.site.entities.hosts import HostFile
from stackyard.sources.site.entities.nodes import NodeFile
from stackyard.sources.site.entities.secrets import SecretsFile
from stackyard.sources.site.secret_values import find_secrets_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.sources.site.entities.values import Entity

__all__ = [
    "EditedFile",
    "NotWrittenError",
    "merge_host",
    "merge_node",
    "plan_node",
    "put_api_token",
    "put_ssh_key",
    "remove_api_token",
    "write_node",
]

# Node files hold no secret, and a site is often shared by a group.
_READABLE = 0o644
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


class NotWrittenError(InvalidInputError):
    """A program was about to write something into a site that the site would refuse."""

    code = "E-SITE-NOT-WRITTEN"
    summary = "The site was not changed, because it would no longer be valid"
    default_remedy = "Correct the value and try again."


def put_api_token(root: Path, name: str, token: str) -> bool:
    """Write the API token of a node into the secrets of a site, encrypted as the file is.

    Where there is no file of secrets, one is created that is encrypted for the user.

    Returns:
        Whether that changed anything.

    Raises:
        NotWrittenError: It is no token of the API.
        StackyardError: The secrets cannot be opened or written.
    """
    return _put_secret(root, ("api_tokens", name), token)


def remove_api_token(root: Path, name: str) -> bool:
    """Take an API token out of the secrets of a site.

    Returns:
        Whether that changed anything.

    Raises:
        StackyardError: The secrets cannot be opened or written.
    """
    path = find_secrets_file(root)
    return path.exists() and change_secrets(path, [yamledit.Remove(("api_tokens", name))])


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
    path = find_secrets_file(root)
    if not value:
        raise NotWrittenError(f"`{'.'.join(keys)}` would be blank.", where=Location(str(path)))
    try:
        SecretsFile.model_validate({keys[0]: {keys[1]: value}})
    except ValidationError as err:
        # Not chained: the error of the model quotes the value.
        reason = err.errors(include_input=False, include_url=False)[0]["msg"]
        where = Location(str(path))
        raise NotWrittenError(f"`{'.'.join(keys)}` does not fit: {reason}.", where=where) from None
    if not path.exists():
        recipient, _ = user_recipient(Keyring())
        plain = yaml.safe_dump({keys[0]: {keys[1]: value}}, allow_unicode=True)
        create_sops_file(path, plain.encode(), (recipient,), mode=_READABLE)
        return True
    return change_secrets(path, [yamledit.Set(keys, value)])


def write_node(root: Path, name: str, fields: Mapping[str, Any]) -> Path:
    """Write the file of a node: a new one, or these fields of the one that is there.

    Raises:
        NotWrittenError: With these fields it would not be valid.
        FileError: It cannot be written.
    """
    return merge_node(root, name, fields, overwrites=True).path


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedFile:
    """What became of a file that fields were put into.

    Attributes:
        path: The file.
        is_new: Whether it was not there.
        changed: The fields that were written.
        kept: The fields of which the file says something else, which stays.
    """

    path: Path
    is_new: bool
    changed: tuple[str, ...]
    kept: tuple[str, ...]


def merge_node(root: Path, name: str, fields: Mapping[str, Any], *, overwrites: bool) -> EditedFile:
    """Put fields into the file of a node, a new one where there is none.

    Args:
        root: The folder of the site.
        name: The node.
        fields: What to write.
        overwrites: Whether a field of which the file says something else is changed, and not kept.

    Raises:
        NotWrittenError: With these fields it would not be valid.
        FileError: It cannot be written.
    """
    return _merge(_file_of(root / "nodes", name), fields, NodeFile, overwrites=overwrites)


def merge_host(root: Path, name: str, fields: Mapping[str, Any], *, overwrites: bool) -> EditedFile:
    """Put fields into the file of a machine, a new one where there is none; as `merge_node` does.

    Raises:
        NotWrittenError: With these fields it would not be valid.
        FileError: It cannot be written.
    """
    return _merge(_file_of(root / "hosts", name), fields, HostFile, overwrites=overwrites)


def _file_of(folder: Path, name: str) -> Path:
    # A machine may have said what it is called: a name with a slash in it would be a file elsewhere.
    if not _NAME.fullmatch(name):
        raise NotWrittenError(f"'{on_one_line(name)}' cannot be the name of a machine of a site.")
    return folder / f"{name}.yaml"


def _merge(path: Path, fields: Mapping[str, Any], model: type[Entity], *, overwrites: bool) -> EditedFile:
    path.parent.mkdir(exist_ok=True)
    with locks.hold_folder(path.parent):
        return _merge_locked(path, fields, model, overwrites=overwrites)


def _merge_locked(
    path: Path, fields: Mapping[str, Any], model: type[Entity], *, overwrites: bool
) -> EditedFile:
    edited, text = _plan_merge(path, fields, model, overwrites=overwrites)
    if edited.is_new or edited.changed:
        files.replace_file(path, text.encode(), mode=_READABLE)
    return edited


def plan_node(
    root: Path, name: str, fields: Mapping[str, Any], *, overwrites: bool = False
) -> tuple[EditedFile, str]:
    """Return what `merge_node` would do, and the text that it would write.

    Raises:
        NotWrittenError: With these fields it would not be valid.
        FileError: The file cannot be read.
    """
    return _plan_merge(_file_of(root / "nodes", name), fields, NodeFile, overwrites=overwrites)


def _plan_merge(
    path: Path, fields: Mapping[str, Any], model: type[Entity], *, overwrites: bool
) -> tuple[EditedFile, str]:
    is_new = not path.exists()
    text = "" if is_new else files.read_text(path)
    known = {} if is_new else _data(text, str(path))
    differing = [key for key in fields if key in known and known[key] != fields[key]]
    kept = () if overwrites else tuple(differing)
    wanted = {key: value for key, value in fields.items() if known.get(key) != value and key not in kept}
    if is_new:
        changed = yaml.safe_dump(dict(fields), sort_keys=False, allow_unicode=True)
    else:
        changes = [yamledit.Set((key,), value) for key, value in wanted.items()]
        changed = yamledit.edit_text(text, changes, str(path))
    _require_valid(changed, path, model)
    return EditedFile(path=path, is_new=is_new, changed=tuple(wanted), kept=kept), changed


def _require_valid(text: str, path: Path, model: type[Entity]) -> None:
    try:
        model.model_validate(_data(text, str(path)))
    except ValidationError as err:
        first = err.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        where = Location(str(path))
        kind = path.parent.name.removesuffix("s")
        raise NotWrittenError(f"`{key}` of the {kind} '{path.stem}': {first['msg']}.", where=where) from err


def _data(text: str, path: str) -> dict[str, Any]:
    found = Diagnostics()
    document = parse_document(text, path, found)
    found.raise_errors(f"The file {path}")
    return {} if document is None else document.data
