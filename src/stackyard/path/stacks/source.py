"""A stack as a target: found by its name, with everything that the engine is given for it."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

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
from stackyard.sources.stacks.order import build_whole_graph
from stackyard.sources.stacks.repository import NoStacksError, find_stacks
from stackyard.sources.stacks.store import store_of
from stackyard.sources.stacks.value_types import read_types
from stackyard.sources.stacks.var_files import find_var_files
from stackyard.state import StateService

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.base.dag import Graph
    from stackyard.path.planfile import PlanKey
    from stackyard.path.stacks.inputs import StackInputs
    from stackyard.secrets.var_file import PrivateVarFile
    from stackyard.sources.stacks.facts import StackFacts
    from stackyard.sources.stacks.isolation import Isolation
    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.repository import StackRepository
    from stackyard.sources.stacks.var_files import StackVarFiles
    from stackyard.sources.stacks.working_tree import WorkingTree
    from stackyard.sources.store import ChosenStore

__all__ = ["ResolvedStack", "StackSource", "make_target", "split_workspace"]

# The name is part of the path of a local state.
_WORKSPACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_DECLARES = re.compile(r'^\s*"?(resource|module|import|moved|removed)"?[\s":{]', re.MULTILINE)


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
    def store(self) -> ChosenStore:
        """Where what runs leave for the next is kept.

        Raises:
            CommittedStoreError: git tracks it, or some of it.
        """
        return store_of(self.repository)

    def require(self, name: str) -> Stack:
        """Return a stack.

        Raises:
            StackNotFoundError: There is none of that name.
            InvalidInputError: Its stack.yaml is not valid.
        """
        return self.repository.find(name)

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
        stack = self.require(name)
        facts = read_facts(self.repository, stack)
        environment = engine_environment()
        backend = find_backend(stack, facts, workspace, environment)
        if workspace != DEFAULT_WORKSPACE and backend.kind is BackendKind.STORE:
            top = Path(self.repository.tree.top)
            refuse_unseen_workspace(stack, (stack.folder, *(top / folder for folder in facts.modules)))
        values = await _find_values(stack, workspace, facts, self.repository.tree)
        passed = arguments or PassedArguments()
        return ResolvedStack(
            target=make_target(name, workspace),
            repository=self.repository,
            stack=stack,
            workspace=workspace,
            facts=facts,
            values=values,
            backend=backend,
            redactor=Redactor(
                [
                    *values.secrets,
                    *passed.secrets,
                    *secret_values(environment, stack.folder),
                    *_backend_secrets(facts),
                ]
            ),
            environment=environment,
            cli_config=find_cli_config(),
            arguments=passed,
        )

    async def reread(self, resolved: ResolvedStack) -> ResolvedStack:
        """Return a stack as its files are now.

        Raises:
            StackyardError: As for `resolve`.
        """
        source = StackSource(find_stacks(self.repository.root))
        return await source.resolve(resolved.stack.name, resolved.workspace, resolved.arguments)

    def graph(self) -> Graph[str]:
        """Return the order of the stacks, those that are not valid too.

        Raises:
            StackCycleError: They depend on each other in a circle.
        """
        return build_whole_graph(self.repository)

    def check_isolation(self) -> Isolation:
        """Return what is wrong with where stacks keep their states, and with whose states they read."""
        return check_isolation(self.repository)


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
