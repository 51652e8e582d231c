"""`stack.yaml` and `stackyard.yaml`: read, checked, and made one for each stack.

What such a file says is kept in the cache as plain values, so that the next run needs neither YAML nor the
models that check it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.errors import InvalidInputError, Location
from stackyard.sources.stacks.model import Dependency, StackSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.sources.site.document import Document

__all__ = ["build_settings", "check_files", "find_place", "parse_repository", "parse_stack"]

MISSING_FILE = Kind(
    code="E-STACK-FILE-MISSING",
    summary="A file that a stack names does not exist",
    remedy="Correct the path, which is from the folder of the stack, or remove it.",
)
_FILE_KEYS = ("var_files", "secrets", "backend_config")


def parse_stack(path: Path, shown: str) -> dict[str, Any]:
    """Return what a `stack.yaml` says, as plain values; one with nothing in it says nothing.

    Raises:
        InvalidInputError: It is not valid; the error carries every problem.
    """
    from stackyard.sources.site.entities.stacks import StackFile  # lazy: pydantic, for files that are new

    return _parse(path, shown, StackFile)


def parse_repository(path: Path, shown: str) -> dict[str, Any]:
    """Return what a `stackyard.yaml` says, as plain values.

    Raises:
        InvalidInputError: It is not valid; the error carries every problem.
    """
    from stackyard.sources.site.entities.stacks import RepositoryFile  # lazy: pydantic, for new files

    return _parse(path, shown, RepositoryFile)


def _parse(path: Path, shown: str, model: Any) -> dict[str, Any]:
    from stackyard.sources.site.document import EMPTY_FILE, read_document  # lazy: as above
    from stackyard.sources.site.shape import validate  # lazy: as above

    found = Diagnostics()
    document = read_document(path, found, shown=shown)
    if document is None and [finding.kind for finding in found.errors] == [EMPTY_FILE]:
        return {}
    checked = None if document is None else validate(model, document, found)
    found.raise_errors(shown)
    if checked is None:
        raise InvalidInputError(f"{shown} is not valid.")
    said: dict[str, Any] = checked.model_dump(exclude_unset=True)
    return said


def find_place(path: Path, shown: str, keys: tuple[str | int, ...]) -> Location:
    """Return where a value of a file is."""
    from stackyard.sources.site.document import read_document  # lazy: YAML, for what is wrong

    document: Document | None = read_document(path, Diagnostics(), shown=shown)
    return Location(shown) if document is None else document.place(keys)


def build_settings(
    own: Mapping[str, Any], defaults: Mapping[str, Any], policy: tuple[Path, ...], folder: Path
) -> StackSettings:
    """Return what holds for a stack.

    Args:
        own: What its `stack.yaml` says.
        defaults: What holds where that says nothing.
        policy: Folders with rules for all stacks.
        folder: The folder of the stack, from which files are named.
    """
    if not own and not defaults and not policy:
        return _PLAIN
    said = {**defaults, **own}
    lists = {key: _paths(folder, said.get(key)) for key in ("var_files", "secrets")}
    domains = said.get("domains")
    return StackSettings(
        after=tuple(_dependency(one) for one in said.get("after", ())),
        before=tuple(said.get("before", ())),
        watch=tuple(said.get("watch", ())),
        var_files=lists["var_files"],
        secrets=lists["secrets"],
        backend_config=_paths(folder, said.get("backend_config")) or (),
        domains=None if domains is None else _path(folder, domains),
        tags=tuple(said.get("tags", ())),
        protected=bool(said.get("protected", False)),
        critical=bool(said.get("critical", True)),
        engine=said.get("engine"),
        provider=said.get("provider"),
        policy=(*policy, *(_paths(folder, said.get("policy")) or ())),
    )


_PLAIN = StackSettings()


def _dependency(said: Any) -> Dependency:
    if isinstance(said, str):
        return Dependency(stack=said)
    outputs = said.get("outputs") or {}
    taken = outputs if isinstance(outputs, dict) else {name: name for name in outputs}
    return Dependency(stack=said["stack"], outputs=taken)


def _path(folder: Path, text: str) -> Path:
    return Path(os.path.normpath(folder / text))


def _paths(folder: Path, texts: Any) -> tuple[Path, ...] | None:
    return None if texts is None else tuple(_path(folder, text) for text in texts)


def check_files(path: Path, shown: str, own: Mapping[str, Any], folder: Path) -> None:
    """Refuse names of files that do not exist.

    Raises:
        InvalidInputError: There are such; the error carries each, with its place.
    """
    found = Diagnostics()
    named = [(key, number, text) for key in _FILE_KEYS for number, text in enumerate(own.get(key) or ())]
    for key, number, text in named:
        if not os.path.isfile(_path(folder, text)):
            found.add(MISSING_FILE, f"There is no file `{text}`.", find_place(path, shown, (key, number)))
    for number, text in enumerate(own.get("policy") or ()):
        if not os.path.isdir(_path(folder, text)):
            found.add(
                MISSING_FILE, f"There is no folder `{text}`.", find_place(path, shown, ("policy", number))
            )
    domains = own.get("domains")
    if domains is not None and not os.path.isdir(_path(folder, domains)):
        found.add(MISSING_FILE, f"There is no folder `{domains}`.", find_place(path, shown, ("domains",)))
    found.raise_errors(shown)
