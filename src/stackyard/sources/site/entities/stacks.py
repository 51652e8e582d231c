"""`stack.yaml` beside the code of a stack, and what `stackyard.yaml` says about all stacks."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from stackyard.sources.site.entities.gitops import GitopsFile

__all__ = ["PolicyException", "RepositoryFile", "StackDependency", "StackFile"]

Text = Annotated[str, StringConstraints(min_length=1, max_length=1024, pattern=r"^[^\x00-\x1f]+$")]
Word = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[^\s\x00-\x1f]+$")]
Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$", max_length=255)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class StackDependency(_Strict):
    """A stack that comes first, with the outputs that this stack takes as values of its variables."""

    stack: Word
    # The names of outputs, which are the names of variables too; or outputs by the name of a variable.
    outputs: Annotated[list[Identifier], Field(min_length=1)] | dict[Identifier, Identifier] = Field(
        default_factory=list
    )


class StackFile(_Strict):
    """What is said of a stack beside its code. Paths of files are from the folder of the stack."""

    # Stacks that are applied before this one, and stacks that are applied after it.
    after: list[Word | StackDependency] = Field(default_factory=list)
    before: list[Word] = Field(default_factory=list)
    # Globs of more files that select this stack when they change, from the top of the repository.
    watch: list[Text] = Field(default_factory=list)
    var_files: list[Text] | None = None
    secrets: list[Text] | None = None
    backend_config: list[Text] = Field(default_factory=list)
    # A folder of `*.json` whose top-level keys are values of variables.
    domains: Text | None = None
    tags: list[Word] = Field(default_factory=list)
    protected: bool = False
    # Whether it waits for a stack that is not critical before it takes a new major version.
    critical: bool = True
    engine: Literal["tofu", "terraform"] | None = None
    # The Proxmox provider; the option --provider wins.
    provider: Literal["builtin", "bpg"] | None = None
    # Folders with Rego rules for its plans.
    policy: list[Text] = Field(default_factory=list)

    @model_validator(mode="after")
    def _have_no_doubles(self) -> Self:
        names = [one if isinstance(one, str) else one.stack for one in self.after]
        for key, values in (("after", names), ("before", self.before), ("tags", self.tags)):
            twice = {value for value in values if values.count(value) > 1}
            if twice:
                raise ValueError(f"`{key}` names {', '.join(sorted(twice))} twice")
        return self


class PolicyException(_Strict):
    """Findings of a rule that are accepted for a while."""

    # The id of the rule, such as M4, or the package of a rule in Rego.
    rule: Annotated[
        str, StringConstraints(pattern=r"^(?:M(?:[0-9]|1[0-2])|stackyard\.repository(?:\.\w+)*)$")
    ]
    # A glob of files or folders, from the top of the repository.
    path: Text
    reason: Annotated[str, StringConstraints(min_length=1, max_length=2000, pattern=r"\S")]
    # The last day on which it counts.
    until: Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]

    @field_validator("until")
    @classmethod
    def _is_a_day(cls, value: str) -> str:
        try:
            date.fromisoformat(value)
        except ValueError as err:
            raise ValueError(f"`{value}` is no day: write it as 2027-01-31") from err
        return value


class RepositoryFile(_Strict):
    """What holds for everything in a repository."""

    # Where what runs leave is kept: s3://…, postgresql://… or https://….
    store: Annotated[str, StringConstraints(min_length=1, max_length=1024)] | None = None
    # Folders that hold stacks; `stacks`, `tofu/stacks` and `infrastructure/NN-name` when absent.
    roots: Annotated[list[Text], Field(min_length=1)] | None = None
    # Folders or globs, from a root: what is in an earlier one is applied before what is in a later one.
    layers: list[Text] | None = None
    # What holds for each stack whose `stack.yaml` does not say otherwise.
    defaults: StackFile | None = None
    # Folders with Rego rules for the plans of all stacks, and for the repository itself.
    policy: list[Text] = Field(default_factory=list)
    # What the rules for modules and stacks find and is accepted for a while.
    exceptions: list[PolicyException] = Field(default_factory=list)
    # How pull requests are planned and applied.
    gitops: GitopsFile | None = None
