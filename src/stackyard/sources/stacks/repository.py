"""All stacks of a repository: found, named, ordered."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.directories import find_git_top
from stackyard.base.errors import InvalidInputError, Location
from stackyard.sources.stacks.cache import StackCache, open_cache
from stackyard.sources.stacks.code_reader import CodeReader
from stackyard.sources.stacks.kinds import STACK_FILE, is_stack_name
from stackyard.sources.stacks.layout import FoundFolder, Layout, find_layout, layer_of
from stackyard.sources.stacks.model import Stack
from stackyard.sources.stacks.settings import (
    build_settings,
    check_files,
    find_place,
    parse_repository,
    parse_stack,
)
from stackyard.sources.stacks.working_tree import WorkingTree, open_tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.base.dag import Graph

__all__ = [
    "REPOSITORY_FILE",
    "NoStacksError",
    "StackNotFoundError",
    "StackRepository",
    "find_marked_root",
    "find_root",
    "find_stacks",
]

REPOSITORY_FILE = "stackyard.yaml"
# Keys of stack.yaml that name files or folders.
_NAMES_OF_FILES = frozenset(("var_files", "secrets", "backend_config", "domains", "policy"))

BAD_NAME = Kind(
    code="E-STACK-NAME",
    summary="A folder of a stack has a name that cannot be used",
    remedy="Rename the folder: letters, digits, `-`, `_`, `.` and `+`, and a letter, a digit or `_` first.",
)
LINKED = Kind(
    code="E-STACK-LINK",
    summary="The folder of a stack is a symbolic link",
    remedy="Make it a folder of its own that calls the shared code as a module, or remove the link.",
)
NESTED = Kind(
    code="E-STACK-NESTED",
    summary="A stack is inside another stack",
    remedy="Move one of the two, or call the inner one as a module of the outer one.",
)
SAME_NAME = Kind(
    code="E-STACK-TWICE",
    summary="Two folders are stacks of the same name",
    remedy="Rename one of the two folders, or name only one of their parents in `roots` of stackyard.yaml.",
)
UNKNOWN_STACK = Kind(
    code="E-STACK-UNKNOWN",
    summary="A stack names another stack that does not exist",
    remedy="Correct the name: `stackyard stack list` shows all stacks.",
)
NO_ROOT = Kind(
    code="E-STACK-ROOT",
    summary="A folder for stacks does not exist",
    remedy="Correct `roots` in stackyard.yaml: paths are from the folder that holds the file.",
)


class NoStacksError(InvalidInputError):
    """There are no stacks where they are looked for."""

    code = "E-STACK-NONE"
    summary = "No stacks were found"
    default_remedy = (
        "Put OpenTofu code into a folder below `stacks/`, `tofu/stacks/` or `infrastructure/NN-name/`, or "
        "name the folders that hold stacks in `roots` of a stackyard.yaml at the top of the repository."
    )


class StackNotFoundError(InvalidInputError):
    """There is no stack of this name."""

    code = "E-STACK-NOT-FOUND"
    summary = "There is no such stack"
    default_remedy = "Run `stackyard stack list` to see all stacks."


@dataclass(frozen=True, slots=True, kw_only=True)
class StackRepository:
    """All stacks of one repository.

    Attributes:
        root: The top of the repository: the folder with stackyard.yaml, else the top of git, else as given.
        stacks: The valid ones by name, sorted.
        broken: Why a stack is not valid, by its name; such a stack never stops the others.
        layers: The layers in order.
        roots: The folders that hold stacks, from the top.
        has_own_roots: Whether stackyard.yaml names them.
        defaults: What stackyard.yaml says for all stacks.
        policy: The folders with rules that stackyard.yaml names.
        exceptions: What stackyard.yaml excepts from the rules for modules and stacks.
        own: By name, what the `stack.yaml` of a stack says itself.
        files: By path, the names of the files in the folder of each stack.
        tree: The files on disk.
        cache: What is known from before.
        reader: Reads the code of the stacks.
        prefix: The repository from the top of the tree, with a slash at its end; empty where it is the same.
    """

    root: Path
    stacks: Mapping[str, Stack]
    broken: Mapping[str, InvalidInputError]
    layers: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    has_own_roots: bool = False
    defaults: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    policy: tuple[Path, ...] = ()
    exceptions: tuple[Mapping[str, Any], ...] = ()
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: MappingProxyType({}))
    files: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    tree: WorkingTree = field(repr=False, compare=False)
    cache: StackCache = field(repr=False, compare=False)
    reader: CodeReader = field(repr=False, compare=False)
    prefix: str = ""

    def find(self, name: str) -> Stack:
        """Return a stack by its name, or by the path of its folder.

        Raises:
            StackNotFoundError: There is none.
            InvalidInputError: It is not valid.
        """
        from stackyard.base.suggestions import did_you_mean  # lazy: for those who mistype

        wanted = name.rstrip("/")
        if wanted in self.broken:
            raise self.broken[wanted]
        found = self.stacks.get(wanted)
        if found is None:
            found = next((one for one in self.stacks.values() if one.path == wanted), None)
        if found is None:
            hint = did_you_mean(wanted, (*self.stacks, *self.broken))
            raise StackNotFoundError(f"There is no stack `{wanted}` in {self.root}.{hint}")
        return found

    def graph(self) -> Graph[str]:
        """Return the order of the stacks: what an edge leads to is applied first.

        Raises:
            StackCycleError: Stacks come after each other in a circle.
        """
        from stackyard.sources.stacks.order import build_graph  # lazy: only where the order is asked for

        return build_graph(self)

    def shown(self, path: str) -> str:
        """Return a path from the top of the repository as the user would type it here."""
        from_here = os.path.relpath(self.root / path)
        return str(self.root / path) if from_here.startswith("..") else from_here


def find_stacks(start: Path | None = None, *, may_be_empty: bool = False) -> StackRepository:
    """Find the stacks of the repository that a folder is in.

    Args:
        start: The folder; the current one when absent.
        may_be_empty: Whether a repository without any is meant, as where the last one was removed.

    Raises:
        NoStacksError: There are none.
        InvalidInputError: The stackyard.yaml is not valid.
    """
    here = Path(os.path.realpath(start or "."))
    if not here.is_dir():
        raise NoStacksError(f"There is no folder {start}.")
    root = find_root(here)
    tree = open_tree(root)
    cache = open_cache(root, tree)
    tree.stats.update({path: row for path, row in cache.stats.load().items() if isinstance(row, list)})
    said = _read_repository(root, tree, cache)
    layout = find_layout(str(root), _clean_roots(root, said.get("roots")), said.get("layers"))
    if not layout.folders and not may_be_empty:
        looked = ", ".join(layout.roots) or "stacks, tofu/stacks and infrastructure/NN-name"
        raise NoStacksError(f"There is no folder with OpenTofu code below {looked} of {root}.")
    return _Finder(root, tree, cache, said, layout).build()


def find_root(here: Path) -> Path:
    """Return the top of the repository that a folder is in.

    That is the folder with stackyard.yaml, else the top of git, else the nearest folder above with stacks.
    """
    marked = find_marked_root(here)
    if marked is not None:
        return marked
    # Outside of git: the nearest folder above that has stacks where they are by convention.
    for folder in (here, *here.parents):
        if find_layout(str(folder), None, None).folders:
            return folder
    return here


def find_marked_root(here: Path) -> Path | None:
    """Return the nearest folder that has a stackyard.yaml or is the top of git; None where there is none."""
    top = find_git_top(here)
    for folder in (here, *here.parents):
        if folder == top or (folder / REPOSITORY_FILE).is_file():
            return folder
    return None


def _read_repository(root: Path, tree: WorkingTree, cache: StackCache) -> dict[str, Any]:
    path = root / REPOSITORY_FILE
    if not path.is_file():
        return {}
    key = f"repository:{tree.number(os.path.relpath(path, tree.top))}"
    known = cache.settings.get(key)
    if isinstance(known, dict):
        return known
    said = parse_repository(path, _shown(path))
    cache.settings.put(key, said)
    return said


def _clean_roots(root: Path, roots: list[str] | None) -> list[str] | None:
    if roots is None:
        return None
    found = Diagnostics()
    cleaned = []
    for number, one in enumerate(roots):
        path = os.path.normpath(one)
        if path.startswith(("/", "..")) or not (root / path).is_dir():
            file = root / REPOSITORY_FILE
            where = find_place(file, _shown(file), ("roots", number))
            found.add(NO_ROOT, f"There is no folder `{one}` in {root}.", where)
        cleaned.append(path)
    found.raise_errors(_shown(root / REPOSITORY_FILE))
    return cleaned


def _shown(path: Path) -> str:
    from_here = os.path.relpath(path)
    return str(path) if from_here.startswith("..") else from_here


@dataclass(slots=True)
class _Finder:
    """Makes a repository of what was found in it."""

    root: Path
    tree: WorkingTree
    cache: StackCache
    said: dict[str, Any]
    layout: Layout
    stacks: dict[str, Stack] = field(default_factory=dict)
    broken: dict[str, InvalidInputError] = field(default_factory=dict)
    own: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    prefix: str = ""
    policy: tuple[Path, ...] = ()
    reader: CodeReader = field(init=False)

    def build(self) -> StackRepository:
        prefix = os.path.relpath(self.root, self.tree.top)
        self.prefix = "" if prefix == "." else f"{prefix}/"
        self.policy = tuple(Path(os.path.normpath(self.root / one)) for one in self.said.get("policy") or ())
        self.reader = CodeReader(self.tree, self.cache)
        nested = []
        for folder in sorted(self.layout.folders, key=lambda one: (one.name, one.path)):
            if folder.inside:
                nested.append(folder)
            else:
                self.add(folder)
        repository = self.make()
        if nested:
            self.refuse_nested(repository, nested)
            repository = self.make()
        if self.refuse_unknown():
            repository = self.make()
        self.cache.save()
        return repository

    def make(self) -> StackRepository:
        return StackRepository(
            root=self.root,
            stacks=MappingProxyType(dict(sorted(self.stacks.items()))),
            broken=MappingProxyType(dict(sorted(self.broken.items()))),
            layers=self.layout.layers,
            roots=self.layout.roots,
            has_own_roots=self.said.get("roots") is not None,
            defaults=self.said.get("defaults") or {},
            policy=self.policy,
            exceptions=tuple(self.said.get("exceptions") or ()),
            own=MappingProxyType(self.own),
            files=MappingProxyType({one.path: one.files for one in self.layout.folders}),
            tree=self.tree,
            cache=self.cache,
            reader=self.reader,
            prefix=self.prefix,
        )

    def add(self, found: FoundFolder) -> None:
        name = found.name
        folder = self.root / found.path
        if not is_stack_name(name):
            self.refuse(name, BAD_NAME, f"The folder {found.path!r} cannot be the name of a stack.")
        elif found.is_link:
            detail = f"{found.path} is a link to {os.path.realpath(folder)}."
            self.refuse(name, LINKED, detail, Location(_shown(folder)))
        elif name in self.stacks or name in self.broken:
            other = self.stacks.pop(name, None)
            known = found.path if other is None else f"{other.path} and {found.path}"
            detail = f"More than one folder is the stack `{name}`: {known}."
            self.refuse(name, SAME_NAME, detail, Location(_shown(folder)))
        else:
            self.add_valid(found, folder)

    def add_valid(self, found: FoundFolder, folder: Path) -> None:
        name = found.name
        try:
            own = self.read_own(found, folder) if STACK_FILE in found.files else {}
        except InvalidInputError as err:
            self.broken[name] = err
            return
        self.own[name] = own
        self.stacks[name] = Stack(
            name=name,
            folder=folder,
            path=found.path,
            layer=layer_of(name, self.layout.layers) if self.layout.layers else "",
            settings=build_settings(own, self.said.get("defaults") or {}, self.policy, folder),
        )

    def read_own(self, found: FoundFolder, folder: Path) -> dict[str, Any]:
        key = f"stack:{self.tree.number(f'{self.prefix}{found.path}/{STACK_FILE}')}"
        own: dict[str, Any] | None = self.cache.settings.get(key)
        if not isinstance(own, dict):
            path = folder / STACK_FILE
            own = parse_stack(path, _shown(path))
            self.cache.settings.put(key, own)
        if not _NAMES_OF_FILES.isdisjoint(own):
            path = folder / STACK_FILE
            check_files(path, _shown(path), own, folder)
        return own

    def refuse(self, name: str, kind: Kind, detail: str, where: Location | None = None) -> None:
        found = Diagnostics()
        found.add(kind, detail, where)
        self.stacks.pop(name, None)
        self.broken[name] = InvalidInputError(detail, tuple(found), where=where)

    def refuse_nested(self, repository: StackRepository, nested: list[FoundFolder]) -> None:
        """Refuse stacks inside stacks; folders that the outer one calls as modules are none."""
        from stackyard.sources.stacks.reads import read_stack  # lazy: only where folders are inside others

        outer = {stack.path: stack for stack in repository.stacks.values()}
        for folder in nested:
            stack = outer.get(folder.inside)
            if stack is None:
                continue
            called = read_stack(repository, stack).folders
            if f"{self.prefix}{folder.path}" not in called and STACK_FILE not in folder.files:
                detail = (
                    f"The folder {folder.path} has code and is inside the stack `{stack.name}` "
                    f"({stack.path}), which does not call it as a module."
                )
                self.refuse(stack.name, NESTED, detail, Location(_shown(self.root / folder.path)))
            elif STACK_FILE in folder.files:
                detail = f"The stack {folder.path} is inside the stack `{stack.name}` ({stack.path})."
                self.refuse(stack.name, NESTED, detail, Location(_shown(self.root / folder.path)))

    def refuse_unknown(self) -> bool:
        """Refuse stacks that name others which do not exist; return whether there were any."""
        known = {*self.stacks, *self.broken}
        wrong = False
        for name, stack in list(self.stacks.items()):
            settings = stack.settings
            named = [one.stack for one in settings.after] + list(settings.before)
            if name not in named and known.issuperset(named):
                continue
            from stackyard.sources.stacks.order import unknown_names  # lazy: only for what is wrong

            found = unknown_names(stack, known, self.own[name])
            if found.errors:
                del self.stacks[name]
                self.broken[name] = InvalidInputError(
                    f"The stack `{name}` names stacks that do not exist.", tuple(found)
                )
                wrong = True
        return wrong
