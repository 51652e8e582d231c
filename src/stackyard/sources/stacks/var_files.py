"""The variables files of a stack: which there are, which are passed to the engine, and what must stay hidden.

By convention, refined by `var_files` and `secrets` of stack.yaml. A file that is encrypted, or whose name
says that it has to be, is decrypted in memory and passed on as a `PrivateVarFile`. A file that git tracks
must not hold a secret in clear.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.errors import Location
from stackyard.base.redaction import NOTHING_SECRET, Redactor
from stackyard.clients import git
from stackyard.sources.stacks.tfvars import read_tfvars
from stackyard.sources.stacks.var_file_choice import choose_files
from stackyard.sources.stacks.var_file_content import FileReader, GitStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from stackyard.secrets.keyring import Keyring
    from stackyard.secrets.var_file import PrivateVarFile
    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.value_types import ValueType
    from stackyard.sources.stacks.working_tree import WorkingTree

__all__ = ["StackVarFiles", "find_var_files"]

TWICE = Kind(
    code="E-STACK-VALUE-TWICE",
    summary="A variable gets its value from two places",
    remedy="Keep one of the two: the variables file, or the output or committed key that it also comes from.",
)
_DIGEST_PURPOSE = b"stackyard variables files 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class StackVarFiles:
    """The variables files of a stack; its representation shows no value.

    Attributes:
        loaded: Files that the engine reads by itself: `terraform.tfvars` and `*.auto.tfvars`.
        passed: Files that it is given, in the order in which the last one wins: for `Workdir.var_files`.
        places: By the name of a variable, where its value is set.
        secrets: Every text that must not be shown.
        contents: By the name of a file, everything that it holds, decrypted.
    """

    loaded: tuple[Path, ...] = ()
    passed: tuple[Path | PrivateVarFile, ...] = ()
    places: tuple[tuple[str, Location], ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    contents: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)

    def redactor(self, base: Redactor = NOTHING_SECRET) -> Redactor:
        """Return a redactor that hides every secret of the files, and what another one hides."""
        return base.with_secrets(self.secrets) if self.secrets else base

    def digest(self, key: bytes) -> str:
        """Return a fingerprint of everything that the files hold; without the key it tells nothing of it."""
        mac = hmac.new(key, _DIGEST_PURPOSE, "sha256")
        for name, content in self.contents:
            for part in (name.encode(errors="surrogateescape"), content):
                mac.update(len(part).to_bytes(8) + part)
        return mac.hexdigest()

    def with_values(self, file: PrivateVarFile, secrets: Iterable[str] = ()) -> StackVarFiles:
        """Return these and one more that the engine is given: committed JSON, or outputs of other stacks.

        Args:
            file: The values.
            secrets: What of them must not be shown.

        Raises:
            InvalidInputError: A variable has a value already; one of the two would be lost without a word.
        """
        places = dict(self.places)
        found = Diagnostics()
        more = read_tfvars(file.content, str(file.path.with_suffix(".tfvars"))).variables
        for name in more:
            if name in places:
                found.add(TWICE, f"`{name}` has a value from {file.path} too.", places[name])
        found.raise_errors(f"The values from {file.path}")
        return replace(
            self,
            passed=(*self.passed, file),
            places=(*self.places, *((name, Location(str(file.path))) for name in more)),
            secrets=self.secrets | frozenset(secrets),
            contents=(*self.contents, (file.path.name, file.content)),
        )


async def find_var_files(
    stack: Stack,
    workspace: str = "default",
    *,
    keyring: Keyring | None = None,
    sensitive: frozenset[str] = frozenset(),
    types: Mapping[str, ValueType] | None = None,
    tree: WorkingTree | None = None,
) -> StackVarFiles:
    """Find, read and check the variables files of a stack.

    Args:
        stack: The stack.
        workspace: The workspace that it is run in: of several files, the one of that name is meant.
        keyring: The keys of the user; those of the environment when absent.
        sensitive: The variables that the code declares `sensitive = true`.
        types: The types of variables with objects in them: what does not fit is refused.
        tree: The files of the repository as its index has them, so that git is asked only of others.

    Raises:
        SecretsLockedError: A file is encrypted, and not for the keys of the user.
        InvalidInputError: It is not clear which files are meant, or some of them are not valid, are missing,
            or hold secrets in clear; every finding is listed.
    """
    found = Diagnostics()
    chosen = choose_files(stack, workspace, found)
    everything = (*chosen.loaded, *chosen.plain, *chosen.secret)
    status = await _ask_git(stack, everything, tree)
    reader = FileReader(
        stack.folder, status, sensitive=sensitive, types=types or {}, keyring=keyring, found=found
    )
    for path in chosen.loaded:
        reader.read_loaded(path)
    passed = [reader.read_plain(path) for path in chosen.plain]
    passed += [reader.read_secret(path) for path in chosen.secret]
    found.raise_errors(f"The input of the stack {stack.name}")
    return StackVarFiles(
        loaded=chosen.loaded,
        passed=tuple(passed),
        places=tuple(reader.places.items()),
        secrets=frozenset(reader.secrets),
        contents=tuple(reader.contents),
    )


async def _ask_git(stack: Stack, paths: tuple[Path, ...], tree: WorkingTree | None) -> GitStatus:
    if tree is not None and tree.is_git and all(tree.is_tracked(path) for path in paths):
        return GitStatus(tracked=frozenset(paths))
    repository = await git.find_repository(stack.folder) if paths else None
    if repository is None:
        return GitStatus()
    return GitStatus(
        tracked=await repository.list_tracked(paths), ignored=await repository.list_ignored(paths)
    )
