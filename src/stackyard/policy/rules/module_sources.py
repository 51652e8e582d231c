"""M1: modules come from a `modules/` folder of the repository or from a registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.errors import Location
from stackyard.policy.folders import MODULES
from stackyard.policy.model import Finding, Rule
from stackyard.policy.sources import SourceKind, classify, local_folder
from stackyard.sources.stacks.kinds import is_code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.policy.code import ModuleBlock
    from stackyard.policy.context import PolicyContext

__all__ = ["RULE"]

_REMEDY = "Move the module into a `modules/` folder of this repository, or use an address of a registry."


def _check(context: PolicyContext) -> Iterator[Finding]:
    for folder in context.folders:
        for path, said in folder.code.items():
            for call in said.modules:
                wrong = _find_wrong(context, folder.path, call)
                if wrong is not None:
                    detail, remedy = wrong
                    where = Location(path, call.source_line)
                    yield Finding(
                        rule="M1", detail=f'Module "{call.name}": {detail}.', where=where, remedy=remedy
                    )


def _find_wrong(context: PolicyContext, folder: str, call: ModuleBlock) -> tuple[str, str] | None:
    """Return what is wrong with the source of a module, and what to do."""
    source = call.source
    if source is None:
        return "its source is missing or computed", "Write the source as a constant text."
    kind = classify(source)
    if kind is SourceKind.REGISTRY:
        return None
    if kind is not SourceKind.LOCAL:
        hint = ""
        if kind is SourceKind.OTHER and "://" not in source and "::" not in source:
            hint = " A path begins with `./` or `../`."
        return f"its source `{source}` is {kind.value}", f"{_REMEDY}{hint}"
    return _find_wrong_path(context, folder, source)


def _find_wrong_path(context: PolicyContext, folder: str, source: str) -> tuple[str, str] | None:
    if source.startswith("/"):
        remedy = "Write a path that begins with `./` or `../`: an absolute one is another on each machine."
        return f"its source `{source}` is an absolute path", remedy
    place = local_folder(context.repository.reader, folder, source)
    own = context.repository.prefix
    if place is None or not f"{place}/".startswith(own):
        return f"its source `{source}` leads out of the repository", _REMEDY
    if MODULES not in place[len(own) :].split("/")[:-1]:
        return f"its source `{source}` leads to `{place or '.'}`, which is in no `{MODULES}/` folder", _REMEDY
    if not any(is_code(name) for name in context.folder(place).names):
        return f"its source `{source}` leads to `{place}`, where there is no code", "Correct the path."
    return None


RULE = Rule(
    id="M1",
    title="Modules come from `modules/` of the repository or from a registry",
    why=(
        "Code from git, HTTP, an archive or a bucket can change without a commit here, and no version "
        "constraint holds for it."
    ),
    check=_check,
)
