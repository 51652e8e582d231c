"""M9: the key of each state is unique, and below the parent folder of its stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.errors import Location
from stackyard.policy.model import Finding, Rule
from stackyard.sources.stacks.isolation import FOREIGN_KEY, SHARED_STATE, key_setting
from stackyard.sources.stacks.reads import read_stack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.policy.context import PolicyContext

__all__ = ["RULE"]


def _check(context: PolicyContext) -> Iterator[Finding]:
    for one in context.isolation.found:
        if one.kind in (SHARED_STATE, FOREIGN_KEY) and one.where is not None:
            yield Finding(
                rule="M9", detail=one.detail, where=one.where, remedy=one.kind.remedy, also=one.also
            )
    for name, folder in context.stacks.items():
        backend = read_stack(context.repository, folder.stack).backend
        if backend is None:
            continue
        kind, settings, path, line = backend
        key = key_setting(kind)
        if key is not None and key not in settings and kind != "gcs":
            yield Finding(
                rule="M9",
                detail=f"The backend `{kind}` of the stack `{name}` has no constant `{key}`.",
                where=Location(path, line),
                remedy=f"Write `{key}` as a text, or name its file in `backend_config` of stack.yaml.",
            )


RULE = Rule(
    id="M9",
    title="The key of each state is unique and below the parent folder of its stack",
    why="Two stacks with one key destroy each other's resources: each apply removes what the other one made.",
    check=_check,
)
