"""The files of a stack, copied for a new one: without what engines left, with a key and a name of its own."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.errors import FileError, Location
from stackyard.recipes.backend_choice import NewBackendError, derive_key, key_name
from stackyard.recipes.hcl_edit import (
    Literal,
    find_backends,
    find_literals,
    find_sources,
    find_top_values,
    replace_literals,
)
from stackyard.secrets.base import SecretsKind
from stackyard.secrets.check.file_forms import find_file_forms
from stackyard.secrets.check.promises import is_secret_name
from stackyard.secrets.check.scan import holds_secret
from stackyard.secrets.protected_file import detect
from stackyard.sources.stacks.kinds import is_code, is_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.recipes.placement import Placement
    from stackyard.sources.stacks.model import Stack

__all__ = ["CopiedStack", "copy_stack"]

_FOLDERS = frozenset((".terraform", ".stackyard", ".git", ".terragrunt-cache", "__pycache__"))
# States, plans, logs, and what editors and moves of states leave.
_LEFT = re.compile(
    r".*\.tfstate(?:\..*)?|\.terraform\.tfstate\.lock\.info|.*\.tfplan|tfplan|crash(?:\..*)?\.log|.*~|\..*\.sw[a-p]"
)


@dataclass(slots=True)
class CopiedStack:
    """What a new stack gets of another one.

    Attributes:
        files: Files by their paths.
        links: Links by their paths, with what they lead to.
        secrets: Names of the variables files with secrets, which are made again.
        executable: Those of the files that can be run.
        left: Other files with secrets that were not copied.
        special: Pipes, sockets and devices, which are not copied.
        renamed: Where the name of the other stack was replaced by that of the new one.
        notes: What the user has to look at.
        backend_file: The file with the backend block; empty where there is none.
        backend_type: The type of that backend.
        key: The new key of its state; empty where it has none in the files of the stack.
    """

    files: dict[str, bytes] = field(default_factory=dict, repr=False)
    links: dict[str, str] = field(default_factory=dict)
    secrets: list[str] = field(default_factory=list)
    executable: set[str] = field(default_factory=set)
    left: list[str] = field(default_factory=list)
    special: list[str] = field(default_factory=list)
    renamed: list[Location] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    backend_file: str = ""
    backend_type: str = ""
    key: str = ""


def copy_stack(
    stack: Stack,
    place: Placement,
    ignored: frozenset[Path],
    *,
    key: str | None = None,
    with_secrets: bool = False,
) -> CopiedStack:
    """Return the files of a stack for a new one.

    Args:
        stack: The stack.
        place: Where the new one goes.
        ignored: Files that git ignores.
        key: The key of its state; made from that of the other one when absent.
        with_secrets: Whether its files with secrets are copied, encrypted as they are.

    Raises:
        NewBackendError: The key of its state cannot be changed.
        FileError: A file cannot be read.
    """
    found = CopiedStack()
    for path in _walk(stack.folder):
        name = path.relative_to(stack.folder).as_posix()
        is_link = path.is_symlink()
        if is_secret_name(path.name) and (not with_secrets if is_link else path.is_file()):
            _take_secret(found, path, name, with_secrets=with_secrets)
        elif path in ignored:
            continue
        elif is_link:
            found.links[name] = _new_target(path, stack, place)
        elif not path.is_file():
            found.special.append(name)
        else:
            _take_file(found, path, name)
    for name in [one for one in found.files if is_code(one.rpartition("/")[2])]:
        _adapt_code(found, name, stack, place)
    _note_paths(found, stack, place)
    _set_key(found, stack, place, key)
    return found


def _walk(folder: Path) -> Iterator[Path]:
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if one not in _FOLDERS)
        for link in [one for one in folders if os.path.islink(os.path.join(above, one))]:
            folders.remove(link)
            yield Path(above, link)
        yield from (Path(above, name) for name in sorted(names) if not _LEFT.fullmatch(name))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err


def _take_secret(found: CopiedStack, path: Path, name: str, *, with_secrets: bool) -> None:
    if with_secrets:
        data = _read(path)
        if detect(data, str(path)).kind is SecretsKind.PLAIN:
            raise FileError(
                f"{path} is in clear, and is not copied.",
                remedy=f"Encrypt it: stackyard secrets encrypt {path} --vault",
            )
        found.files[name] = data
    elif is_values(path.name):
        found.secrets.append(name)
    else:
        found.left.append(name)


def _take_file(found: CopiedStack, path: Path, name: str) -> None:
    data = _read(path)
    text = data.decode(errors="replace")
    is_secret = holds_secret(name, text, {}) or any(find_file_forms(name, text))
    if is_secret and not (is_code(path.name) or is_values(path.name)):
        found.left.append(name)
        return
    if is_secret:
        found.notes.append(
            f"{name} holds a secret in clear, and so does its copy: move it to secrets.tfvars."
        )
    found.files[name] = data
    if path.stat().st_mode & stat.S_IXUSR:
        found.executable.add(name)


def _new_target(path: Path, stack: Stack, place: Placement) -> str:
    """Return what a link of the new stack leads to: into itself as before, elsewhere to the same place."""
    target = os.readlink(path)
    real = os.path.normpath(os.path.join(path.parent, target))
    if os.path.isabs(target) or real.startswith(f"{stack.folder}/"):
        return target
    inside = path.parent.relative_to(stack.folder)
    return os.path.relpath(real, place.folder / inside)


def _adapt_code(found: CopiedStack, name: str, stack: Stack, place: Placement) -> None:
    """Give the code of the new stack its own name, and the way to its modules."""
    if name.endswith(".json"):
        return
    data = found.files[name]
    inside = os.path.dirname(name)
    changes = []
    for one in find_sources(data):
        if one.text.startswith(("./", "../")):
            real = os.path.normpath(stack.folder / inside / one.text)
            if not f"{real}/".startswith(f"{stack.folder}/"):
                way = os.path.relpath(real, place.folder / inside)
                changes.append((one, way if way.startswith("..") else f"./{way}"))
    new = {stack.name: place.name, stack.name.rpartition("/")[2]: place.name.rpartition("/")[2]}
    if "/" not in name:
        for one in find_literals(data, new):
            changes.append((one, new[one.text]))
            found.renamed.append(Location(f"{place.path}/{name}", one.line))
    found.files[name] = replace_literals(data, [one for one in changes if one[0].text != one[1]])


def _note_paths(found: CopiedStack, stack: Stack, place: Placement) -> None:
    """Note paths out of the folder that a stack in another folder would read elsewhere."""
    if os.path.dirname(stack.path) == os.path.dirname(place.path):
        return
    for name, data in found.files.items():
        if not is_code(name.rpartition("/")[2]) and name != "stack.yaml":
            continue
        sources = {one.line for one in find_sources(data)} if not name.endswith((".json", ".yaml")) else set()
        for number, line in enumerate(data.decode(errors="replace").splitlines(), 1):
            if "../" in line and number not in sources:
                found.notes.append(
                    f"{place.path}/{name}:{number} has a path out of its folder, which is another one now."
                )


def _set_key(found: CopiedStack, stack: Stack, place: Placement, key: str | None) -> None:
    """Give the backend of the new stack a key of its own."""
    written = [
        (name, one)
        for name, data in found.files.items()
        if "/" not in name and is_code(name) and not name.endswith(".json")
        for one in find_backends(data)
    ]
    if not written:
        in_json = [
            name for name, data in found.files.items() if name.endswith(".json") and b'"backend"' in data
        ]
        if in_json:
            raise NewBackendError(
                f"The backend of `{stack.name}` is JSON, and its key is not changed automatically.",
                where=Location(f"{stack.path}/{in_json[0]}"),
                remedy="Write it as HCL, or make the new stack from a recipe.",
            )
        return
    name, backend = written[0]
    found.backend_file, found.backend_type = name, backend.type
    wanted = key_name(backend.type) or ""
    # Files beside the code win over the block.
    for config in (one for one in stack.settings.backend_config if one.is_relative_to(stack.folder)):
        inside = config.relative_to(stack.folder).as_posix()
        setting = find_top_values(found.files.get(inside, b"")).get(wanted)
        if setting is not None:
            _replace_key(
                found, inside, setting, key or derive_key(backend.type, setting.text, stack.name, place.name)
            )
    setting = backend.settings.get(wanted)
    if setting is not None:
        _replace_key(
            found, name, setting, key or derive_key(backend.type, setting.text, stack.name, place.name)
        )


def _replace_key(found: CopiedStack, name: str, setting: Literal, key: str) -> None:
    found.files[name] = replace_literals(found.files[name], [(setting, key)])
    found.key = found.key or key
