"""Which variables files of a folder are meant: by their names, or by stack.yaml."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind
from stackyard.base.errors import FileError, Location
from stackyard.secrets.check.promises import is_secret_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.stacks.model import Stack

__all__ = ["ChosenFiles", "choose_files"]

# In the order in which the engine reads them.
_FIRST = ("terraform.tfvars", "terraform.tfvars.json")
_AUTOMATIC = (".auto.tfvars", ".auto.tfvars.json")
_ENDINGS = (".tfvars", ".tfvars.json")
# What a name says before the words for secrets: `prod` of `prod.secret.tfvars`, nothing of `secrets.tfvars`.
_SUBJECT = re.compile(r"(?:(?P<subject>.+)\.)??(?:secrets?|sops)\..*")

AMBIGUOUS = Kind(
    code="E-STACK-VAR-FILES",
    summary="It is not clear which variables files a stack uses",
    remedy="Name them in stack.yaml, in their order: under `var_files`, or `secrets` where encrypted.",
)
MISSING = Kind(
    code="E-STACK-VAR-FILE-MISSING",
    summary="A variables file of a stack does not exist",
    remedy="Correct `var_files` or `secrets` in stack.yaml, or restore the file.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenFiles:
    """The variables files of a stack.

    Attributes:
        loaded: Those that the engine reads by itself.
        plain: Those that it is given.
        secret: Those that it is given decrypted.
    """

    loaded: tuple[Path, ...]
    plain: tuple[Path, ...]
    secret: tuple[Path, ...]


def choose_files(stack: Stack, workspace: str, found: Diagnostics) -> ChosenFiles:
    """Return the variables files that are meant; what is not clear is added to the findings.

    Raises:
        FileError: The folder cannot be read.
    """
    try:
        names = sorted(path.name for path in stack.folder.iterdir() if path.name.endswith(_ENDINGS))
    except OSError as err:
        raise FileError.from_os_error(err, "read", stack.folder) from err
    loaded = [name for name in _FIRST if name in names]
    loaded += [name for name in names if name.endswith(_AUTOMATIC)]
    others = [name for name in names if name not in loaded and not name.startswith(".")]
    settings = stack.settings
    plain = _choose_named(stack, settings.var_files, found)
    secret = _choose_named(stack, settings.secrets, found)
    if plain is None:
        plain = _choose_plain(stack, [name for name in others if not is_secret_name(name)], workspace, found)
    if secret is None:
        secret = _choose_secret(stack, [name for name in others if is_secret_name(name)], workspace, found)
    # A file with secrets may be listed under `var_files` as well, to say when it comes.
    listed = {path for path in plain if is_secret_name(path.name)}
    return ChosenFiles(
        loaded=tuple(stack.folder / name for name in loaded),
        plain=tuple(path for path in plain if path.name not in loaded or path.parent != stack.folder),
        secret=tuple(path for path in secret if path not in listed),
    )


def _choose_named(stack: Stack, paths: Sequence[Path] | None, found: Diagnostics) -> tuple[Path, ...] | None:
    """Return the files that stack.yaml names; None where it names none."""
    if paths is None:
        return None
    there = []
    for path in (stack.folder / path for path in paths):
        if path.is_file():
            there.append(path)
        else:
            found.add(MISSING, f"{path} does not exist or is no file.", Location(str(path)))
    return tuple(there)


def _choose_plain(stack: Stack, names: Sequence[str], workspace: str, found: Diagnostics) -> tuple[Path, ...]:
    if len(names) > 1:
        own = [name for name in names if name in {workspace + ending for ending in _ENDINGS}]
        if len(own) != 1:
            _add_ambiguous(stack, names, f"no single file is named after the workspace `{workspace}`", found)
            return ()
        names = own
    return tuple(stack.folder / name for name in names)


def _choose_secret(
    stack: Stack, names: Sequence[str], workspace: str, found: Diagnostics
) -> tuple[Path, ...]:
    subjects = {name: _subject(name) for name in names}
    common = [name for name in names if subjects[name] is None]
    special = [name for name in names if subjects[name] is not None]
    if len(special) > 1:
        own = [name for name in special if subjects[name] == workspace]
        if len(own) != 1:
            _add_ambiguous(
                stack, special, f"no single file is named after the workspace `{workspace}`", found
            )
            return ()
        special = own
    if len(common) > 1:
        _add_ambiguous(stack, common, "each is named as the one file with secrets", found)
        return ()
    return tuple(stack.folder / name for name in (*common, *special))


def _subject(name: str) -> str | None:
    matched = _SUBJECT.fullmatch(name)
    return matched["subject"] if matched is not None else None


def _add_ambiguous(stack: Stack, names: Sequence[str], why: str, found: Diagnostics) -> None:
    found.add(
        AMBIGUOUS,
        f"{', '.join(names)} are all candidates, and {why}.",
        Location(str(stack.folder)),
    )
