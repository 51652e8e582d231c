"""M8: a stack has code, variables, a backend, data, secrets, providers and a lock file, by role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.errors import Location
from stackyard.policy.model import Finding, Rule
from stackyard.policy.providers import is_locked_elsewhere, needed_providers
from stackyard.secrets.names import is_secret_name
from stackyard.sources.stacks.kinds import LOCK_FILE, is_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.policy.code import VariableBlock
    from stackyard.policy.context import PolicyContext, StackFolder

__all__ = ["RULE"]


def _check(context: PolicyContext) -> Iterator[Finding]:
    for one in context.stacks.values():
        for detail, remedy in _missing(context, one):
            text = f"The stack `{one.stack.name}` {detail}."
            yield Finding(rule="M8", detail=text, where=Location(one.folder.path), remedy=remedy)


def _missing(context: PolicyContext, one: StackFolder) -> Iterator[tuple[str, str]]:
    code = one.folder.code.values()
    stems = {path.rpartition("/")[2].partition(".")[0] for path in one.folder.code}
    if "main" not in stems and not any(said.resources or said.modules or said.data for said in code):
        yield "has no code that makes something", "Add main.tf with its resources or module calls."
    if "variables" not in stems and not any(said.variables for said in code):
        yield "has no variables", "Add variables.tf: what differs between stacks is data, not code."
    if not any(said.backends for said in code):
        yield (
            "has no backend",
            'Add backend.tf with a `backend` block and a key of its own, or `backend "http" {}`.',
        )
    yield from _missing_values(one)
    needed = needed_providers(context, one.folder.path)
    if needed and not any(said.required or said.configured for said in code):
        names = ", ".join(f"`{name}`" for name in sorted(needed))
        yield f"says nothing about its providers ({names})", "Add providers.tf with `required_providers`."
    is_locked = LOCK_FILE in one.folder.names
    if not is_locked and any(not is_locked_elsewhere(one.stack, source) for source in needed):
        yield f"has no lock file ({LOCK_FILE})", "Run `tofu init` in its folder, and commit the lock file."


def _missing_values(one: StackFolder) -> Iterator[tuple[str, str]]:
    settings = one.stack.settings
    values = [name for name in one.folder.names if is_values(name)]
    open_variables = _open_variables(one)
    has_data = bool(settings.var_files or settings.domains) or any(
        not is_secret_name(name) for name in values
    )
    plain = [name for name, said in open_variables.items() if not said.is_sensitive]
    if plain and not has_data:
        detail = f"has variables ({_shorten(plain)}) and no variables file"
        yield detail, "Add a file with their values, such as terraform.tfvars."
    secret = [name for name, said in open_variables.items() if said.is_sensitive and said.default is None]
    if secret and not (settings.secrets or any(is_secret_name(name) for name in values)):
        detail = f"has sensitive variables ({_shorten(secret)}) and no secrets file"
        yield detail, "Add a file such as secrets.tfvars, encrypted with `stackyard secrets encrypt`."


def _open_variables(one: StackFolder) -> dict[str, VariableBlock]:
    """Return the variables that no output of another stack sets."""
    taken = {name for dependency in one.stack.settings.after for name in dependency.outputs}
    return {
        name: said
        for facts in one.folder.code.values()
        for name, said in facts.variables.items()
        if name not in taken
    }


def _shorten(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


RULE = Rule(
    id="M8",
    title="A stack has main, variables, backend, variables file, secrets file, providers and lock file",
    why="A stack that lacks one of them cannot be run by somebody else, or loses its state.",
    check=_check,
)
