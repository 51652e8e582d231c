"""Everything that a stack reads, and by which way: what is kept in the cache for each stack."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["Link", "StackReads"]


class Link(NamedTuple):
    """Why something is read.

    Attributes:
        reader: The folder whose code reads it, from the top of the tree.
        where: The file and line that does.
        how: What is there: the name of a function, `module "vm"`, `var_files`.
    """

    reader: str
    where: str
    how: str


@dataclass(slots=True, kw_only=True)
class StackReads:
    """What a stack reads; every path is from the top of the tree.

    Attributes:
        folders: The folder of the stack and those of its local modules, with why.
        paths: Single files.
        globs: Patterns.
        unresolved: Where, and which expression chooses a file that is not known without an engine.
        problems: Where, and what is wrong with a file of code.
        outside: Paths outside of the repository.
        backend: Type, settings that are constant, file and line; None where there is none.
        remote_states: Name, type, settings, file and line of each state of others that it reads.
        made_of: By folder, the number of what its code was; by file, that of its content.
    """

    folders: dict[str, Link] = field(default_factory=dict)
    paths: dict[str, Link] = field(default_factory=dict)
    globs: dict[str, Link] = field(default_factory=dict)
    unresolved: list[tuple[str, str]] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    backend: tuple[str, dict[str, str], str, int] | None = None
    remote_states: list[tuple[str, str, dict[str, str], str, int]] = field(default_factory=list)
    made_of: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> list[Any]:
        """Return it as JSON can hold it."""
        links = [
            {path: list(link) for path, link in one.items()} for one in (self.folders, self.paths, self.globs)
        ]
        return [
            *links,
            self.unresolved,
            self.problems,
            self.outside,
            self.backend,
            self.remote_states,
            self.made_of,
        ]

    @classmethod
    def from_json(cls, row: Any) -> StackReads:
        """Return what `to_json` was given; links stay lists, which are as good.

        Raises:
            ValueError: It is nothing that `to_json` returns.
        """
        try:
            folders, paths, globs, unresolved, problems, outside, backend, states, made_of = row
        except (TypeError, ValueError) as err:
            raise ValueError("not what is kept of a stack") from err
        if not all(isinstance(one, dict) for one in (folders, paths, globs, made_of)):
            raise ValueError("not what is kept of a stack")
        return cls(
            folders=folders,
            paths=paths,
            globs=globs,
            unresolved=unresolved,
            problems=problems,
            outside=outside,
            backend=backend,
            remote_states=states,
            made_of=made_of,
        )
