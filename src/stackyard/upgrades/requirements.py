"""What a stack requires: every provider and module of its code, and of the local modules that it calls."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.documents.constraints import Constraint, ConstraintError, parse_constraint
from stackyard.base.errors import Location
from stackyard.engine.version import Flavour
from stackyard.sources.stacks.kinds import is_code
from stackyard.sources.stacks.reads import read_stack
from stackyard.upgrades.addresses import (
    DEFAULT_HOSTS,
    ModuleAddress,
    ProviderAddress,
    parse_module,
    parse_provider,
)
from stackyard.upgrades.declarations import Declaration, DeclarationKind, read_declarations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.sources.stacks.code_reader import CodeReader, FolderFile
    from stackyard.sources.stacks.model import Stack
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["Place", "Requirement", "list_code_files", "list_requirements", "read_places"]

# Built into every engine.
_BUILT_IN_HOST = "terraform.io"
_BUILT_IN_NAME = "terraform"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where code requires something.

    Attributes:
        declaration: What it says.
        where: The file, from the top of the repository, and the line.
        path: The file itself, behind links.
        folder: The folder of the code, from the top of the repository.
    """

    declaration: Declaration
    where: Location
    path: Path
    folder: str

    @property
    def constraint(self) -> Constraint | None:
        """The constraint; None where there is none that can be read."""
        try:
            text = self.declaration.constraint
            return None if text is None else parse_constraint(text)
        except ConstraintError:
            return None

    @property
    def problem(self) -> str:
        """Why the constraint cannot be judged, if so."""
        if self.declaration.is_computed:
            return f"only OpenTofu can compute the version at {self.where}"
        try:
            if self.declaration.constraint is not None:
                parse_constraint(self.declaration.constraint)
        except ConstraintError as err:
            return f"{self.where}: {err}"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A provider of a stack with every place that names it, or one module call.

    Attributes:
        kind: Which of the two.
        name: The short form of its address, or the source as it is written.
        address: Its address; None for a module that is in no registry of modules.
        places: Where it is required; empty for a provider that the code uses without naming it.
    """

    kind: DeclarationKind
    name: str
    address: ProviderAddress | ModuleAddress | None
    places: tuple[Place, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """What requirements of several stacks have in common that are about the same thing."""
        return self.kind.value, str(self.address or self.name.partition("?")[0])

    @property
    def constraints(self) -> list[Constraint]:
        """The constraints that can be read."""
        return [one for one in (place.constraint for place in self.places) if one is not None]


def list_requirements(repository: StackRepository, stack: Stack, flavour: Flavour) -> tuple[Requirement, ...]:
    """Return what a stack requires, providers first, each sorted by name; local modules are none."""
    host = DEFAULT_HOSTS[flavour]
    places: dict[ProviderAddress, list[Place]] = {}
    modules: list[Requirement] = []
    for folder in read_stack(repository, stack).folders:
        named = set()
        for place in read_places(repository.reader, folder, flavour):
            one = place.declaration
            if one.kind is DeclarationKind.MODULE:
                modules += _module(place, host)
                continue
            named.add(one.name)
            address = None if one.source is None else parse_provider(one.source or one.name, host)
            if address is not None and address.host != _BUILT_IN_HOST:
                places.setdefault(address, []).append(place)
        for name in _implied(repository.reader, folder) - named:
            if (address := parse_provider(name, host)) is not None:
                places.setdefault(address, [])
    providers = [
        Requirement(kind=DeclarationKind.PROVIDER, name=address.short, address=address, places=tuple(found))
        for address, found in sorted(places.items())
    ]
    return (*providers, *sorted(modules, key=lambda one: (one.name, str(one.places[0].where))))


def read_places(reader: CodeReader, folder: str, flavour: Flavour) -> Iterator[Place]:
    """Return every declaration of a folder of code."""
    for name, file in list_code_files(reader, folder, flavour):
        data = reader.content(file)
        for one in read_declarations(data or b"", is_json=name.endswith(".json")):
            yield Place(
                declaration=one,
                where=Location(file.path, one.line),
                path=Path(reader.tree.top) / (file.real or file.path),
                folder=folder,
            )


def list_code_files(reader: CodeReader, folder: str, flavour: Flavour) -> Iterator[tuple[str, FolderFile]]:
    """Return the files of code that an engine reads in a folder: OpenTofu prefers `x.tofu` to `x.tf`."""
    files = {name: file for name, file in reader.files(folder).items() if is_code(name)}
    for name, file in files.items():
        if flavour is Flavour.TERRAFORM and name.endswith((".tofu", ".tofu.json")):
            continue
        preferred = name.replace(".tf.json", ".tofu.json") if name.endswith(".json") else f"{name[:-3]}.tofu"
        if flavour is Flavour.TOFU and name.endswith((".tf", ".tf.json")) and preferred in files:
            continue
        yield name, file


def _module(place: Place, host: str) -> list[Requirement]:
    source = place.declaration.source
    if source == "" or (source or "").startswith(("./", "../")):
        return []
    address = None if source is None else parse_module(source, host)
    written = f"module.{place.declaration.name}" if source is None else source.partition("?")[0]
    name = written if address is None else address.short
    return [Requirement(kind=DeclarationKind.MODULE, name=name, address=address, places=(place,))]


def _implied(reader: CodeReader, folder: str) -> set[str]:
    """Return the local names of the providers that blocks of a folder use."""
    found: set[str] = set()
    for name, file in reader.files(folder).items():
        if is_code(name):
            found.update(reader.code(file).implied)
    return found - {"", _BUILT_IN_NAME}
