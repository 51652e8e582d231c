"""M2: a module of a registry has a version with `~>`, a local one has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.documents.constraints import is_pinned, read_constraint
from stackyard.base.errors import Location
from stackyard.policy.model import Finding, Rule
from stackyard.policy.sources import SourceKind, classify

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.policy.code import ModuleBlock
    from stackyard.policy.context import PolicyContext

__all__ = ["RULE"]


def _check(context: PolicyContext) -> Iterator[Finding]:
    for folder in context.folders:
        for path, said in folder.code.items():
            for call in said.modules:
                wrong = _find_wrong(call)
                if wrong is not None:
                    detail, remedy = wrong
                    where = Location(path, call.version_line or call.line)
                    yield Finding(
                        rule="M2", detail=f'Module "{call.name}" {detail}.', where=where, remedy=remedy
                    )


def _find_wrong(call: ModuleBlock) -> tuple[str, str] | None:
    kind = SourceKind.OTHER if call.source is None else classify(call.source)
    if kind is SourceKind.LOCAL and call.version_line:
        return "is in this repository and has a version", "Remove `version`: OpenTofu refuses it for a path."
    if kind is not SourceKind.REGISTRY:
        return None
    remedy = (
        'Write a version such as `version = "~> 5.1"`; `stackyard policy fix` does so for a given version.'
    )
    if not call.version_line:
        return f"(`{call.source}`) has no version", remedy
    if call.version is None or read_constraint(call.version) is None:
        return f"(`{call.source}`) has a version that is computed or not valid", remedy
    if not is_pinned(call.version):
        return f"(`{call.source}`) has the version `{call.version}`, without `~>`", remedy
    return None


RULE = Rule(
    id="M2",
    title="Modules of a registry have a version with `~>`, local ones have none",
    why="`~>` takes corrections and keeps out the next major version, which may break the code.",
    check=_check,
)
