"""The files of a site: which folders hold what, and each file read and validated by itself."""

from __future__ import annotations

import os
import re
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from stackyard.base.diagnostics import Diagnostics, Kind, Severity
from stackyard.base.errors import Location
from stackyard.base.suggestions import did_you_mean
from stackyard.sources.hypervisor.models import file_model as hypervisor_model
from stackyard.sources.site.damaged import keep_valid
from stackyard.sources.site.discovery import SITE_FILE
from stackyard.sources.site.document import format_path, parse_document, read_document
from stackyard.sources.site.entities.envs import EnvFile
from stackyard.sources.site.entities.guests import TemplateFile
from stackyard.sources.site.entities.hosts import HostFile
from stackyard.sources.site.entities.manifests import manifest_model
from stackyard.sources.site.entities.nodes import NodeFile
from stackyard.sources.site.entities.postures import NestedPosture, posture_model
from stackyard.sources.site.entities.presets import PresetFile
from stackyard.sources.site.entities.site import SiteFile
from stackyard.sources.site.entities.specs import SpecFile
from stackyard.sources.site.names import PLACES, names_in
from stackyard.sources.site.own_code import SiteCode, find_own_code
from stackyard.sources.site.own_code.find import ENV_SUFFIX, EXTRA
from stackyard.sources.site.shape import validate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pydantic import BaseModel

    from stackyard.sources.site.document import LocatedValues

__all__ = ["FOLDERS", "Folder", "LoadedFile", "Tree", "read_tree", "validate"]

T = TypeVar("T")

BAD_FILE_NAME = Kind(
    code="E-SITE-FILE-NAME",
    summary="A file would not be read",
    remedy="Rename it to NAME.yaml: others refer to it by that name.",
)
DEFINED_TWICE = Kind(
    code="E-SITE-TWICE",
    summary="Two files define the same thing",
    remedy="Keep one of the two files.",
)
UNKNOWN_FOLDER = Kind(
    code="W-SITE-FOLDER",
    summary="A folder is not read",
    remedy="Rename it, if it was meant to be part of the site.",
    severity=Severity.WARNING,
)

