"""What one file of code says to the rules: kept in the cache under the number of its content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["CodeFacts", "ModuleBlock", "OutputBlock", "RequiredProvider", "ResourceBlock", "VariableBlock"]


class VariableBlock(NamedTuple):
    """A `variable` block.

    Attributes:
        line: Where the block begins.
        description: Its text; None where it is missing or empty.
        type: As it is written; None where it is missing.
        type_line: Where the type is.
        any_reason: What a comment that begins with `any:` says, empty where there is none.
        has_any: Whether the type is `any`, or has it inside.
        is_sensitive: Whether its value is never shown.
        default: As it is written; None where the variable has to be set.
    """

    line: int
    description: str | None
    type: str | None
    type_line: int
    any_reason: str
    has_any: bool
    is_sensitive: bool
    default: str | None


class OutputBlock(NamedTuple):
    """An `output` block; `value` is its expression as it is written."""

    line: int
    description: str | None
    value: str
    is_sensitive: bool


class ModuleBlock(NamedTuple):
    """A `module` block.

    Attributes:
        name: Its label.
        line: Where it begins.
        source: Its constant source; None where it is missing or computed.
        source_line: Where that is.
        version: Its constant version; None where it is missing or computed.
        version_line: Where that is; 0 where it is missing.
    """

    name: str
    line: int
    source: str | None
    source_line: int
    version: str | None
    version_line: int


class RequiredProvider(NamedTuple):
    """An entry of `required_providers`; `version` is None where it is missing or computed."""

    line: int
    source: str
    version: str | None
    version_line: int


class ResourceBlock(NamedTuple):
    """A managed resource."""

    type: str
    name: str
    line: int


@dataclass(slots=True)
class CodeFacts:
    """What a file says.

    Attributes:
        variables: Input variables by name.
        outputs: Outputs by name.
        modules: Calls of modules.
        required: Entries of `required_providers` by local name.
        resources: Managed resources.
        used: Local names of providers that resources, data sources and provider blocks use, with a line.
        configured: Lines of `provider` blocks.
        backends: Lines of `backend` and `cloud` blocks.
        locals: Local values by name, as they are written.
        data: How many data sources there are.
        problem: Line and words of the first mistake, where the file is not valid.
    """

    variables: dict[str, VariableBlock] = field(default_factory=dict)
    outputs: dict[str, OutputBlock] = field(default_factory=dict)
    modules: list[ModuleBlock] = field(default_factory=list)
    required: dict[str, RequiredProvider] = field(default_factory=dict)
    resources: list[ResourceBlock] = field(default_factory=list)
    used: dict[str, int] = field(default_factory=dict)
    configured: list[int] = field(default_factory=list)
    backends: list[int] = field(default_factory=list)
    locals: dict[str, str] = field(default_factory=dict)
    data: int = 0
    problem: tuple[int, str] | None = None

    def to_json(self) -> list[Any]:
        """Return it as JSON can hold it."""
        return [
            {name: list(one) for name, one in self.variables.items()},
            {name: list(one) for name, one in self.outputs.items()},
            list(map(list, self.modules)),
            {name: list(one) for name, one in self.required.items()},
            list(map(list, self.resources)),
            self.used,
            self.configured,
            self.backends,
            self.locals,
            self.data,
            self.problem,
        ]

    @classmethod
    def from_json(cls, row: Any) -> CodeFacts:
        """Return what `to_json` was given.

        Raises:
            ValueError: It is nothing that `to_json` returns.
        """
        try:
            (
                variables,
                outputs,
                modules,
                required,
                resources,
                used,
                configured,
                backends,
                values,
                data,
                problem,
            ) = row
            return cls(
                variables={name: VariableBlock(*one) for name, one in _mapping(variables).items()},
                outputs={name: OutputBlock(*one) for name, one in _mapping(outputs).items()},
                modules=[ModuleBlock(*one) for one in modules],
                required={name: RequiredProvider(*one) for name, one in _mapping(required).items()},
                resources=[ResourceBlock(*one) for one in resources],
                used=_mapping(used),
                configured=list(configured),
                backends=list(backends),
                locals=_mapping(values),
                data=int(data),
                problem=None if problem is None else (int(problem[0]), str(problem[1])),
            )
        except (TypeError, AttributeError, IndexError) as err:
            raise ValueError("not what is kept of a file") from err


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("not a mapping")
    return dict(value)
