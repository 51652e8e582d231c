"""The walk over the code of a stack and its local modules, and over everything that this code names.

Modules are told apart by where they really are, through links, never by the text of a `source`.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.sources.stacks.code_reader import CodeReader, FolderFile
from stackyard.sources.stacks.evaluate import ModuleScope, evaluate, unescape
from stackyard.sources.stacks.globs import is_glob, literal_prefix
from stackyard.sources.stacks.kinds import STACK_FILE, is_auto_loaded, is_code, is_values
from stackyard.sources.stacks.stack_reads import Link, StackReads

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stackyard.sources.stacks.code_file import CodeFile, Expression, FileRead, ModuleCall, VariableBlock
    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["walk_code"]

_DEEPEST = 30
# Values in larger files are not looked for: they are data.
_LARGEST_VALUES = 2 * 2**20
# More are no tree of modules, but a circle or a flood of them.
_MOST_VISITS = 2000
# A reference that means something else for each caller; local values may hold such.
_USES_CALL = re.compile(r"'(?:var|local|root|cwd)'")
_LOCAL = ("./", "../", "/")


def walk_code(repository: StackRepository, stack: Stack, reader: CodeReader, folder: str) -> StackReads:
    """Return what a stack reads.

    Args:
        repository: Where it is.
        stack: Which.
        reader: Reads the code.
        folder: The folder of the stack from the top of the tree.
    """
    return _Walk(repository, stack, reader, folder).run()


@dataclass(slots=True)
class _Walk:
    """One stack on its way to what it reads."""

    repository: StackRepository
    stack: Stack
    reader: CodeReader
    folder: str
    found: StackReads = field(default_factory=StackReads)
    seen: set[tuple[str, str]] = field(default_factory=set)
    values: dict[str, list[Expression]] | None = None
    has_unknown_values: bool = False

    @property
    def top(self) -> str:
        return self.repository.tree.top

    def run(self) -> StackReads:
        self.found.folders[self.folder] = Link("", "", "")
        root = str(self.stack.folder)
        self.visit(self.folder, None, {}, None, 0)
        self.add_settings()
        self.add_links(root, Link(self.folder, self.folder, "link"))
        return self.found

    # --- Modules

    def visit(
        self,
        folder: str,
        call: ModuleCall | None,
        names: Mapping[str, Expression],
        caller: ModuleScope | None,
        depth: int,
    ) -> None:
        files = self.reader.files(folder)
        self.found.made_of[f"{folder}/"] = self.reader.signature(folder)
        code = {file.path: self.reader.code(file) for name, file in files.items() if is_code(name)}
        self.add_linked_files(folder, files)
        scope = self.scope(folder, code, call, names, caller)
        is_root = call is None
        for path, said in code.items():
            if said.problem is not None:
                self.add_problem(path, *said.problem)
            for read in said.reads:
                self.add_read(path, folder, read, scope)
            if is_root:
                self.add_backend(path, said, scope)
            for state in said.remote_states:
                kind = self.constant(state.type, scope) or ""
                settings = self.constants(state.settings, scope)
                self.found.remote_states.append((state.name, kind, settings, path, state.line))
            for inner in said.modules:
                self.visit_call(path, folder, inner, scope, depth)

    def visit_call(self, path: str, folder: str, call: ModuleCall, scope: ModuleScope, depth: int) -> None:
        sources = evaluate(call.source, scope)
        where = f"{path}:{call.line}"
        if sources is None or any(is_glob(one) for one in sources):
            self.unresolved(where, f'source of module "{call.name}"')
            return
        for source in sorted(map(unescape, sources)):
            if not source.startswith(_LOCAL) and source not in (".", ".."):
                continue
            # A part behind `//` is a folder in what is fetched; in a path it is a doubled slash.
            place = os.path.normpath(os.path.join(scope.folder, source))
            link = Link(folder, where, f'module "{call.name}"')
            self.add_links(place, link)
            real = self.relative(self.reader.real(place))
            if real is None:
                self.outside(source)
            elif depth < _DEEPEST and self.is_new(real, call, scope):
                self.found.folders.setdefault(real, link)
                self.visit(real, call, {"each": ["each", call.for_each]}, scope, depth + 1)

    def is_new(self, folder: str, call: ModuleCall, scope: ModuleScope) -> bool:
        """Return whether a module was not yet visited from here with these arguments."""
        if folder == self.folder or len(self.seen) > _MOST_VISITS:
            return False
        key = (folder, "" if self.is_alike(folder) else f"{scope.key}{call.arguments}{call.for_each}")
        if key in self.seen:
            return False
        self.seen.add(key)
        return True

    def is_alike(self, folder: str) -> bool:
        """Return whether a module reads the same whoever calls it, and with whatever."""
        known = self.reader.alike.get(folder)
        if known is None:
            code = [
                self.reader.code(file) for name, file in self.reader.files(folder).items() if is_code(name)
            ]
            known = self.reader.alike[folder] = not any(
                said.modules or any(_USES_CALL.search(str((one.arguments, one.names))) for one in said.reads)
                for said in code
            )
        return known

    def scope(
        self,
        folder: str,
        code: Mapping[str, CodeFile],
        call: ModuleCall | None,
        names: Mapping[str, Expression],
        caller: ModuleScope | None,
    ) -> ModuleScope:
        values: dict[str, Expression] = {}
        variables: dict[str, VariableBlock] = {}
        for said in code.values():
            values |= said.locals
            variables |= said.variables
        return ModuleScope(
            folder=f"{self.top}/{folder}",
            root=f"{self.top}/{self.folder}",
            locals=values,
            variables=variables,
            arguments=None if call is None else call.arguments,
            caller=caller,
            names=names,
            root_values=self.root_values,
            key="" if call is None or caller is None else f"{caller.key}{folder}{call.arguments}",
        )

    # --- Values of variables

    def root_values(self, name: str) -> Sequence[Expression] | None:
        """Return what files set a variable of the stack to; None where a file that might cannot be read."""
        if self.values is None:
            self.values = {}
            for file in self.value_files():
                self.read_values(file)
        return None if self.has_unknown_values else self.values.get(name, ())

    def value_files(self) -> Iterator[FolderFile]:
        named = self.stack.settings.var_files
        for name, file in self.reader.files(self.folder).items():
            if is_values(name) and (named is None or is_auto_loaded(name)) and ".secret." not in name:
                yield file
        for path in named or ():
            real = self.relative(self.reader.real(str(path)))
            if real is not None:
                yield FolderFile(real, self.reader.tree.number(real))

    def read_values(self, file: FolderFile) -> None:
        from stackyard.sources.stacks.hcl import parse_values  # lazy: only where a value chooses a file
        from stackyard.sources.stacks.json_code import parse_json_values  # lazy: as above

        self.found.made_of[file.real or file.path] = file.number
        data = self.reader.content(file)
        if data is None or len(data) > _LARGEST_VALUES:
            self.has_unknown_values = True
            return
        if data.startswith(b"$ANSIBLE_VAULT"):
            return
        said = parse_json_values(data) if file.path.endswith(".json") else parse_values(data)
        for name, value in (said or {}).items():
            if self.values is not None:
                self.values.setdefault(name, []).append(value)
        self.has_unknown_values = self.has_unknown_values or said is None

    # --- Paths

    def add_read(self, path: str, folder: str, read: FileRead, scope: ModuleScope) -> None:
        where = f"{path}:{read.line}"
        found = [evaluate(one, scope, read.names) for one in read.arguments]
        places = found[0]
        if places is None or (read.function == "fileset" and found[1] is None):
            if read.function:
                self.unresolved(where, read.text)
            return
        link = Link(folder, where, f"{read.function}()" if read.function else "path")
        for place in places:
            if read.function == "fileset":
                for pattern in found[1] or ():
                    self.add_pattern(f"{place}/{unescape(pattern)}", link)
            elif is_glob(place):
                self.add_pattern(place, link)
            else:
                self.add_path(unescape(place), link, is_hint=not read.function)

    def add_path(self, text: str, link: Link, *, is_hint: bool = False) -> None:
        place = os.path.normpath(os.path.join(f"{self.top}/{self.folder}", os.path.expanduser(text)))
        self.add_links(place, link)
        real = self.relative(self.reader.real(place))
        if real is None:
            self.outside(text)
        elif real and not (is_hint and f"{self.folder}/".startswith(f"{real}/")):
            self.found.paths.setdefault(real, link)

    def add_pattern(self, pattern: str, link: Link) -> None:
        """Add a pattern below the place that its part before the first special sign really is at."""
        base = literal_prefix(pattern)
        rest = pattern[len(base) :].lstrip("/") if base else pattern
        place = os.path.normpath(os.path.join(f"{self.top}/{self.folder}", unescape(base)))
        self.add_links(place, link)
        real = self.relative(self.reader.real(place))
        if real is None:
            self.outside(pattern)
        elif ".." in rest.split("/"):
            self.unresolved(link.where, pattern)
        else:
            self.found.globs.setdefault(f"{real}/{rest}" if real else rest, link)

    def add_links(self, place: str, link: Link) -> None:
        """Add each link on the way to a place: whoever changes one changes what is read."""
        for above in self.reader.links_to(place):
            self.found.paths.setdefault(above, link)

    def add_linked_files(self, folder: str, files: Mapping[str, FolderFile]) -> None:
        for file in files.values():
            if file.real:
                self.found.paths.setdefault(file.real, Link(folder, file.path, "link"))

    def relative(self, real: str) -> str | None:
        """Return a place from the top of the tree, None outside of it."""
        if real == self.top:
            return ""
        return real[len(self.top) + 1 :] if real.startswith(f"{self.top}/") else None

    # --- What is said beside the code

    def add_settings(self) -> None:
        settings = self.stack.settings
        source = f"{self.folder}/{STACK_FILE}"
        lists = {
            "var_files": settings.var_files or (),
            "secrets": settings.secrets or (),
            "backend_config": settings.backend_config,
        }
        for key, paths in lists.items():
            for path in paths:
                self.add_path(str(path), Link(self.folder, source, key))
        prefix = os.path.relpath(self.repository.root, self.top)
        for pattern in settings.watch:
            full = os.path.normpath(pattern if prefix == "." else f"{prefix}/{pattern}")
            link = Link(self.folder, source, "watch")
            if is_glob(full):
                self.found.globs.setdefault(full, link)
            else:
                self.found.globs.setdefault(f"{full}/**", link)
                self.found.paths.setdefault(full, link)
        if settings.domains is not None:
            self.add_pattern(f"{settings.domains}/*.json", Link(self.folder, source, "domains"))

    # --- Backends

    def add_backend(self, path: str, said: CodeFile, scope: ModuleScope) -> None:
        for block in said.backends[:1]:
            settings = self.constants(block.settings, scope)
            for file in self.stack.settings.backend_config:
                settings |= self.read_backend_config(str(file), scope)
            self.found.backend = (block.type, settings, path, block.line)

    def read_backend_config(self, path: str, scope: ModuleScope) -> dict[str, str]:
        from stackyard.sources.stacks.hcl import parse_values  # lazy: only where such a file is named

        real = self.relative(self.reader.real(str(path)))
        if real is None:
            return {}
        file = FolderFile(real, self.reader.tree.number(real))
        self.found.made_of[real] = file.number
        data = self.reader.content(file)
        return self.constants(parse_values(data) or {}, scope) if data is not None else {}

    def constants(self, settings: Mapping[str, Expression], scope: ModuleScope) -> dict[str, str]:
        flat: dict[str, Expression] = {}
        for name, value in settings.items():
            # `endpoints = { s3 = ... }` says the same as a block of that name.
            if isinstance(value, list) and value[0] == "o":
                flat |= {f"{name}.{inner}": part for inner, part in value[1].items()}
            else:
                flat[name] = value
        found = {name: self.constant(value, scope) for name, value in flat.items()}
        return {name: value for name, value in found.items() if value is not None}

    def constant(self, expression: Expression, scope: ModuleScope) -> str | None:
        values = evaluate(expression, scope)
        if values is None or len(values) != 1:
            return None
        return unescape(next(iter(values)))

    # --- What is not known

    def unresolved(self, where: str, text: str) -> None:
        if (where, text) not in self.found.unresolved:
            self.found.unresolved.append((where, text))

    def add_problem(self, path: str, line: int, text: str) -> None:
        where = f"{path}:{line}"
        self.found.problems.append((where, text))
        self.unresolved(where, "a file that cannot be read whole")

    def outside(self, text: str) -> None:
        if text not in self.found.outside:
            self.found.outside.append(text)