_STEM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder of a site.

    Attributes:
        kind: What its files define, as `stackyard site list` calls it.
        path: Where it is, below the site.
        model: What a file of it is, by what it says.
    """

    kind: str
    path: str
    model: Callable[[Mapping[str, object]], type[BaseModel]]


def _always(model: type[BaseModel]) -> Callable[[Mapping[str, object]], type[BaseModel]]:
    return lambda data: model


_MODELS: dict[str, Callable[[Mapping[str, object]], type[BaseModel]]] = {
    "hosts": _always(HostFile),
    "nodes": _always(NodeFile),
    "templates": _always(TemplateFile),
    "presets": _always(PresetFile),
    "postures": posture_model,
    "specs": _always(SpecFile),
    "envs": _always(EnvFile),
    "manifests": manifest_model,
    "hypervisors": hypervisor_model,
}
FOLDERS = tuple(
    Folder(kind=kind, path=path, model=_always(NestedPosture) if path == "v2/postures" else _MODELS[kind])
    for kind, path in PLACES
)
# Beside them a site keeps these, which are not ours to read.
_OTHER_FOLDERS = frozenset(
    {"v2", "defs", "tls", "secrets", "docs", "scripts", "state", "tests", "modules", EXTRA}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedFile(Generic[T]):
    """A file that was read and is valid by itself."""

    name: str
    places: LocatedValues
    model: T


@dataclass(slots=True, kw_only=True)
class Tree:
    """All files of a site, by kind and name.

    `broken` holds the names of those that are wrong: unreadable, not valid, not read for their file names, or
    defined twice in different words. What such a file says is not known, whatever another form of it says.
    """

    root: Path
    found: Diagnostics
    site: LoadedFile[SiteFile] | None = None
    tables: dict[str, dict[str, LoadedFile[Any]]] = field(default_factory=dict)
    # Older postures: the newer form beside them says more.
    flat_postures: dict[str, LoadedFile[Any]] = field(default_factory=dict)
    broken: dict[str, set[str]] = field(default_factory=dict)
    # What is left of files that are not valid, to be checked and never used; `site` is site.yaml.
    damaged: dict[str, dict[str, LoadedFile[Any]]] = field(default_factory=dict)
    # Kind and name of every file by its path, as findings show it.
    paths: dict[str, tuple[str, str]] = field(default_factory=dict)
    # The own code beside the envs.
    code: SiteCode = field(default_factory=SiteCode)


def read_tree(root: Path, instead: Mapping[str, str] = types.MappingProxyType({})) -> Tree:
    """Read every file of a site; everything that is wrong becomes a finding.

    Args:
        root: The folder.
        instead: Texts that count in place of what files hold, by path from the folder (`envs/dev.yaml`).
    """
    tree = Tree(root=root, found=Diagnostics())
    for folder in FOLDERS:
        tree.tables.setdefault(folder.kind, {})
        tree.broken.setdefault(folder.kind, set())
    shown = format_path(root)
    prefix = "" if shown == str(Path.cwd()) else f"{shown}/"
    _read_site(tree, prefix)
    for folder in FOLDERS:
        _read_folder(tree, folder, prefix, instead)
    _look_around(tree, prefix)
    _read_code(tree, prefix)
    return tree


def _read_code(tree: Tree, prefix: str) -> None:
    envs = {*tree.tables["envs"], *tree.broken["envs"]}
    tree.code = find_own_code(tree.root, prefix, envs, tree.found)
    tree.paths.update(tree.code.paths)
    # A target of that name is refused, in place of being unknown.
    tree.broken["envs"].update(tree.code.without_env)


def _read_site(tree: Tree, prefix: str) -> None:
    document = read_document(tree.root / SITE_FILE, tree.found, shown=f"{prefix}{SITE_FILE}")
    model = None if document is None else validate(SiteFile, document, tree.found)
    if document is not None and model is not None:
        tree.site = LoadedFile(name="site", places=document, model=model)
    elif document is not None:
        _keep_remains(tree, "site", "site", SiteFile, document)


def _keep_remains(tree: Tree, kind: str, name: str, model: type[BaseModel], document: LocatedValues) -> None:
    left, partial = keep_valid(model, document)
    tree.damaged.setdefault(kind, {})[name] = LoadedFile(name=name, places=left, model=partial)


def _read_folder(tree: Tree, folder: Folder, prefix: str, instead: Mapping[str, str]) -> None:
    for name, file in _files(tree, folder, prefix, instead):
        shown = f"{prefix}{folder.path}/{file}"
        text = instead.get(f"{folder.path}/{file}")
        document = (
            read_document(tree.root / folder.path / file, tree.found, shown=shown)
            if text is None
            else parse_document(text, shown, tree.found)
        )
        model_type = None if document is None else folder.model(document.data)
        model = None if document is None or model_type is None else validate(model_type, document, tree.found)
        if document is None or model is None:
            tree.broken[folder.kind].add(name)
            if document is not None and model_type is not None and folder.kind != "postures":
                _keep_remains(tree, folder.kind, name, model_type, document)
            continue
        if isinstance(model, EnvFile):
            # The guests are resolved from the plain values; as models they would only take memory.
            model = model.model_copy(update={"vms": ()})
            document.data["vms"] = document.data.get("vms") or []
        _enter(tree, folder.kind, LoadedFile(name=name, places=document, model=model))


def _files(tree: Tree, folder: Folder, prefix: str, instead: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Return name and file name of every file in a folder, in order."""
    new = (path.rpartition("/") for path in instead)
    added = {file for above, _, file in new if above == folder.path}
    for file in sorted({*names_in(tree.root / folder.path), *added}):
        stem, extension = os.path.splitext(file)
        where = Location(f"{prefix}{folder.path}/{file}")
        tree.paths[where.path] = (folder.kind, stem)
        if extension != ".yaml" and extension.lower() in (".yml", ".yaml"):
            tree.broken[folder.kind].add(stem)
            tree.found.add(BAD_FILE_NAME, f"{file} ends with {extension}, and only .yaml is read.", where)
        elif extension == ".yaml" and not _STEM.fullmatch(stem):
            tree.found.add(
                BAD_FILE_NAME, f"'{stem}' is not a name: letters, digits, `-`, `_` and `.`.", where
            )
        elif extension == ".yaml":
            yield stem, file


def _enter(tree: Tree, kind: str, loaded: LoadedFile[Any]) -> None:
    if kind == "postures" and not isinstance(loaded.model, NestedPosture):
        tree.flat_postures[loaded.name] = loaded
        return
    table = tree.tables[kind]
    first = table.get(loaded.name)
    if first is None:
        table[loaded.name] = loaded
    elif first.model != loaded.model or kind != "presets":
        tree.broken[kind].add(loaded.name)
        tree.found.add(
            DEFINED_TWICE,
            f"'{loaded.name}' is defined here and in {first.places.path}.",
            loaded.places.place(),
        )


def _look_around(tree: Tree, prefix: str) -> None:
    """Warn of folders whose name is nearly that of one that is read, and of folders inside those."""
    known = {folder.path.split("/")[0] for folder in FOLDERS}
    kinds = {folder.path: folder.kind for folder in FOLDERS}
    read = set(kinds)
    for path in sorted(read):
        for inner in _folders(tree.root / path):
            stem, extension = os.path.splitext(inner)
            if extension.lower() in (".yml", ".yaml"):
                tree.broken[kinds[path]].add(stem)
            is_code = kinds[path] == "envs" and extension == ENV_SUFFIX
            if f"{path}/{inner}" not in read and not is_code:
                detail = f"'{inner}' is inside {path}, and only files are read there."
                tree.found.add(UNKNOWN_FOLDER, detail, Location(f"{prefix}{path}/{inner}"))
    for name in _folders(tree.root):
        hint = "" if name in known or name in _OTHER_FOLDERS else did_you_mean(name, known)
        if hint:
            tree.found.add(
                UNKNOWN_FOLDER, f"'{name}' is no folder of a site.{hint}", Location(f"{prefix}{name}")
            )


def _folders(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir() and entry.name[0] != ".")
