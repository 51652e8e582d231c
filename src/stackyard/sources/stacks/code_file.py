"""What one file of OpenTofu code says, apart from every other file: what is kept of it in the cache.

Expressions are kept as far as they may decide which files are read, in a form that JSON can hold:

    "text"                        a constant
    ["t", part, ...]              a template: its parts one after the other
    ["r", "local", "name", ...]   a reference
    ["c", "function", arg, ...]   a call
    ["i", one, other]             one of the two
    ["l", item, ...]              a list
    ["o", {"key": value}]         an object
    ["?"]                         anything else
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = [
    "FILE_FUNCTIONS",
    "UNKNOWN",
    "BackendBlock",
    "CodeFile",
    "Expression",
    "FileRead",
    "ModuleCall",
    "RemoteState",
    "VariableBlock",
]

Expression = str | list[Any]

UNKNOWN: list[Any] = ["?"]
# Every function of OpenTofu whose first argument is the path of a file.
FILE_FUNCTIONS = frozenset(
    "file fileexists fileset filebase64 templatefile filemd5 filesha1 filesha256 filesha512 filebase64sha256 "
    "filebase64sha512".split()
)


class ModuleCall(NamedTuple):
    """A `module` block.

    Attributes:
        name: Its label.
        source: Where the module is.
        arguments: What its variables are given.
        line: Where the block begins.
        for_each: What it is repeated for.
    """

    name: str
    source: Expression
    arguments: dict[str, Expression]
    line: int
    for_each: Expression


class FileRead(NamedTuple):
    """A path in an expression.

    Attributes:
        function: The function that reads it; empty for a text that begins with `path.module` or the like.
        arguments: The path, and for `fileset` the pattern.
        names: Names that hold inside the expression (`each`, those of `for`), and the collection of each.
        line: Where.
        text: The expression as it is written.
    """

    function: str
    arguments: list[Expression]
    names: dict[str, Expression]
    line: int
    text: str


class VariableBlock(NamedTuple):
    """A `variable` block.

    Attributes:
        type: Its type as it is written; None where it has none.
        has_default: Whether it may be left out.
        is_sensitive: Whether its value is never shown.
        default: Its default.
        line: Where the block begins.
        shape: Its type as an expression, where it has objects in it.
    """

    type: str | None
    has_default: bool
    is_sensitive: bool
    default: Expression
    line: int
    shape: Expression | None = None


class BackendBlock(NamedTuple):
    """A `backend` or `cloud` block."""

    type: str
    settings: dict[str, Expression]
    line: int


class RemoteState(NamedTuple):
    """A `terraform_remote_state` data source."""

    name: str
    type: Expression
    settings: dict[str, Expression]
    line: int


@dataclass(slots=True)
class CodeFile:
    """What a file says.

    Attributes:
        modules: The modules that it calls.
        reads: The paths in its expressions.
        locals: Local values by name.
        variables: Input variables by name.
        outputs: Names of outputs.
        backends: Backend blocks; more than one is a mistake that the engine reports.
        required: Sources of providers by local name, from `required_providers`.
        implied: Local names of providers that its blocks use.
        remote_states: States of others that it reads.
        problem: Line and words of the first mistake, where the file is not valid.
    """

    modules: list[ModuleCall] = field(default_factory=list)
    reads: list[FileRead] = field(default_factory=list)
    locals: dict[str, Expression] = field(default_factory=dict)
    variables: dict[str, VariableBlock] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    backends: list[BackendBlock] = field(default_factory=list)
    required: dict[str, str] = field(default_factory=dict)
    implied: list[str] = field(default_factory=list)
    remote_states: list[RemoteState] = field(default_factory=list)
    problem: tuple[int, str] | None = None

    def to_json(self) -> list[Any]:
        """Return it as JSON can hold it."""
        return [
            list(map(list, self.modules)),
            list(map(list, self.reads)),
            self.locals,
            {name: list(one) for name, one in self.variables.items()},
            self.outputs,
            list(map(list, self.backends)),
            self.required,
            self.implied,
            list(map(list, self.remote_states)),
            self.problem,
        ]

    @classmethod
    def from_json(cls, row: Any) -> CodeFile:
        """Return what `to_json` was given.

        Raises:
            ValueError: It is nothing that `to_json` returns.
        """
        try:
            modules, reads, values, variables, outputs, backends, required, implied, states, problem = row
            return cls(
                modules=[ModuleCall(*one) for one in modules],
                reads=[FileRead(*one) for one in reads],
                locals=_mapping(values),
                variables={name: VariableBlock(*one) for name, one in _mapping(variables).items()},
                outputs=list(outputs),
                backends=[BackendBlock(*one) for one in backends],
                required=_mapping(required),
                implied=list(implied),
                remote_states=[RemoteState(*one) for one in states],
                problem=None if problem is None else (int(problem[0]), str(problem[1])),
            )
        except (TypeError, AttributeError, IndexError) as err:
            raise ValueError("not what is kept of a file") from err


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("not a mapping")
    return dict(value)
