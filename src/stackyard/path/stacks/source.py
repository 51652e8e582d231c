"""A stack as a target: found by its name, with everything that the engine is given for it."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from stackyard.base.errors import UsageError
from stackyard.base.redaction import Redactor
from stackyard.path.stacks.arguments import PassedArguments
from stackyard.path.stacks.backend import (
    DEFAULT_WORKSPACE,
    Backend,
    BackendKind,
    find_backend,
    refuse_unseen_workspace,
)
from stackyard.path.stacks.environment import engine_environment, find_cli_config, secret_values
from stackyard.path.stacks.files import StackFiles
from stackyard.path.target import Target
from stackyard.sources.stacks.backend_secrets import list_secrets
from stackyard.sources.stacks.facts import read_facts
from stackyard.sources.stacks.input_values import read_domain_values
from stackyard.sources.stacks.isolation import check_isolation
from stackyard.sources.stacks.kinds import KIND, is_code
from stackyard.sources.stacks.repository import NoStacksError, find_stacks
from stackyard.sources.stacks.store import store_of
from stackyard.sources.stacks.value_types import read_types
from stackyard.sources.stacks.var_files import find_var_files
from stackyard.state import StateService

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.path.planfile import PlanKey
    from stackyard.path.stacks.inputs import StackInputs
    from stackyard.path.stacks.model import StackModel
    from stackyard.secrets.var_file import PrivateVarFile
    from stackyard.sources.stacks.facts import StackFacts
    from stackyard.sources.stacks.isolation import Isolation
    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.repository import StackRepository
    from stackyard.sources.stacks.var_files import StackVarFiles
    from stackyard.sources.stacks.working_tree import WorkingTree
    from stackyard.sources.store import ChosenStore

__all__ = ["CodeSource", "ResolvedStack", "StackSource", "make_target", "resolve_stack", "split_workspace"]

# The name is part of the path of a local state.
_WORKSPACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_DECLARES = re.compile(r'^\s*"?(resource|module|import|moved|removed)"?[\s":{]', re.MULTILINE)
# In the block `encryption`: how the state was encrypted before.
_FALLBACK = re.compile(r"^\s*fallback\s*\{", re.MULTILINE)


def make_target(name: str, workspace: str = DEFAULT_WORKSPACE) -> Target:
    """Return the target of a stack in a workspace."""
    shown = name if workspace == DEFAULT_WORKSPACE else f"{name}@{workspace}"
    return Target(kind=KIND, name=shown, node=workspace)


def split_workspace(text: str) -> tuple[str, str]:
    """Return the name of a stack and the workspace that a target names: `NAME@WORKSPACE`.

    Raises:
        UsageError: A workspace cannot have that name.
    """
    name, has_workspace, workspace = text.partition("@")
    if not has_workspace:
        return name, DEFAULT_WORKSPACE
    if not _WORKSPACE.fullmatch(workspace):
        raise UsageError(
            f"`{workspace}` is no name of a workspace: letters, digits, `-`, `_` and `.`, and no mark first."
        )
    return name, workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedStack:
    """A stack with everything that the engine is given for it; its representation shows no secret.

    Attributes:
        target: The target.
        repository: All stacks.
        stack: The stack.
        workspace: Its workspace.
        facts: What its code says.
        values: The files with values of its variables.
        backend: Where its state is.
        redactor: Masks the secrets of its input.
        environment: The environment of the engine.
        cli_config: The settings file of the engine.
        arguments: What the user passes on to the engine.
        model: The model that its code was generated from, where stackyard wrote it.
    """

    target: Target
    repository: StackRepository
    stack: Stack
    workspace: str
    facts: StackFacts
    values: StackVarFiles
    backend: Backend
    redactor: Redactor
    environment: Mapping[str, str] = field(repr=False)
    cli_config: Path | None = None
    arguments: PassedArguments = field(default_factory=PassedArguments)
    model: StackModel | None = None

    def passed_files(self) -> tuple[Path | PrivateVarFile, ...]:
        """Return the files with values that the user passes on; paths are from the folder of the stack."""
        return tuple(
            self.stack.folder / file if isinstance(file, Path) else file for file in self.arguments.files
        )

    def code_files(self) -> Iterator[Path]:
        """Yield the files with code: of the stack, and of its local modules."""
        for folder in (self.stack.folder, *self.module_folders()):
            for path in sorted(folder.iterdir()) if folder.is_dir() else ():
                if is_code(path.name):
                    yield path

    def module_folders(self) -> tuple[Path, ...]:
        """Return the folders of its local modules."""
        return tuple(Path(self.repository.tree.top, folder) for folder in self.facts.modules)

    def is_empty(self) -> bool:
        """Return whether the code declares nothing: no resource, no module; a file that is broken may."""
        return not self.facts.problems and not any(
            _DECLARES.search(path.read_text(errors="replace")) for path in self.code_files()
        )

    def is_reencrypted(self) -> bool:
        """Return whether the next apply encrypts the state another way, even where nothing else changes."""
        own = (path for path in self.code_files() if path.parent == self.stack.folder)
        return any(_FALLBACK.search(path.read_text(errors="replace")) for path in own)

    def digest(self, key: PlanKey, inputs: StackInputs) -> str:
        """Return the fingerprint of everything that a plan of the stack is made from.

        Args:
            key: The key of plans; without it no one can try values against the fingerprint.
            inputs: What other stacks gave.
        """
        found = hmac.new(key.secret, digestmod=hashlib.sha256)
        for path in StackFiles(self.repository, self.stack).list():
            found.update(f"{path}\0".encode(errors="surrogateescape"))
            found.update(_file_digest(Path(self.repository.tree.top, path)))
        found.update(self.values.digest(key.secret).encode())
        found.update(repr(sorted(inputs.values.items())).encode())
        return found.hexdigest()[:32]


class CodeSource(Protocol):
    """Where stacks come from: folders of the user's own code, or code that stackyard generates."""

    @property
    def is_generated(self) -> bool:
        """Whether stackyard writes the code: it is no copy of other code, and committed when it works."""
        ...

    @property
    def repository(self) -> StackRepository:
        """All stacks."""
        ...

    @property
    def store(self) -> ChosenStore:
        """Where what runs leave for the next is kept."""
        ...

    async def resolve(
        self, name: str, workspace: str = DEFAULT_WORKSPACE, arguments: PassedArguments | None = None
    ) -> ResolvedStack:
        """Return a stack in a workspace."""
        ...

    async def reread(self, resolved: ResolvedStack) -> ResolvedStack:
        """Return a stack as its files are now."""
        ...

    def check_isolation(self) -> Isolation:
        """Return what is wrong with where stacks keep their states, and with whose states they read."""
        ...


