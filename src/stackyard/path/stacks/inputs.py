"""What a stack takes from others: outputs in the states of its dependencies, never made up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import StackyardError
from stackyard.state.inside import read_view

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from stackyard.secrets.var_file import PrivateVarFile
    from stackyard.sources.stacks.model import Stack
    from stackyard.state.inside import StateOutput

__all__ = ["NO_INPUTS", "GivenState", "InputsMissingError", "StackInputs", "collect_inputs", "list_texts"]

_SHORTEST_SECRET = 4


class InputsMissingError(StackyardError):
    """A stack needs an output of another stack, and the state of that stack does not have it yet."""

    code = "E-STACK-WAITING"
    summary = "A stack needs outputs that do not exist yet"
    default_remedy = (
        "Apply the stacks named here first; `stackyard apply --all` applies all stacks in order. To destroy "
        "what is left of a stack whose inputs are gone, pass the values: `-- -var=NAME=VALUE`."
    )

    def __init__(self, detail: str, waiting_for: tuple[str, ...]) -> None:
        super().__init__(detail)
        self.waiting_for = waiting_for


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenState:
    """The state of a dependency.

    Attributes:
        version: Its lineage and serial; empty where nothing was applied yet.
        outputs: Its outputs by name.
    """

    version: str = ""
    outputs: Mapping[str, StateOutput] = field(default_factory=dict)

    @classmethod
    def read(cls, data: bytes | None) -> GivenState:
        """Read a state.

        Raises:
            EncryptedStateError: The engine encrypted it.
        """
        if data is None:
            return cls()
        view = read_view(data)
        outputs = {output.name: output for output in view.outputs.values()}
        return cls(version=f"{view.lineage}/{view.serial}", outputs=outputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class StackInputs:
    """What other stacks gave to one.

    Attributes:
        values: The values of variables.
        secrets: Those of them that must not be shown.
        versions: The state that each stack gave them from.
        var_files: The values as the engine gets them.
    """

    values: Mapping[str, Any] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    versions: Mapping[str, str] = field(default_factory=dict)
    var_files: tuple[PrivateVarFile, ...] = ()

    @property
    def binding(self) -> str:
        """Which states they come from, for a plan that is bound to them."""
        return ", ".join(f"{name} {version}" for name, version in sorted(self.versions.items()))


NO_INPUTS = StackInputs()


def collect_inputs(
    stack: Stack, states: Mapping[str, GivenState], given_by_user: Collection[str] = ()
) -> StackInputs:
    """Return the values that a stack takes from the states of its dependencies.

    Args:
        stack: The stack.
        states: By name, the state of each stack that it takes something from.
        given_by_user: Variables that the user gives a value to, in place of the output.

    Raises:
        InputsMissingError: Outputs are not there yet; the error names each.
    """
    values: dict[str, Any] = {}
    secrets: list[str] = []
    missing: dict[str, list[str]] = {}
    for dependency in stack.settings.after:
        given = states.get(dependency.stack, GivenState())
        for variable, name in dependency.outputs.items():
            if variable in given_by_user:
                continue
            output = given.outputs.get(name)
            if output is None:
                missing.setdefault(dependency.stack, []).append(name)
                continue
            values[variable] = output.value
            if output.is_hidden:
                secrets += list_texts(output.value)
    if missing:
        waits = [f"stack:{name} ({', '.join(sorted(names))})" for name, names in sorted(missing.items())]
        raise InputsMissingError(
            f"stack:{stack.name} needs outputs of stacks that are not applied yet: {'; '.join(waits)}.",
            tuple(sorted(missing)),
        )
    if not values:
        return NO_INPUTS
    versions = {one.stack: states[one.stack].version for one in stack.settings.after if one.outputs}
    return StackInputs(
        values=values,
        secrets=tuple(secrets),
        versions=versions,
        var_files=(_var_file(stack, values),),
    )


def _var_file(stack: Stack, values: Mapping[str, Any]) -> PrivateVarFile:
    from stackyard.secrets.var_file import PrivateVarFile  # lazy: few stacks take outputs of others
    from stackyard.sources.stacks.input_values import inputs_text  # lazy: as above

    return PrivateVarFile(path=stack.folder / "stack.yaml", content=inputs_text(values))


def list_texts(value: Any) -> Sequence[str]:
    """Return every text in a value that is long enough to be masked."""
    if isinstance(value, str):
        return [value] if len(value) >= _SHORTEST_SECRET else []
    if isinstance(value, Mapping):
        return [text for part in value.values() for text in list_texts(part)]
    if isinstance(value, list | tuple):
        return [text for part in value for text in list_texts(part)]
    return []
