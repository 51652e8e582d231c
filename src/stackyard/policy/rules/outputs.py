"""M6: modules give out ids, addresses and names, and each output has a description."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stackyard.base.errors import Location
from stackyard.policy.model import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.policy.context import CodeFolder, PolicyContext

__all__ = ["RULE"]

_REFERENCE = re.compile(r"(?<![\w.-])([A-Za-z_][\w-]*)\.([A-Za-z_][\w-]*)((?:\.[\w*-]+|\[[^\]]*\])*)")
_ATTRIBUTE = re.compile(r"\.([A-Za-z_][\w-]*)")
# Attributes by which others find what a module made.
_IDENTITY = re.compile(
    r"(?:.*_)?(?:ids?|arns?|names?|hostnames?|fqdns?|uris?|urls?|self_link|endpoints?|path|paths)|"
    r"(?:.*_)?(?:ip|ips|addresses|address|ipv4|ipv6)(?:_.*)?|.*name|vmid"
)
_DEEPEST = 20


def _check(context: PolicyContext) -> Iterator[Finding]:
    for folder in context.folders:
        for path, said in folder.code.items():
            for name, one in said.outputs.items():
                if one.description is None:
                    detail = f"The output `{name}` has no description."
                    yield _finding(detail, Location(path, one.line), "Say in `description` what it is.")
    for folder in context.modules.values():
        yield from _check_module(folder)


def _check_module(folder: CodeFolder) -> Iterator[Finding]:
    code = folder.code.values()
    values = [one.value for said in code for one in said.outputs.values()]
    if not values:
        detail = f"The module `{folder.path}` has no outputs."
        remedy = "Add outputs for the ids, addresses and names of what it makes."
        yield _finding(detail, Location(folder.path), remedy)
        return
    resources = {(one.type, one.name) for said in code for one in said.resources}
    texts = {name: text for said in code for name, text in said.locals.items()}
    if resources and not any(_reads_identity(value, resources, texts) for value in values):
        detail = (
            f"No output of the module `{folder.path}` reads an id, an address or a name of its resources."
        )
        path, first = next((path, said.resources[0]) for path, said in folder.code.items() if said.resources)
        remedy = f"Add an output such as `{first.type}.{first.name}.id`."
        yield _finding(detail, Location(path, first.line), remedy)


def _reads_identity(value: str, resources: set[tuple[str, str]], texts: dict[str, str]) -> bool:
    """Return whether an expression reads what tells a resource from others, also through local values."""
    pending, seen = [value], set[str]()
    for _ in range(_DEEPEST):
        if not pending:
            return False
        text = pending.pop()
        for kind, name, rest in _REFERENCE.findall(text):
            attributes = _ATTRIBUTE.findall(rest)
            if kind == "module" or ((kind, name) in resources and _is_identity(attributes)):
                return True
            if kind == "local" and name not in seen:
                seen.add(name)
                pending.append(texts.get(name, ""))
    return False


def _is_identity(attributes: list[str]) -> bool:
    # A whole resource has its id too.
    return not attributes or any(_IDENTITY.fullmatch(one) for one in attributes)


def _finding(detail: str, where: Location, remedy: str) -> Finding:
    return Finding(rule="M6", detail=detail, where=where, remedy=remedy)


RULE = Rule(
    id="M6",
    title="Modules give out ids, addresses and names; each output has a description",
    why="Other code, inventories and people can use only what a module gives out.",
    check=_check,
)
