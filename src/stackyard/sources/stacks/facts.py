"""What the code of a stack says, for whoever shows it, checks it or runs it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stackyard.base.errors import Location
from stackyard.sources.stacks.evaluate import unescape
from stackyard.sources.stacks.kinds import is_auto_loaded, is_code, is_override, is_values
from stackyard.sources.stacks.reads import read_stack

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.sources.stacks.code_file import Expression
    from stackyard.sources.stacks.code_reader import CodeReader
    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["Backend", "Problem", "RemoteState", "StackFacts", "Unresolved", "Variable", "read_facts"]

# Built into every engine.
_BUILT_IN = "terraform"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """Where a stack keeps its state.

    Attributes:
        type: Such as `s3`.
        settings: Those of its settings that are constant, those of backend config files too.
        where: The block.
    """

    type: str
    settings: Mapping[str, str]
    where: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """An input variable of a stack.

    Attributes:
        type: As it is written; None where it is not.
        has_default: Whether it may be left out.
        sensitive: Whether its value is never shown.
        where: The block.
        shape: The type as an expression, where it has objects in it.
    """

    type: str | None
    has_default: bool
    sensitive: bool
    where: Location
    shape: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unresolved:
    """An expression that chooses a file, and that only an engine can compute."""

    where: Location
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A file that cannot be read whole."""

    where: Location
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteState:
    """A `terraform_remote_state` data source: the state of another that a stack reads."""

    name: str
    type: str
    settings: Mapping[str, str]
    where: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFacts:
    """What the code of a stack says.

    Attributes:
        backend: Where it keeps its state; None where the code does not say.
        variables: Its input variables by name.
        outputs: The names of its outputs, sorted.
        providers: The sources of its providers by local name, those of its local modules too.
        modules: The folders of its local modules, from the top of the repository.
        var_files: The files of values that the engine is given, in order; loaded ones first.
        reads: Paths and globs that it reads, from the top of the repository.
        outside: Paths outside of the repository that it reads.
        unresolved: Expressions that choose a file and are not known without an engine.
        remote_states: States of others that it reads.
        problems: Files that cannot be read whole.
    """

    backend: Backend | None
    variables: Mapping[str, Variable]
    outputs: tuple[str, ...]
    providers: Mapping[str, str]
    modules: tuple[str, ...]
    var_files: tuple[Path, ...] = ()
    reads: frozenset[str]
    outside: tuple[str, ...] = ()
    unresolved: tuple[Unresolved, ...]
    remote_states: tuple[RemoteState, ...]
    problems: tuple[Problem, ...] = field(default=())


def read_facts(repository: StackRepository, stack: Stack) -> StackFacts:
    """Return what the code of a stack says; paths are from the top of git, or of the repository."""
    reader = repository.reader
    reads = read_stack(repository, stack)
    own = f"{repository.prefix}{stack.path}"
    variables, outputs = _interface(reader, own)
    backend = reads.backend
    return StackFacts(
        backend=None if backend is None else _backend(*backend),
        variables=variables,
        outputs=outputs,
        providers=_providers(reader, reads.folders),
        modules=tuple(sorted(folder for folder, link in reads.folders.items() if link[0])),
        var_files=_var_files(stack, reader, own),
        reads=frozenset((*(f"{folder}/**" for folder in reads.folders), *reads.paths, *reads.globs)),
        outside=tuple(map(unescape, reads.outside)),
        unresolved=tuple(Unresolved(where=_place(where), text=text) for where, text in reads.unresolved),
        remote_states=tuple(
            RemoteState(name=name, type=kind, settings=settings, where=Location(path, line))
            for name, kind, settings, path, line in reads.remote_states
        ),
        problems=tuple(Problem(where=_place(where), text=text) for where, text in reads.problems),
    )


def _backend(kind: str, settings: Mapping[str, str], path: str, line: int) -> Backend:
    return Backend(type=kind, settings=settings, where=Location(path, line))


def _interface(reader: CodeReader, folder: str) -> tuple[dict[str, Variable], tuple[str, ...]]:
    """Return the variables and the outputs of a stack, sorted."""
    variables: dict[str, Variable] = {}
    outputs: set[str] = set()
    for name, file in sorted(reader.files(folder).items(), key=lambda one: is_override(one[0])):
        if not is_code(name):
            continue
        said = reader.code(file)
        outputs.update(said.outputs)
        for variable, block in said.variables.items():
            found = Variable(
                type=block.type,
                has_default=block.has_default,
                sensitive=block.is_sensitive,
                where=Location(file.path, block.line),
                shape=block.shape,
            )
            before = variables.get(variable) if is_override(name) else None
            variables[variable] = found if before is None else _merge(before, found)
    return dict(sorted(variables.items())), tuple(sorted(outputs))


def _merge(before: Variable, override: Variable) -> Variable:
    """Return a variable of which an override file says a part again; one that was secret stays it."""
    typed = before if override.type is None else override
    return replace(
        before,
        type=typed.type,
        shape=typed.shape,
        has_default=before.has_default or override.has_default,
        sensitive=before.sensitive or override.sensitive,
    )


def _place(text: str) -> Location:
    path, _, line = text.rpartition(":")
    return Location(path, int(line)) if path and line.isdigit() else Location(text)


def _providers(reader: CodeReader, folders: Mapping[str, object]) -> dict[str, str]:
    required: dict[str, str] = {}
    implied: set[str] = set()
    for folder in folders:
        for name, file in reader.files(folder).items():
            if is_code(name):
                said = reader.code(file)
                implied.update(said.implied)
                for local, source in said.required.items():
                    required.setdefault(local, source)
    found = {name: f"hashicorp/{name}" for name in implied if name and name != _BUILT_IN} | required
    return dict(sorted(found.items()))


def _var_files(stack: Stack, reader: CodeReader, own: str) -> tuple[Path, ...]:
    names = [name for name in reader.files(own) if is_values(name) and ".secret." not in name]
    loaded = [name for name in names if is_auto_loaded(name)]
    loaded.sort(key=lambda name: (not name.startswith("terraform.tfvars"), name))
    named = stack.settings.var_files
    if named is None:
        named = tuple(stack.folder / name for name in names if name not in loaded)
    return (*(stack.folder / name for name in loaded), *named)
