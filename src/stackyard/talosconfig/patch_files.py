"""The user's patches: files of folders for all nodes, for a role, and for one node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.documents.yamltext import parse_events
from stackyard.base.errors import Location
from stackyard.secrets.keyring import Keyring
from stackyard.secrets.layout import SecretsSyntaxError
from stackyard.secrets.protected_file import OpenedPlain, open_bytes, read_bytes
from stackyard.talosconfig.documents import Patch
from stackyard.talosconfig.reading import read_layout

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stackyard.sources.cluster.model import ClusterNode

__all__ = ["list_patch_files", "load_patches", "parse_patches"]

UNREADABLE = Kind(
    code="E-TALOS-PATCH-SYNTAX",
    summary="A patch is not valid YAML",
    remedy="Correct the place named.",
)
JSON_PATCH = Kind(
    code="E-TALOS-PATCH-JSON",
    summary="A JSON patch cannot be applied",
    remedy="Write it as a strategic merge patch: the part of the configuration with the new values.",
)
TEMPLATE = Kind(
    code="E-TALOS-PATCH-TEMPLATE",
    summary="A patch is a template",
    remedy="Write its result as a .yaml file; values of a node belong into the folder of that node.",
)

_SUFFIXES = (".yaml", ".yml")
_TEMPLATES = (".tpl", ".j2")


def list_patch_files(folder: Path, node: ClusterNode) -> list[Path]:
    """Return the patches for a node in the order in which they are applied: all nodes, its role, the node.

    The folders are those of `talos/patches` (`global`, `controller` or `worker`, the name of the node), and
    those of topf in `talos` (`all`, `control-plane` or `worker`, `node/NAME`).
    """
    base = folder / "talos"
    role = "control-plane" if node.is_controller else "worker"
    groups = (
        (base / "patches" / "global", base / "all"),
        (base / "patches" / node.role, base / role),
        (base / "patches" / node.name, base / "node" / node.name),
    )
    folders = (one for group in groups for one in group if one.is_dir())
    known = (*_SUFFIXES, *_TEMPLATES)
    return [path for one in folders for path in sorted(one.iterdir()) if path.name.endswith(known)]


def load_patches(folder: Path, node: ClusterNode, keyring: Keyring | None = None) -> tuple[Patch, ...]:
    """Read the patches for a node; files may be encrypted with SOPS.

    Raises:
        SecretsLockedError: A patch is encrypted, and not for the keys of the user.
        InvalidInputError: Patches cannot be read; every problem is named with its place.
        FileError: A file cannot be read.
    """
    keys, found, patches = keyring or Keyring(), Diagnostics(), list[Patch]()
    for path in list_patch_files(folder, node):
        if path.name.endswith(_TEMPLATES):
            found.add(TEMPLATE, f"{path} would have to be rendered first.", Location(str(path)))
            continue
        patches += _read(read_bytes(path), str(path), keys, found)
    found.raise_errors(f"The configuration of {node.name}")
    return tuple(patches)


def parse_patches(text: str, path: str) -> tuple[Patch, ...]:
    """Read the documents of one patch.

    Raises:
        InvalidInputError: It cannot be read; every problem is named with its place.
    """
    found = Diagnostics()
    patches = tuple(_read(text.encode(), path, Keyring(env={}), found))
    found.raise_errors(f"The patch {path}")
    return patches


def _read(data: bytes, path: str, keyring: Keyring, found: Diagnostics) -> Iterator[Patch]:
    if (where := _find_list(data, path)) is not None:
        reason = "Talos refuses JSON patches (RFC 6902) for configurations of several documents"
        found.add(JSON_PATCH, f"{path} is a list of operations; {reason}.", where)
        return
    try:
        opened = open_bytes(data, path, keyring)
        layout = opened.layout()
    except SecretsSyntaxError as err:
        found.add(UNREADABLE, err.detail, err.where)
        return
    if layout is None:
        return
    # Who wrote a value in clear shows it to everybody.
    secrets = frozenset[str]() if isinstance(opened, OpenedPlain) else opened.secrets()
    for value, place in read_layout(layout, path):
        if value:
            yield Patch(path=path, data=value, place=place, secrets=secrets)


def _find_list(data: bytes, path: str) -> Location | None:
    """Return the place of a document that is a list, if there is one."""
    is_start = False
    try:
        for event in parse_events(data.decode(errors="replace")):
            if is_start and isinstance(event, yaml.SequenceStartEvent):
                mark: Any = event.start_mark
                return Location(path, mark.line + 1, mark.column + 1)
            is_start = isinstance(event, yaml.DocumentStartEvent)
    except yaml.YAMLError:
        # Whoever reads it next reports it.
        return None
    return None