@dataclass(frozen=True, slots=True)
class StackSource:
    """The stacks of one repository."""

    repository: StackRepository

    @classmethod
    def find(cls, start: Path | None = None) -> StackSource:
        """Return the stacks around a folder; none where all that were applied were removed.

        Raises:
            NoStacksError: There are none, and there never were.
            InvalidInputError: stackyard.yaml is not valid.
        """
        try:
            return cls(find_stacks(start))
        except NoStacksError:
            source = cls(find_stacks(start, may_be_empty=True))
            if not source.was_used():
                raise
            return source

    def was_used(self) -> bool:
        """Return whether stacks of this repository were applied and not destroyed.

        Raises:
            StoreError: The store cannot say.
        """
        store = self.store
        if not store.is_shared and not store.folder.is_dir():
            return False
        with contextlib.closing(store.read()) as objects:
            records = StateService(objects).targets.all()
            return any(one.kind == KIND and not one.is_destroyed for one in records)

    @property
    def is_generated(self) -> bool:
        """Whether stackyard writes the code."""
        return False

    @property
    def store(self) -> ChosenStore:
        """Where what runs leave for the next is kept.

        Raises:
            CommittedStoreError: git tracks it, or some of it.
        """
        return store_of(self.repository)

    async def resolve(
        self, name: str, workspace: str = DEFAULT_WORKSPACE, arguments: PassedArguments | None = None
    ) -> ResolvedStack:
        """Return a stack in a workspace.

        Raises:
            UsageError: There is none of that name.
            WorkspaceError: The code would not see its workspace.
            InvalidInputError: Something is wrong with its files; the error carries every problem.
            SecretsLockedError: No key opens a file with secrets.
        """
        target = make_target(name, workspace)
        return await resolve_stack(self.repository, self.repository.find(name), target, arguments=arguments)

    async def reread(self, resolved: ResolvedStack) -> ResolvedStack:
        """Return a stack as its files are now.

        Raises:
            StackyardError: As for `resolve`.
        """
        source = StackSource(find_stacks(self.repository.root))
        return await source.resolve(resolved.stack.name, resolved.workspace, resolved.arguments)

    def check_isolation(self) -> Isolation:
        """Return what is wrong with where stacks keep their states, and with whose states they read."""
        return check_isolation(self.repository)


async def resolve_stack(
    repository: StackRepository,
    stack: Stack,
    target: Target,
    *,
    own: Mapping[str, str] | None = None,
    arguments: PassedArguments | None = None,
) -> ResolvedStack:
    """Return a stack with everything that the engine is given for it.

    Args:
        repository: All stacks.
        stack: The stack.
        target: What it is as a target; its node is the workspace.
        own: Variables of the environment that the stack has besides those of the user; all are secret.
        arguments: What the user passes on to the engine.

    Raises:
        WorkspaceError: The code would not see its workspace.
        InvalidInputError: Something is wrong with its files; the error carries every problem.
        SecretsLockedError: No key opens a file with secrets.
    """
    workspace, facts = target.node, read_facts(repository, stack)
    environment = {**engine_environment(), **(own or {})}
    backend = find_backend(stack, facts, workspace, environment)
    if workspace != DEFAULT_WORKSPACE and backend.kind is BackendKind.STORE:
        modules = (Path(repository.tree.top, folder) for folder in facts.modules)
        refuse_unseen_workspace(stack, (stack.folder, *modules))
    values = await _find_values(stack, workspace, facts, repository.tree)
    passed = arguments or PassedArguments()
    secrets = (*values.secrets, *passed.secrets, *_backend_secrets(facts))
    return ResolvedStack(
        target=target,
        repository=repository,
        stack=stack,
        workspace=workspace,
        facts=facts,
        values=values,
        backend=backend,
        redactor=Redactor([*secrets, *secret_values(environment, stack.folder)]),
        environment=environment,
        cli_config=find_cli_config(),
        arguments=passed,
    )


async def _find_values(stack: Stack, workspace: str, facts: StackFacts, tree: WorkingTree) -> StackVarFiles:
    """Return the values of the variables of a stack, those of committed domain files too."""
    sensitive = frozenset(name for name, one in facts.variables.items() if one.sensitive)
    shapes = {name: one.shape for name, one in facts.variables.items() if one.shape is not None}
    types = read_types(shapes)
    values = await find_var_files(stack, workspace, sensitive=sensitive, types=types, tree=tree)
    if stack.settings.domains is None:
        return values
    return values.with_values(read_domain_values(stack.settings.domains, facts.variables))


def _backend_secrets(facts: StackFacts) -> tuple[str, ...]:
    return () if facts.backend is None else list_secrets(facts.backend.settings)


def _file_digest(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return b"-"
